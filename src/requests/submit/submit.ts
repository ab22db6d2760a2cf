import { fingerprintOf } from "../../approvals/fingerprint.ts";
import {
  type ChangeCommand,
  type Target,
  type Seen,
  argumentsOf,
  targetArgument,
} from "../../registry/define.ts";
import type { Policy } from "../../config/policy-file.ts";
import { ownerOf } from "../../policy/refusal.ts";
import { channelOfProject } from "../../policy/access.ts";
import {
  type Person,
  type ChangeInvocation,
  type Input,
  targetWords,
  isRollable,
  withTarget,
} from "../../registry/invocation.ts";
import {
  type Approval,
  type RequestRecord,
  approvableOf,
  type StoredRequest,
  statusOf,
  statusWhenRequested,
  stateWords,
} from "../journal/record.ts";
import { newRequestId, type Journal } from "../journal/journal.ts";
import type { Vm } from "../../compute/compute.ts";
import { UserError } from "../../errors.ts";
import type { Inventory, KnownProject, KnownVm } from "../../inventory/inventory.ts";
import { duration } from "../../messages/message.ts";
import { isGlob } from "../../text/glob.ts";
import { takenAt, type Snapshots, type KnownSnapshot } from "../../inventory/snapshots.ts";

/** An authorized command on one resolved target. */
export interface Submission
  extends
    Pick<RequestRecord, "input" | "target" | "channelId" | "via">,
    Partial<Pick<RequestRecord, (typeof asGiven)[number]>> {
  command: ChangeCommand;
  person: Person;
  /** With several targets, each has its own suffix. */
  interactionId: string;
  /** Known beforehand in a rollout: a late second submission makes no second request. */
  id?: string;
  /** ID of its rollout. */
  rollout?: string;
  /** Without it, the request runs at once. */
  approval?: Omit<Approval, "digest" | "expiresAt" | "remindsAt"> & {
    expiresMs: number;
    /** Half way to the end. */
    isReminded?: boolean;
  };
}

/** What a record says as its submission does. */
const asGiven = [
  "threadTs",
  "reason",
  "children",
  "breakGlass",
  "labels",
  "snapshotAt",
  "undoes",
  "cause",
] as const;

/** Saves a request in the journal. `isNew` is false when an equal one is open or was just done. */
export async function submit(
  submission: Submission,
  by: {
    store: Journal;
    policy: Pick<Policy, "teams">;
    policyVersion: string;
    staleAfterMs: number;
    wake(id: string): Promise<void>;
  },
): Promise<{ id: string; isNew: boolean }> {
  const { command, person, approval } = submission;
  const now = await by.store.now();
  const teamChannel = channelOfProject(by.policy, ownerOf(submission.target));
  const asked: RequestRecord = {
    id: submission.id ?? newRequestId(),
    command: command.name,
    input: command.fillIn?.(submission.input, submission.target, new Date(now)) ?? submission.input,
    target: submission.target,
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    channelId: submission.channelId,
    via: submission.via,
    policyVersion: by.policyVersion,
    createdAt: now,
    runsUntil: now + (approval?.expiresMs ?? 0) + by.staleAfterMs,
    ...Object.fromEntries(
      asGiven.flatMap((one) => (submission[one] ? [[one, submission[one]]] : [])),
    ),
    ...(teamChannel && teamChannel !== submission.channelId ? { teamChannel } : {}),
    ...(submission.rollout ? { roll: submission.rollout } : {}),
  };
  const record = approval ? withApproval(asked, approval, now) : asked;
  const state = record.approval ? "draft" : "authorized";
  const created = await by.store.create({ record, state, interactionId: submission.interactionId });
  // The sweep repeats a lost wake-up
  if (created.isNew && state === "authorized") await by.wake(created.id).catch(() => undefined);
  return created;
}

function withApproval(
  record: RequestRecord,
  { expiresMs, isReminded, ...asked }: NonNullable<Submission["approval"]>,
  now: number,
): RequestRecord {
  const expiresAt = now + expiresMs;
  const digest = fingerprintOf(approvableOf(record, { ...asked, expiresAt }));
  const reminder = isReminded ? { remindsAt: now + Math.floor(expiresMs / 2) } : {};
  return { ...record, approval: { ...asked, expiresAt, digest, ...reminder } };
}

type Named = Pick<ChangeInvocation, "command" | "input">;
type Known = { inventory: Inventory };

/** Several matches, or only near ones: the person picks. */
export class PickOne extends UserError {
  readonly candidates: readonly Target[];
  readonly isAmbiguous: boolean;

  constructor(message: string, candidates: readonly Target[], isAmbiguous: boolean) {
    super(message);
    this.candidates = candidates;
    this.isAmbiguous = isAmbiguous;
  }
}

/** A list that was read this recently needs no word about its age (ms). */
const newMs = 5_000;

/** Exactly one VM or project, by ID, name, or `project/name`. Throws PickOne or UserError. */
export async function resolveTarget(
  kind: "vm" | "project",
  words: string,
  inventory: Inventory,
): Promise<Target> {
  const found = kind === "vm" ? await inventory.findVm(words) : await inventory.findProject(words);
  if ("found" in found) return withSharedName(targetOf(found.found), inventory);
  const what = kind === "vm" ? "VM" : "project";
  if ("ambiguous" in found) {
    const candidates = found.ambiguous.map(targetOf);
    const which = `${candidates.length} ${what}s are called ${words}. Which one?`;
    throw new PickOne(which, candidates, true);
  }
  const { refreshedAt } = await inventory.state();
  const ageMs = refreshedAt === undefined ? 0 : Date.now() - refreshedAt;
  const known = ageMs > newMs ? ` Gatehouse read the list ${duration(ageMs)} ago.` : "";
  const none = `There is no ${what} called ${words}.${known}`;
  if (found.unknown.length > 0)
    throw new PickOne(`${none} Did you mean…`, found.unknown.map(targetOf), false);
  throw new UserError(none, `\`/${kind} list\` shows every ${what} you can see.`);
}

/** Whether another VM that is known has its name. */
async function withSharedName(target: Target, inventory: Inventory): Promise<Target> {
  if (target.kind !== "vm") return target;
  const same = await inventory.findVm(target.name, { onlyKnown: true });
  return "ambiguous" in same ? { ...target, sharesName: true } : target;
}

/** The single target of a change. A project to create has no ID yet. */
export async function resolveOne(asked: Named, { inventory }: Known): Promise<Target> {
  const { command, input } = asked;
  if (command.on === "new-project") {
    const name = typeof input["name"] === "string" ? input["name"] : "";
    return { kind: "project", id: "", name, projectId: "", status: "" };
  }
  const [words] = targetWords(asked);
  if (words === undefined)
    throw new UserError("No target is named.", `Try \`${command.example}\`.`);
  return resolveTarget(command.on, words, inventory);
}

export interface Several {
  targets: readonly Target[];
  /** As typed. */
  words: string;
  /** Every VM that Gatehouse knows, or that this person can see of them. */
  isEverything: boolean | "of what they see";
}

const maxTargets = 1000;

/** The VMs of a command that names several or uses a glob; undefined for one. */
export async function resolveSeveral(
  asked: Named,
  { inventory }: Known,
): Promise<Several | undefined> {
  if (!isRollable(asked.command)) return undefined;
  const isList = targetArgument(asked.command)?.isList === true;
  const words = targetWords(asked).flatMap((word) =>
    isList ? word : word.split(",").filter(Boolean),
  );
  const hasGlob = words.some(isGlob);
  if (words.length < 2 && !hasGlob) return undefined;
  const targets = await vmsNamed(words, inventory);
  const { vms, isPart } = await inventory.state();
  const isEverything = hasGlob && vms > 1 && targets.length >= vms;
  return {
    targets,
    words: words.join(" "),
    isEverything: isEverything && isPart ? "of what they see" : isEverything,
  };
}

/** The VMs that these words and globs name, each once. A word that isn't a VM stops everything. */
export async function vmsNamed(words: readonly string[], inventory: Inventory) {
  const all = await Array.fromAsync(words, (word) => targetsNamed(word, inventory));
  const targets = [...new Map(all.flat().map((target) => [target.id, target])).values()];
  if (targets.length <= maxTargets) return targets;
  throw new UserError(
    `That names ${targets.length} VMs; ${maxTargets} is the limit. Nothing was done.`,
    "Use a longer name or `project/name-*` to match fewer.",
  );
}

async function targetsNamed(word: string, inventory: Inventory): Promise<readonly Target[]> {
  if (!isGlob(word)) {
    try {
      return [await resolveTarget("vm", word, inventory)];
    } catch (error) {
      if (!(error instanceof PickOne)) throw error;
      const names = error.candidates
        .slice(0, 5)
        .map((target) => `\`${target.projectName ?? target.projectId}/${target.name}\``);
      throw new UserError(
        `${error.message} Nothing was done.`,
        `${names.join(", ")}: each of several VMs must be named exactly.`,
      );
    }
  }
  const matching = await inventory.matchVms(word);
  if (matching.length > 0)
    return Promise.all(matching.map((vm) => withSharedName(targetOf(vm), inventory)));
  const { vms, stale, isPart } = await inventory.state();
  throw new UserError(
    `${word} matches none of the ${vms} VMs ${isPart ? "you can see" : "Gatehouse knows"}. Nothing was done.`,
    stale
      ? "This list may be outdated: `/gatehouse status` shows why."
      : "`/vm list` shows them all; a glob with a slash means `project/name`.",
  );
}

/** Names of the VMs in these projects: `protect` covers them too. */
export async function namesWithin(
  targets: readonly Target[],
  { inventory }: Known,
): Promise<string[]> {
  const lists = await Promise.all(
    targets
      .filter(({ kind, id }) => kind === "project" && id !== "")
      .map(({ id }) => inventory.vms({ projectId: id })),
  );
  return lists.flat().map((vm) => vm.name);
}

export function targetOf(known: KnownVm | KnownProject): Target {
  if ("projectId" in known)
    return targetOfVm(known as KnownVm & { specs?: Vm["specs"] }, known.projectName);
  const { id, name, status, createdAt } = known;
  return { kind: "project", id, name, projectId: id, status, ...(createdAt ? { createdAt } : {}) };
}

export function targetOfVm(vm: Vm, projectName: string): Target {
  return { kind: "vm", ...vmFields(vm), projectName };
}

/** The VM as read when its target was resolved. */
export function vmOf(target: Target): Vm {
  return vmFields(target);
}

function vmFields({ id, name, projectId, status, createdAt, specs }: Vm | Target) {
  const known = { ...(createdAt ? { createdAt } : {}), ...(specs ? { specs } : {}) };
  return { id, name, projectId, status, ...known };
}

/** Replaces the name of a known snapshot of this VM by its ID. Unknown words pass: they may be an ID. */
export async function withSnapshotId(
  command: ChangeCommand,
  input: Input,
  target: Target,
  { snapshots }: { snapshots: Pick<Snapshots, "of"> },
): Promise<Input> {
  const key = argumentsOf(command).find(({ picker }) => picker === "snapshot")?.key;
  const words = key === undefined ? undefined : input[key];
  if (key === undefined || typeof words !== "string" || target.kind !== "vm") return input;
  const known = await snapshots.of(target.id);
  if (known.some(({ id }) => id === words)) return input;
  const named = known.filter(({ name }) => name === words);
  if (named.length === 0) return input;
  const withId = named.filter(({ id }) => id !== "");
  if (withId.length === 1) return { ...input, [key]: withId[0]?.id };
  const claimed = named.find((one) => one.claimed)?.claimed;
  if (withId.length === 0 && claimed) {
    throw new UserError(
      `The ID of the snapshot ${words} was named by ${claimed.by}, and nobody who sees every VM has confirmed it yet.`,
      "“Confirm its ID” on the card of that snapshot's request does it.",
    );
  }
  if (withId.length === 0) {
    throw new UserError(
      `The compute service gave no ID for the snapshot ${words}, so it can't be restored by its name.`,
      `\`/vm snapshots ${target.name}\` shows which have one.`,
    );
  }
  const choices = withId.map((one): [string, Input] => [
    `${takenAt(one)} (${one.id})`,
    { ...withTarget(command, input, target), [key]: one.id },
  ]);
  const several = `${withId.length} snapshots of ${target.name} are called ${words}.`;
  throw new PickSnapshot(several, choices);
}

/** Several snapshots have the name, newest first: a person picks. */
export class PickSnapshot extends UserError {
  readonly choices: readonly (readonly [label: string, input: Input])[];

  constructor(message: string, choices: PickSnapshot["choices"]) {
    super(message, `Name one by its ID: ${choices.map(([label]) => label).join(", ")}.`);
    this.choices = choices;
  }
}

export type Evidence = Approval["evidence"];

/** Facts for approvers, as read at the request; what says nothing isn't among them. */
export function gatherApprovalFacts(facts: {
  seen: Seen | undefined;
  vms: readonly Vm[];
  /** What Gatehouse makes of the VM's evidence now, in words; undefined where attestation is off. */
  attestation?: string | undefined;
  snapshot?: KnownSnapshot | undefined;
  /** Requests on the same target, newest first. */
  last: readonly StoredRequest[];
  command: string;
  /** Why one approval more is required than policy says. */
  raised?: string | undefined;
  /** What would be kept; then nothing is interrupted. */
  prepared?: Evidence | undefined;
  /** The VM whose snapshot it is, when that is another one. */
  foreignSnapshotOf?: string | undefined;
}): Evidence {
  const { seen, snapshot, last, prepared = [] } = facts;
  const vm = seen !== undefined && !Array.isArray(seen) && "projectId" in seen ? seen : undefined;
  const measurement = vm?.attestation?.measurement;
  const vms = facts.vms.map(({ name, status }) => `${name} (${status})`).join(", ");
  const isOther = snapshot !== undefined && snapshot.measurement !== measurement;
  const downtime = prepared.length > 0 ? undefined : expectedDowntime(facts.command, last);
  const rows: readonly (readonly [string, string | undefined | false, number?])[] = [
    [statusWhenRequested, seen && statusOf(seen)],
    ["VMs in the project", vms],
    ["Current attestation", facts.attestation],
    [
      "Attestation at snapshot",
      snapshot?.attestation !== facts.attestation && snapshot?.attestation,
    ],
    ["Current measurement", isOther && (measurement ? short(measurement) : "not known")],
    [
      "Measurement at snapshot",
      isOther && (snapshot.measurement ? short(snapshot.measurement) : "not known"),
    ],
    ["🚨 Another VM's snapshot", facts.foreignSnapshotOf && `taken of ${facts.foreignSnapshotOf}`],
    ["One additional approval", facts.raised],
    ...prepared,
    ["Expected downtime", downtime],
  ];
  return [
    ...rows.flatMap(([label, text]) => (text ? [[label, text] as const] : [])),
    ...last.slice(0, 3).map(earlierFact),
  ];
}

function short(measurement: string): string {
  return measurement.length <= 20
    ? measurement
    : `${measurement.slice(0, 8)}…${measurement.slice(-8)}`;
}

/** The median of earlier runs on this target. */
function expectedDowntime(command: string, last: readonly StoredRequest[]): string | undefined {
  const times = last
    .filter(
      ({ record, state, progress }) =>
        record.command === command && state === "done" && progress.sentAt !== undefined,
    )
    .map(({ changedAt, progress }) => changedAt - (progress.sentAt ?? changedAt))
    .toSorted((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  return median === undefined ? undefined : `about ${duration(median)}, as in earlier runs`;
}

/** With its time and not its age: the card stands for as long as the request waits. */
function earlierFact({ record, state }: StoredRequest): Evidence[number] {
  const { command, requester, createdAt } = record;
  return ["Earlier request", `${command} by ${requester.name}, ${stateWords(state)}`, createdAt];
}
