import { shortDigest } from "../approvals/digest.ts";
import { type ButtonSpec, buttons, context, fields } from "../messages/message.ts";
import { lines, Markdown, md, name, when } from "../messages/text.ts";
import type { KnownBlock } from "@slack/types";
import type { RequestRecord, StoredRequest } from "./record.ts";

/** Where a request stands while others decide: who said what, how many are missing, until when. */
export function askingLine({ record, votes }: StoredRequest): Markdown {
  const { approval } = record;
  if (!approval) return md`Waiting for an answer.`;
  const yes = votes.filter(({ vote }) => vote === "approve");
  const said = yes.length > 0 ? md` Approved by ${yes.map((vote) => vote.name).join(", ")}.` : md``;
  return md`Waiting for approval: ${yes.length} of ${approval.required}, until ${when(approval.expiresAt, "{time}")}.${said}`;
}

/** What an approver reads before they press, and the buttons. All of it is covered by the digest shown. */
export function askingBlocks(request: StoredRequest, approvers: readonly string[]): KnownBlock[] {
  const { record } = request;
  const { approval } = record;
  if (!approval) return [];
  const value = JSON.stringify({ request: record.id, digest: shortDigest(approval.digest) });
  const own = JSON.stringify({ request: record.id });
  const specs: ButtonSpec[] = [
    { label: "Approve", action: "vote:approve", value, style: "primary" },
    { label: "Deny", action: "vote:deny", value, style: "danger" },
    { label: "Cancel", action: "request:cancel", value: own },
  ];
  const shown = approval.evidence.map(([label, text]) => [label, md`${text}`] as const);
  const halves = [shown.slice(0, 10), shown.slice(10, 20)].filter((half) => half.length > 0);
  const parameters = parametersOf(record);
  return [
    ...(parameters.length > 0 ? [context(lines(...parameters))] : []),
    ...halves.map((half) => fields(half)),
    context(md`${approval.why} · digest ${name(shortDigest(approval.digest))}`, callOut(approvers)),
    ...buttons(specs),
  ];
}

/** Every argument but the target, which stands in the title: nobody should agree to what they weren't shown. */
export function parametersOf({
  input,
  target,
}: Pick<RequestRecord, "input" | "target">): Markdown[] {
  return Object.entries(input)
    .filter(([, given]) => [given].flat().some((one) => one !== target.id))
    .map(([key, given]) => md`${key}: ${name(given === true ? "yes" : [given].flat().join(", "))}`);
}

/** Those who may decide are called once, when the card is posted. */
function callOut(approvers: readonly string[]): Markdown {
  const called = approvers.flatMap((id) => {
    if (/^S[A-Z0-9]{2,}$/.test(id)) return [`<!subteam^${id}>`];
    return /^[UW][A-Z0-9]{2,}$/.test(id) ? [`<@${id}>`] : [];
  });
  return called.length > 0
    ? new Markdown(`Who may decide: ${called.join(" ")}`)
    : md`Every full member may decide.`;
}

/** Who decided, in words, once somebody has. */
export function decidedLine({ record, votes, state }: StoredRequest): Markdown | undefined {
  if (!record.approval) return undefined;
  const no = votes.find(({ vote }) => vote === "deny");
  if (no) return md`Denied by ${no.name}.`;
  const yes = votes.filter(({ vote }) => vote === "approve").map((vote) => vote.name);
  if (yes.length === 0 || state === "draft") return undefined;
  return md`Approved by ${yes.join(", ")}.`;
}
