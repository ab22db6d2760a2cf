import type { Journal } from "../../core/request/journal.ts";
import type { Person } from "../../registry/invocation.ts";
import * as z from "zod";
import { shortFingerprint } from "../../core/permit/fingerprint.ts";
import { UserError } from "../../errors.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph, small } from "../../messages/parts.ts";
import { sentence } from "../../messages/card.ts";
import { type Markdown, lines, md, name, when, withFullStop } from "../../messages/markdown.ts";
import { needsInWords } from "../../core/permit/approval-rule.ts";
import { type Target, defineCommand, target } from "../../registry/define.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { namedNeeds } from "../../core/request/open-seats.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { isReviewed } from "../../core/request/record.ts";
import { stateWords, whyOf } from "../../core/request/stage.ts";
import { missingWords } from "../../core/cards/asking.ts";
import { stepWords } from "../../core/cards/tell-record.ts";
import { emergencyLine } from "../../core/cards/render-card.ts";
import { type PeopleNames, type TargetWords, type ReadContext, targetMeant } from "../context.ts";
import { diagnosis } from "../diagnosis.ts";
import { withNames } from "../../core/cards/known-people.ts";
import { show } from "../vm/show.ts";
import { plainForm } from "../../text/fold.ts";

const maxSteps = 25;

export const why = defineCommand({
  name: "gatehouse why",
  summary: "Say what is wrong with a VM, or show a request's history; alone, that of your last one",
  example: "/gatehouse why web-2",
  class: "read",
  votersToo: true,
  roles: ["shows-request"],
  answersQuestions: [
    "who",
    "why",
    "when",
    "what happened",
    "what is wrong",
    "what's wrong",
    "whats wrong",
    "what went wrong",
    "what broke",
    "what's up",
    "what is up",
    "what's the matter",
    "what is the matter",
  ],
  args: z.object({
    request: target("vm")
      .optional()
      .describe("a VM, or a request by its ID or its project; by default your last one"),
  }),
  async answer({ request: typed }, reading: ReadContext) {
    const diagnose = diagnosis.ifAny(reading);
    const plain = plainForm(typed ?? "");
    const words = requestId.test(plain) ? plain : typed;
    const isRequest = words === undefined || requestId.test(words);
    const meant = isRequest ? undefined : await targetMeant(words, reading);
    // Who may only vote on a request learns nothing else of its VM.
    if (diagnose && meant?.kind === "vm" && reading.mayRun(show, [meant]))
      return diagnose(meant, reading);
    return historyOf(await requestMeant(words, meant, reading), reading);
  },
});

const requestId = /^r-[a-z0-9]{4,20}$/;

async function historyOf(
  request: StoredRequest,
  reading: { journal: Journal } & PeopleNames,
): Promise<Message> {
  const { journal, nameOf, learnNames } = reading;
  const { record, votes, state, stage } = request;
  const reasonNow = whyOf(stage);
  const { approval, target: of, requester } = record;
  const history = await journal.history(record.id);
  await learnNames(history.flatMap(({ actor }) => actor ?? []));
  const called = (id: string) => votes.find(({ voterId }) => voterId === id)?.name ?? nameOf(id);
  const steps = history.map(({ at, state: reached, why: reason }) => {
    return md`• ${when(at)} ${withNames(stepWords(reached, reason), called)}`;
  });
  const voteLines = votes.map(
    ({ at, name: voter, vote }) =>
      md`• ${when(at)} ${voter} ${vote === "approve" ? "approved" : "denied"}`,
  );
  const head = md`*${record.command}* of ${name(of.name)} (${name(of.id)}), requested by ${requester.name} at ${when(record.createdAt)} (${name(record.id)}). ${withFullStop(md`State: ${stateWords(state)}${reasonNow ? md`: ${reasonNow}` : ""}`)}`;
  const reason = record.reason === undefined ? undefined : md`Reason: “${record.reason}”`;
  const rule = approval && withFullStop(md`Why: ${approval.why}`);
  const fingerprint = approval && md`Fingerprint ${name(shortFingerprint(approval.digest))}`;
  // While it waits, the reader knows the request and asks for the rule. Later it's the outcome.
  const [first, second] = rule && state === "draft" ? [rule, head] : [head, rule];
  return sentence(
    lines(first, ...(state === "draft" ? needLines(request) : [])),
    second && (state === "draft" ? paragraph(second) : small(second, ...needLines(request))),
    reason && paragraph(reason),
    fingerprint && small(fingerprint),
    isReviewed(record) ? small(emergencyLine(request)) : undefined,
    votes.length > 0 ? paragraph(lines(md`*Votes*`, ...voteLines)) : undefined,
    steps.length > 0
      ? paragraph(lines(stepsHead(steps.length), ...steps.slice(-maxSteps)))
      : undefined,
  );
}

const stepsHead = (all: number): Markdown =>
  all > maxSteps ? md`*Steps*: the last ${maxSteps} of ${all}` : md`*Steps*`;

/**
 * Lists the approvals that the request needs: from whom, who could give them, and which are
 * missing.
 */
function needLines(request: StoredRequest): Markdown[] {
  const needs = namedNeeds(request);
  if (!needs) return [];
  const missing = request.state === "draft" ? missingWords(request) : undefined;
  return needs.all.map(({ required, called, who }, index) => {
    const names =
      who === undefined ? "" : who.map((approver) => approver.name).join(", ") || "no one else";
    const could = names === "" ? "" : `: ${names}`;
    const open = missing && index === needs.all.length - 1 ? ` Still missing: ${missing}.` : "";
    return md`Needs ${needsInWords([{ required, called }])}${could}.${open}`;
  });
}

/**
 * The request by its ID, or the last one on a VM or project, or the person's last one. Throws
 * UserError.
 */
async function requestMeant(
  words: string | undefined,
  meant: Target | undefined,
  reading: { journal: Journal; person: Person } & TargetWords,
) {
  const { journal, person } = reading;
  const kept = "Requests are kept for 90 days.";
  if (words === undefined) {
    const [last] = await recentRequests({ requesterId: person.id, most: 1 }, journal);
    if (!last) throw new UserError("You have requested nothing yet.", kept);
    return last;
  }
  if (requestId.test(words)) {
    const request = await journal.get(words);
    if (request) return request;
    throw new UserError(`There is no request ${words}.`, kept);
  }
  // Something that is gone can be found only by its ID.
  const [last] = await recentRequests({ targetId: meant?.id ?? words, most: 1 }, journal);
  if (last) return last;
  const { name: called } = meant ?? (await reading.resolve("vm", words));
  throw new UserError(`There is no request on ${called}.`, kept);
}
