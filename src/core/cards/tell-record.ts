import { recordedText } from "../../audit/render.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import { statusSign } from "../../fleet/inventory/status-order.ts";
import { Markdown, counted, withFullStop, listed, md, name } from "../../messages/markdown.ts";
import { stateWords } from "../request/stage.ts";
import { withNames } from "./known-people.ts";

type AuditRecord = Readonly<Record<string, unknown>>;

/** How people and VMs are called, of which the trail keeps the IDs. */
export interface Called {
  person(id: string): string;
  vm(id: string): string;
}

/** The ID of the VM or project that a record is about. Empty where it is about none, or several. */
function recordedTargetId({ target }: AuditRecord): string {
  const isNamed = typeof target === "object" && target !== null;
  return recordedText(isNamed && "id" in target ? target.id : target);
}

/**
 * The VM that a record is about, with its project then, which decides who may read of it, and its
 * name now. A VM that isn't among these, because it was moved or is gone, is called as it was then.
 * A record without a project belongs to that of the VM now. Undefined where no project is known.
 */
export function recordedVm(
  record: AuditRecord,
  vms: readonly SeenVm[],
): (SeenVm & { kind: "vm" }) | undefined {
  const id = recordedTargetId(record);
  const now = vms.find((vm) => vm.id === id);
  const { target } = record;
  const then: Partial<Record<"kind" | "name" | "projectId" | "projectName", unknown>> =
    typeof target === "object" && target !== null ? target : {};
  if (now === undefined && then.kind !== "vm") return undefined;
  const projectId = recordedText(then.projectId) || now?.projectId;
  const projectName = recordedText(then.projectName) || now?.projectName;
  if (projectId === undefined || projectName === undefined) return undefined;
  return { kind: "vm", id, name: now?.name ?? recordedText(then.name), projectId, projectName };
}

type SeenVm = Pick<KnownVm, "id" | "name" | "projectId" | "projectName">;

/** The VMs and projects that a record is about, by name where it has one. */
function targetsOf(record: AuditRecord, called: Called): Markdown | undefined {
  const { target, targets } = record;
  if (Array.isArray(targets)) {
    const names = targets.map((id) => called.vm(recordedText(id)));
    return names.length > 0 ? listed(names, 3) : undefined;
  }
  const isNamed = typeof target === "object" && target !== null;
  const own = isNamed && "name" in target ? recordedText(target.name) : "";
  const id = recordedTargetId(record);
  return own || id ? name(own || called.vm(id)) : undefined;
}

/** The freeze that a thaw ended. Empty when its record doesn't name one. */
function endedFreeze(ended: unknown, called: Called): Markdown {
  if (typeof ended !== "object" || ended === null) return md``;
  const { by: personId, why } = ended as Readonly<Record<string, unknown>>;
  return md`, which ended the freeze by *${called.person(recordedText(personId))}*${quoted(recordedText(why))}`;
}

const quoted = (why: string): Markdown => (why ? md`: “${why.replace(/\.$/, "")}”` : md``);

/**
 * One record of the audit trail as a sentence that begins with a sign: who did what, to what, and
 * why. A kind that has no words here is told by its own.
 */
export function tellRecord(record: AuditRecord, called: Called): Markdown {
  const text = (field: string) => recordedText(record[field]);
  const who = text("who") || text("requester");
  const actor = md`*${who ? called.person(who) : "Gatehouse"}*`;
  const why = text("why");
  const on = targetsOf(record, called);
  const onIt = (word: string) => (on ? md` ${word} ${on}` : md``);
  const command = text("command") || "a command";
  switch (record["what"]) {
    case "freeze":
      return withFullStop(md`🧊 ${actor} froze all changes${quoted(why)}`);
    case "thaw":
      return withFullStop(
        md`🧊 ${actor} allowed changes again${endedFreeze(record["ended"], called)}`,
      );
    case "refusal":
      return md`⛔ ${actor} was refused ${name(command)}${onIt("of")}${text("rule") ? ` (rule: ${text("rule")})` : ""}.`;
    case "vote-refused":
      return md`⛔ The vote of ${actor} didn't count${why ? ` (${why})` : ""}.`;
    case "policy": {
      const changes = Array.isArray(record["changes"]) ? record["changes"].map(recordedText) : [];
      const changesText = changes.length > 0 ? `: ${changes.join("; ")}` : "";
      return withFullStop(md`📜 The rules changed (${text("from")} → ${text("to")})${changesText}`);
    }
    case "audit-read":
      return md`👀 ${actor} read the audit trail${text("about") ? md` about ${name(text("about"))}` : ""}.`;
    case "audit-export":
      return md`👀 ${actor} took the audit trail as a file.`;
    case "audit-excerpt":
      return md`👀 ${actor} took a night as a file.`;
    case "audit-erased": {
      const { erased } = record;
      const many = counted(Array.isArray(erased) ? erased.length : 0, "audit record");
      return withFullStop(md`⚠️ ${actor} erased ${many}${quoted(why)}`);
    }
    case "review-signed":
      return withFullStop(md`✅ ${actor} signed the review${quoted(why)}`);
    case "alarm":
      return withFullStop(md`🚨 ${why || "An alarm"}`);
    case "late-effect":
      return md`⚠️ ${on ?? "It"} changed after all: ${text("status")} was read.`;
    case "message-moved":
      return md`• Its messages go elsewhere${why ? md` (${name(why)})` : ""}.`;
    case "attestation":
      return text("move") === "failed"
        ? withFullStop(md`🔴 ${on ?? "A VM"} failed attestation${why && md`: ${why}`}`)
        : md`${text("move") === "verified" ? "🟢" : "⚪"} ${on ?? "A VM"}: attestation ${why}.`;
    case "status": {
      const became = becameWords(text("move"), text("from"));
      return md`${statusSign(text("move"))} ${on ?? "A VM"} ${became}: no request to Gatehouse did that.`;
    }
    case "console":
      return md`🖥️ ${actor} opened a console${onIt("on")}.`;
    case "console-opening":
      return md`🖥️ ${actor} asked the compute service for a console${onIt("on")}.`;
    case "console-unopened":
      return md`🖥️ The compute service opened no console${onIt("on")} for ${actor}.`;
    case "alert": {
      const firing = Number(record["firing"]);
      const [names, vms] = [listOf(record["alerts"]), listOf(record["on"])];
      const about = names.length > 0 ? md` (${listed(names, 3)}${onVms(vms)})` : md``;
      const from = md`from ${name(text("source"))}${about}`;
      return firing > 0
        ? md`🔥 ${counted(firing, "alert")} ${from} ${firing === 1 ? "fires" : "fire"}.`
        : md`✅ The alerts ${from} ended.`;
    }
    case "remedy":
      return tellRemedy(record, actor, on);
    case "proposal":
      return text("move") === "expired"
        ? md`⚪ Nobody ran ${name(command)}${onIt("of")} in time, which ${actor} had proposed.`
        : withFullStop(md`💡 ${actor} proposed ${name(command)}${onIt("of")}${quoted(why)}`);
    case "dismissal":
      return withFullStop(
        md`⚪ ${actor} dismissed the proposal of ${name(command)}${onIt("of")}${quoted(why)}`,
      );
    case "roll":
      return md`• ${actor} rolled out ${name(command)}${outcome(record)}.`;
    default: {
      const kind = text("what").replaceAll("-", " ") || "a record";
      const reason = why || text("words") || text("line") || text("rule");
      return withFullStop(md`• ${actor}: ${kind}${onIt("of")}${quoted(reason)}`);
    }
  }
}

const listOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(recordedText).filter((text) => text !== "") : [];

const onVms = (vms: readonly string[]): Markdown =>
  vms.length > 0 ? md` on ${listed(vms, 3)}` : md``;

/** Says whether the alerts of a VM ended after its change, as their source told. */
function tellRemedy({ verdicts, command }: AuditRecord, actor: Markdown, on: Markdown | undefined) {
  const all = typeof verdicts === "object" && verdicts !== null ? Object.entries(verdicts) : [];
  const names = (verdict: string) =>
    all.flatMap(([alert, judged]) => (judged === verdict ? [alert] : []));
  const [helped, failed, early] = ["helped", "failed", "early"].map(names) as [
    string[],
    string[],
    string[],
  ];
  const change = md`the ${name(command)} of ${on ?? "a VM"} by ${actor}`;
  const ended = md`${listed(helped, 3)} ended`;
  if (failed.length === 0 && helped.length === 0)
    return md`⚪ ${listed(early, 3)} had ended before ${change}.`;
  if (failed.length === 0) return md`✅ ${ended} after ${change}.`;
  const alsoEnded = helped.length > 0 ? md`; ${ended}` : md``;
  return md`🔥 ${listed(failed, 3)} went on after ${change}${alsoEnded}.`;
}

function becameWords(status: string, from: string): string {
  const was = from ? `, was ${from}` : "";
  if (status === "ERROR") return `went to ERROR${was}`;
  return from === "ERROR" ? `left ERROR and is ${status}` : `stopped${was}`;
}

function outcome({ move, why }: AuditRecord): Markdown {
  const state = recordedText(move);
  if (state === "") return md``;
  const because = recordedText(why);
  return md`: ${stateWords(state)}${because && because !== state ? ` (${because})` : ""}`;
}

/** What a step's reason says that its state says already, or nobody needs to know. */
const saidByState = new Set([
  "claimed",
  "accepted by the compute service",
  "the answer proves it",
  "cancelled",
]);

/** One step of a request: `approved by amir`, `running`, `done: read RUNNING`. */
export function stepWords(state: string, why: string): string {
  if (why === "requested")
    return state === "draft" ? "requested, waiting for approval" : "requested";
  if (/^(?:approved|denied) by /.test(why)) return why;
  const reached = stateWords(state);
  return why === "" || why === state || saidByState.has(why) ? reached : `${reached}: ${why}`;
}

/** One record among all those of a request: who took which step. */
export function tellStep(record: AuditRecord, called: Called): Markdown {
  const text = (field: string) => recordedText(record[field]);
  if (record["what"] !== "request")
    return new Markdown(tellRecord(record, called).value.replace(/\.$/, ""));
  const [who, why, vote] = [text("who"), text("why"), text("vote")];
  const people = (words: string) => withNames(words, called.person);
  if (vote !== "") {
    const verb = vote === "approve" ? "approved" : "denied";
    return md`*${called.person(who)}* ${verb}${quoted(people(why))}`;
  }
  const step = people(stepWords(text("move"), why));
  if (who === "") return md`${step}`;
  return why === "requested"
    ? md`*${called.person(who)}* ${step}`
    : md`${step} (${called.person(who)})`;
}
