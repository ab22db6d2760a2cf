import { console } from "./console.ts";
import {
  type Compute,
  ComputeError,
  type ConsoleSession,
  statusFacts,
} from "../../fleet/compute/compute.ts";
import { UserError } from "../../errors.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph } from "../../messages/parts.ts";
import { card } from "../../messages/card.ts";
import { Markdown, inert, md, name, when } from "../../messages/markdown.ts";
import { type Permit, permitAsRequest } from "../../core/permit/permit.ts";
import type { Command, Seen, Target } from "../../registry/define.ts";
import { type Input, type Person } from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest, RequestIn } from "../../core/request/stored-request.ts";
import { stateWords, type Call, noReads } from "../../core/request/stage.ts";
import { approvalProblem } from "../../core/perform/approvals-now.ts";
import { targetChange, underNewPolicy } from "../../core/perform/gate.ts";
import { moveIfStillOurs, withLearned } from "../../core/perform/send.ts";
import { asNamedNow, readTarget } from "../../core/perform/read-target.ts";
import { resolveTarget } from "../../core/submit/resolve-targets.ts";
import { patiently } from "../../redis/redis.ts";
import { parseTime } from "../../text/parse-time.ts";
import { say } from "../../slack/error-reply.ts";
import type { Press } from "../../slack/receive/interaction.ts";
import { answerOf, postIn } from "../../talk/answer.ts";
import { authorize, authorizeTargets, refuse } from "../../talk/authorize.ts";
import { type Act, type GatewayContext, personOf } from "../../talk/gateway-context.ts";
import { countAgainstLimits } from "../../talk/submit-change.ts";
import { orJustChanged } from "../../talk/vote.ts";
import { originOf } from "../../talk/act-origin.ts";
import type { Pressed } from "../../talk/press.ts";

/** How long an address is shown if the compute service names no expiry (ms). */
const shownForMs = 60_000;
/**
 * The longest time that an address is shown (ms): Slack's response URL, which removes it, works for
 * half an hour.
 */
export const longestMs = 25 * 60_000;
/** How long a used button is remembered (ms): longer than it works. */
const rememberMs = 3_600_000;

/**
 * Opens a console and replaces the button by its address until it expires. The console opens only
 * for the person it was offered to, once and in time; every other try is recorded. The address
 * exists only here and in that one ephemeral message, never in Redis, logs, the audit trail or
 * errors.
 */
export async function openConsole(act: Act<Press>, value: Input): Promise<void> {
  const { interaction, reply, gateway } = act;
  if (typeof value["vm"] !== "string") {
    throw new UserError("This button no longer works.", "Use `/vm console` again.");
  }
  const { insist, once, for: offeredTo, until: offeredUntil } = value;
  const args = parseInput(console, { vm: value["vm"], insist });
  const person = await personOf(act, { fresh: true });
  const offered = { command: console, targets: [{ id: value["vm"] }], person };
  const hint = "`/vm console` offers another.";
  const no = (rule: string, text: string) => refuse(offered, { rule, text, hint }, gateway);
  if (offeredTo !== person.id)
    await no("console.requester", "This console was offered to someone else.");
  const isOver = typeof offeredUntil !== "number" || offeredUntil <= gateway.now();
  if (isOver || typeof once !== "string" || once === "")
    await no("console.time", "This button works for one minute only.");
  const { channelId } = interaction;
  const input = { vm: value["vm"], insist };
  const asking = await authorize({ command: console, input, person, channelId }, gateway);
  const known = await resolveTarget(asking, "vm", value["vm"], gateway.inventory);
  const vm = await asItIsNow(known, gateway);
  const permit = await authorizeTargets(asking, { targets: [vm] }, gateway);
  // Run the command's checks again: what was offered may not be allowed now.
  await answerOf({ command: console, args }, asking, act);
  const approved = await approvedRequest(value, permit, gateway);
  await countAgainstLimits(
    { command: console, person, target: vm, origin: originOf(act) },
    gateway,
  );
  const used = await gateway.store.useOnce(`console:${String(once)}`, rememberMs);
  if (used.kind === "frozen")
    throw new UserError(`All changes are frozen by ${used.freeze.by}, consoles too.`);
  if (used.kind === "again") await no("console.once", "This button was already used.");
  const insisted = typeof insist === "string" ? { insisted: insist.slice(0, 300) } : {};
  const opening = { id: String(once), vm, person, approved, insisted };
  const { url, until } = await openOnRecord(opening, gateway);
  const isShown = await reply.replace(addressMessage(vm.name, url, until));
  await postIn(interaction, consoleOpened(vm.name, person.name, until), gateway);
  const gone = say(
    md`The console on ${name(vm.name)} has expired. ${name("/vm console")} opens another.`,
  );
  // Hide the address even if Slack didn't confirm showing it, because it may be shown.
  const hide = () => (isShown ? reply.instead(gone) : reply.replace(gone));
  setTimeout(() => void hide(), until - gateway.now()).unref();
  if (!isShown) {
    // The address can't go into another message, because it couldn't be removed there when it
    // expires.
    throw new UserError(
      `A console on ${vm.name} was opened, but its address isn't shown, because Gatehouse couldn't remove it later.`,
      "It closes automatically. `/vm console` offers another.",
    );
  }
}

/**
 * Reads the VM and its project now. Rules judge a console by the project that the VM is in now, as
 * the gate does; what Gatehouse knows may be a minute old. Throws UserError when the project can't
 * be found.
 */
async function asItIsNow(known: Target, gateway: GatewayContext): Promise<Target> {
  const { id, projectId, status } = await gateway.compute.vms.get(known.id);
  if (statusFacts(status).isStopped)
    throw new UserError(`${known.name} is stopped.`, "`/vm start` starts it.");
  const now = await asNamedNow({ ...known, id, projectId }, gateway);
  if (now) return now;
  throw new UserError(
    `The compute service doesn't find the project of ${known.name}, so nothing was opened.`,
    "Try again in a minute.",
  );
}

/**
 * Shows the button of an approved console to its requester and to nobody else. Throws Refused and
 * UserError.
 */
export async function offerApproved(
  { request, act }: Pressed,
  { asking, person }: Permit,
): Promise<void> {
  const { reply } = act;
  const { record } = request;
  if (record.requester.id !== person.id) {
    const asked = { command: console, targets: [record.target], person };
    const text = "This console was requested by someone else.";
    await refuse(asked, { rule: "console.requester", text }, act.gateway);
  }
  if (request.state !== "authorized") throw noLonger(request);
  const invocation = { command: console, args: parseInput(console, record.input) };
  const offer = await answerOf(invocation, asking, act, { approved: record.id });
  await reply.privately(offer.message);
}

interface Approved {
  request: RequestIn<"authorized">;
  /** The VM as it was just read. */
  before: Seen | undefined;
}

/**
 * Finds the request whose approvals cover this opening, checked as the gate does; undefined when no
 * approval is needed. Throws Refused and UserError.
 */
async function approvedRequest(
  { request: id, insist }: Input,
  given: Permit<Command>,
  gateway: GatewayContext,
): Promise<Approved | undefined> {
  const { target: vm, person, approvals: needed } = given;
  const permit = permitAsRequest(given);
  if (!permit || (needed.required === 0 && id === undefined)) return undefined;
  const request = typeof id === "string" ? await gateway.store.get(id) : undefined;
  const asked = { command: console, person, targets: [vm] };
  const lacks = (text: string, hint: string) =>
    refuse(asked, { rule: "console.approval", text, hint }, gateway);
  const record = request?.record;
  const isIts =
    record?.command === permit.command.name &&
    record.target.id === vm.id &&
    record.requester.id === person.id &&
    record.input["insist"] === insist;
  if (!request || !isIts)
    return lacks(`This console needs approval: ${needed.why}.`, "`/vm console` requests it.");
  if (request.state !== "authorized" || record.runsUntil < (await gateway.store.now()))
    throw noLonger(request);
  if (record.policyVersion !== gateway.policyVersion)
    return lacks("The policy changed since this request.", underNewPolicy);
  const { seen } = await readTarget(record.target, gateway);
  const changed = seen === undefined ? `${vm.name} is gone` : targetChange(record.target, seen);
  if (changed !== undefined) return lacks(`${changed}.`, "Check it, then request again.");
  const problem = await approvalProblem(request, permit, [], gateway);
  if (problem) return lacks(`No console: ${problem.why}.`, problem.hint ?? "Request it again.");
  return { request, before: seen };
}

function noLonger(request: StoredRequest): UserError {
  return new UserError(
    `This console can't be opened: its request is ${stateWords(request.state)}.`,
    "`/vm console` requests another.",
  );
}

interface Opening {
  /** The ID of the button, which opens once. Each record of the opening has it. */
  id: string;
  vm: Target;
  person: Person;
  approved: Approved | undefined;
  /** Why an administrator opens it although the VM isn't verified. */
  insisted: { insisted?: string };
}

/**
 * Opens the console. The audit trail has a record before the call leaves, so that no console opens
 * without a trace when the process dies or Redis fails, and another one of what came of it. An
 * opening without a second record may have happened.
 */
async function openOnRecord(
  { id: opening, vm, person, approved, insisted }: Opening,
  gateway: { store: Journal; compute: Compute; now(): number },
): Promise<{ url: string; until: number }> {
  const { store, compute } = gateway;
  const { id, name: called, projectId, projectName } = vm;
  const target = { kind: "vm", id, name: called, projectId, projectName };
  const fields = { who: person.id, team: person.teamId, target, ...insisted, opening };
  /** A Redis that is slow may have taken the record already, so each is written once. */
  const note = (kind: string, more: object = {}) =>
    patiently(() => store.noteOnce(`${kind} ${opening}`, { what: kind, ...fields, ...more }));
  const claimed = approved && (await claimApproved(approved, person, store));
  const end = async (how: keyof typeof ends) =>
    claimed && patiently(() => endApproved(claimed, how, person, store));
  try {
    await note("console-opening");
  } catch (error) {
    await end("unrecorded");
    throw error;
  }
  let session: ConsoleSession;
  try {
    session = await compute.vms.console(vm.id);
  } catch (error) {
    const isUnclear =
      !(error instanceof ComputeError) || ["unclear", "unexpected"].includes(error.kind);
    await end(isUnclear ? "unclear" : "rejected");
    if (!isUnclear) await note("console-unopened");
    throw error;
  }
  const now = gateway.now();
  const expiresAt = parseTime(session.expiresAt) ?? 0;
  const until = Math.min(expiresAt > now ? expiresAt : now + shownForMs, now + longestMs);
  await note("console", { until });
  await end("done");
  return { url: session.url, until };
}

/**
 * Claims an approved request: from here on no vote counts, and nobody opens it a second time. Throws
 * UserError when something else moved it first.
 */
async function claimApproved(
  { request, before }: Approved,
  { id: actor }: Person,
  store: Journal,
): Promise<RequestIn<"sending">> {
  const { setbacks } = request.stage;
  const read = before === undefined ? {} : { before };
  const call: Call = { sentAt: await store.now(), ...read };
  const moving = store.move(request, {
    to: { state: "sending", call, reads: noReads, setbacks },
    attempt: request.attempt + 1,
    why: "opened by its requester",
    actor,
  });
  return orJustChanged(moving);
}

const ends = {
  done: { state: "done", why: "the compute service returned an address" },
  rejected: { state: "rejected", why: "the compute service didn't open a console" },
  unclear: { state: "unclear", why: "the compute service gave no clear answer" },
  unrecorded: { state: "rejected", why: "it couldn't be recorded, so no console was asked for" },
} as const;

/** Ends a claimed request by what came of its call. Polls may have saved reads meanwhile. */
async function endApproved(
  claimed: RequestIn<"sending">,
  how: keyof typeof ends,
  { id: actor }: Person,
  store: Journal,
): Promise<void> {
  const { state, why } = ends[how];
  const endedAt = await store.now();
  const { before } = claimed.stage.call;
  const after = state === "done" && before ? { after: before } : {};
  await moveIfStillOurs(
    claimed,
    (now) => ({ state, why, ...withLearned(now, { endedAt }), ...after }),
    { why, actor },
    store,
  );
}

export function consoleOpened(vmName: string, opener: string, until: number): Message {
  return card({
    sign: "🖥️",
    title: md`${opener} opened a console on ${name(vmName)}, until ${when(until)}.`,
    push: md`${opener} opened a console on ${vmName}`,
  });
}

export function addressMessage(vmName: string, url: string, until: number): Message {
  const title = md`Console on ${name(vmName)}, good until ${when(until)}. Only you see this; it is removed automatically.`;
  const address = new Markdown(`\`\`\`${inert(url.replaceAll("`", "%60"))}\`\`\``);
  const client = /^wss?:/i.test(url)
    ? md`It is a WebSocket: ${name("websocat")} opens a serial console, ${name("noVNC")} a screen.`
    : md`Open it with your VNC or serial client.`;
  const how = md`${client} Don't share it: anyone with it controls the VM.`;
  return card({ title, body: [paragraph(address)], meta: [how] });
}
