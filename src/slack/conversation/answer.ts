import type { ReadContext } from "../../commands/context.ts";
import { ComputeError, type ConsoleSession } from "../../compute/compute.ts";
import { asksToSign } from "../../digests/line-buttons.ts";
import { UserError } from "../../errors.ts";
import {
  buttons,
  context,
  type Message,
  message,
  news,
  section,
  Markdown,
  md,
  name,
  when,
  howToOpen,
  inert,
} from "../../messages/message.ts";
import { mayRun } from "../../policy/refusal.ts";
import { type Answer, dottedName, type Target } from "../../registry/define.ts";
import {
  type Person,
  type ReadInvocation,
  type Input,
  type Invocation,
  withTarget,
} from "../../registry/invocation.ts";
import { resolveTarget, resolveOne } from "../../requests/submit/submit.ts";
import { linkTo } from "../deliver/rate-limiter.ts";
import { isOfThread, showOrSay } from "../deliver/post-once.ts";
import { uploadFile } from "../deliver/upload.ts";
import { errorReply, say } from "../error-reply.ts";
import { type Place, postMessage, textAt, type WebAnswer, whyOf } from "../web.ts";
import { type Interaction, isDirect, type Press } from "../receive/interaction.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  personOf,
  authorize,
  refuse,
  rules,
} from "./authorize.ts";
import { console } from "../../commands/vm/console.ts";
import { approvalRule, decide } from "../../policy/approval-rule.ts";
import { parseInput } from "../../registry/parse.ts";
import { type StoredRequest, stateWords } from "../../requests/journal/record.ts";
import {
  approvalProblem,
  asNamedNow,
  difference,
  readTarget,
  underNewPolicy,
} from "../../requests/perform/gate.ts";
import { placeOf, submitChange, takeTurn } from "./submit.ts";
import { moveOr } from "./vote.ts";
import { parseTime } from "../../text/parse-time.ts";

/** Answers a read command for an authorized person. */
export async function answer(
  invocation: ReadInvocation,
  person: Person,
  act: Act,
  isShared = false,
): Promise<void> {
  const { command, input } = invocation;
  const { interaction, reply } = act;
  const { message: own, file, isSharable } = await answerOf(invocation, person, act, { isShared });
  if (file && !(await sendFile(file, act))) await reply.privately(unsent(file));
  if (isShared) return postToChannel(withContext(own, md`Shared by ${person.name}`), act);
  if (command.audience === "channel" || isDirect(interaction)) return postToChannel(own, act);
  const mayShare =
    isSharable === true || (command.class === "read" && command.audience !== "asker");
  if (interaction.channelId === "" || !mayShare) return reply.privately(own);
  const value = JSON.stringify({ command: dottedName(command), input });
  const sharing = { label: "Share in channel", action: "share", value };
  await reply.privately(message(new Markdown(own.text), own.blocks, buttons([sharing])));
}

/** Runs a read command. `args` is what its schema parsed. */
export async function answerOf(
  { command, args }: Pick<ReadInvocation, "command" | "args">,
  person: Person,
  act: Asked,
  how: { approved?: string; isShared?: boolean } = {},
): Promise<Answer> {
  const answered = await command.answer(args as never, readContext(person, act, how) as never);
  return "message" in answered ? answered : { message: answered };
}

/** The same as JSON, for programs: what its shape names, and nothing else. Undefined where it has none. */
export async function jsonAnswerOf(
  { command: { data }, args }: Pick<ReadInvocation, "command" | "args">,
  person: Person,
  act: Asked,
): Promise<object | undefined> {
  return (
    data && data.shape.parse(await data.read(args as never, readContext(person, act) as never))
  );
}

/** Where it is asked, and what is seen from there. */
type Asked = BeforeAck<Pick<Interaction, "channelId">>;

function readContext(
  person: Person,
  { interaction: { channelId }, gateway }: Asked,
  { approved, isShared = false }: { approved?: string; isShared?: boolean } = {},
): ReadContext {
  const { policy, ourTeamId, inventory } = gateway;
  return {
    ...gateway,
    person,
    channelId,
    isShared,
    ...(approved === undefined ? {} : { approved }),
    journal: gateway.store,
    resolve: (kind, words) => resolveTarget(kind, words, inventory),
    mayRun: (one, targets = []) => mayRun({ policy, person, ourTeamId, command: one, targets }),
    linkTo: (posted) => linkTo(posted, gateway),
    async post(channel, digest) {
      const posted = await postIn({ channelId: channel }, digest, gateway);
      return posted.ok || posted.kind === "lost" ? undefined : whyOf(posted);
    },
  };
}

/** Posts in a channel. Where it asks to sign a review, who has signed is edited in. */
async function postIn(
  place: Place,
  posting: Message,
  { web, digests, announce }: GatewayContext,
): Promise<WebAnswer> {
  const postAt = (at: Place) => showOrSay(posting, (one) => postMessage(web, at, one));
  let posted = await postAt(place);
  const isShut = !posted.ok && posted.kind === "refused" && isOfThread(posted.error);
  if (isShut && place.threadTs) posted = await postAt({ channelId: place.channelId });
  if (!posted.ok || !asksToSign(posting)) return posted;
  const [channelId, ts] = [textAt(posted.data, "channel"), textAt(posted.data, "ts")];
  const id = `digest-${channelId}-${ts}`;
  await digests.posts(id);
  await announce({ id, channelId, message: posting }, ts);
  return posted;
}

/**
 * While Redis is unavailable nothing can be stored, so nothing may change. Reads still work: names come from memory,
 * everything else from the compute service. A redelivery is answered twice, which is harmless.
 */
export async function answerWithoutRedis(invocation: ReadInvocation, act: Act): Promise<void> {
  const { interaction, reply, gateway } = act;
  const { command, input } = invocation;
  const { channelId } = interaction;
  const note = md`⚠️ Redis is unavailable: this answer was read without Redis. Requests in progress aren't shown, and changes don't work until it is back.`;
  const privately = (said: Message) => reply.privately(withContext(said, note));
  try {
    const person = await personOf(act);
    const asked = { command, input, targets: [], person, channelId };
    const { refused } = decide(rules(asked, gateway));
    if (refused) return await reply.privately(say(md`${refused.text}`));
    await answer(invocation, person, { ...act, reply: { ...reply, privately } });
  } catch (error) {
    if (error instanceof UserError || error instanceof ComputeError)
      return privately(errorReply(error, gateway.log));
    gateway.log.info("read.needs-redis", { command: command.name, error });
    const needed = md`Redis doesn't answer, and ${name(`/${command.name}`)} needs it.`;
    await reply.privately(say(needed, md`Nothing was done. VM and project lists still work.`));
  }
}

function withContext({ text, blocks }: Message, note: Markdown): Message {
  return message(new Markdown(text), blocks, context(note));
}

export const unsent = ({ name: file }: NonNullable<Answer["file"]>) =>
  say(md`The file ${file} couldn't be sent to you: Slack isn't accepting files right now.`);

/** A file can't be ephemeral, so it goes to the requester's direct messages. False where Slack didn't take it. */
export async function sendFile(
  file: NonNullable<Answer["file"]>,
  { interaction: { userId }, gateway: { web, apiUrl } }: BeforeAck,
): Promise<boolean> {
  return (await uploadFile({ web, apiUrl, userId, ...file })) === undefined;
}

/** Shows an answer to the whole channel; where the bot is no member only the requester sees it, and how to change that. */
async function postToChannel(posting: Message, act: Act): Promise<void> {
  const { interaction, reply, gateway } = act;
  const posted = await postIn(interaction, posting, gateway);
  if (posted.ok || posted.kind === "lost") return;
  await reply.privately(posting);
  await reply.privately(say(whyPrivately(posted)));
}

type No = Exclude<WebAnswer, { ok: true }>;

/** About the channel only where Slack refused for the channel's sake. */
function whyPrivately(no: No): Markdown {
  if (no.kind !== "refused")
    return md`Slack isn't accepting channel messages right now, so only you see this.`;
  const way = howToOpen(no.error);
  return way
    ? md`Gatehouse can't post in this channel, so only you see this. ${way}`
    : md`Slack refused this message (${name(no.error)}), so only you see this.`;
}

/** When the compute service names no expiry. */
const shownForMs = 60_000;
/** A response URL works for half an hour. */
const longestMs = 25 * 60_000;
/** Longer than a button works (ms). */
const rememberMs = 3_600_000;

/**
 * Opens a console and shows its address in place of the button, until it expires. Only for the person it was offered to,
 * once and in time; other tries are recorded. The address exists only here and in that one ephemeral message, never in
 * Redis, logs, the audit trail or errors.
 */
export async function openConsole(act: Act<Press>, value: Input): Promise<void> {
  const { interaction, reply, gateway } = act;
  if (typeof value["vm"] !== "string") {
    throw new UserError("This button no longer works.", "Use `/vm console` again.");
  }
  const { insist, once, for: offeredTo, until: offeredUntil } = value;
  const args = parseInput(console, { vm: value["vm"], insist });
  const person = await personOf(act, { fresh: true });
  const vm = await asItIsNow(await resolveTarget("vm", value["vm"], gateway.inventory), gateway);
  const asked = { command: console, targets: [vm], person, channelId: interaction.channelId };
  const hint = "`/vm console` offers another.";
  const no = (rule: string, text: string) => refuse(asked, { rule, text, hint }, gateway);
  if (offeredTo !== person.id)
    await no("console.requester", "This console was offered to someone else.");
  const isOver = typeof offeredUntil !== "number" || offeredUntil <= gateway.now();
  if (isOver || typeof once !== "string" || once === "")
    await no("console.time", "This button works for one minute only.");
  await authorize(asked, gateway);
  // The checks of the command again: what was offered may not be allowed now
  await answerOf({ command: console, args }, person, act);
  const approved = await approvedRequest(value, vm, person, gateway);
  const frozen = await gateway.store.freezeState();
  if (frozen) throw new UserError(`All changes are frozen by ${frozen.by}, consoles too.`);
  await takeTurn({ command: console, person, target: vm, interactionId: interaction.id }, gateway);
  if (!(await gateway.store.useOnce(`console:${String(once)}`, rememberMs)))
    await no("console.once", "This button was already used.");
  const session = await openOnce(vm, person, approved, gateway);
  const now = gateway.now();
  const told = parseTime(session.expiresAt) ?? 0;
  const until = Math.min(told > now ? told : now + shownForMs, now + longestMs);
  const by = { who: person.id, team: person.teamId };
  const target = { kind: "vm", id: vm.id, name: vm.name };
  const insisted = typeof insist === "string" ? { insisted: insist.slice(0, 300) } : {};
  await gateway.store.note({ what: "console", ...by, target, until, ...insisted });
  const isShown = await reply.replace(addressMessage(vm.name, session.url, until));
  await postIn(interaction, consoleOpened(vm.name, person.name, until), gateway);
  const gone = say(
    md`The console on ${name(vm.name)} has expired. ${name("/vm console")} opens another.`,
  );
  // Also when Slack didn't confirm showing the address: it may
  const hide = () => (isShown ? reply.instead(gone) : reply.replace(gone));
  setTimeout(() => void hide(), until - now).unref();
  if (!isShown) {
    // In another message it could not be removed when it expires
    throw new UserError(
      `A console on ${vm.name} was opened, but its address isn't shown, because Gatehouse couldn't remove it later.`,
      "It closes automatically. `/vm console` offers another.",
    );
  }
}

/**
 * Where policy wants approvals first, a console is a request that waits for them; then its card has the button for its
 * requester. False where none are needed, and for every other command. Throws where this person may not open it on this VM.
 */
export async function asksFirst(
  { command, input, args }: Invocation,
  person: Person,
  act: Act,
): Promise<boolean> {
  if (command.kind !== "read" || !command.asRequest || args === undefined) return false;
  const { interaction, gateway } = act;
  const { asRequest } = command;
  const target = await resolveOne({ command: asRequest, input }, gateway);
  const place = placeOf(interaction);
  await authorize({ command, input, targets: [target], person, ...place }, gateway);
  const rule = approvalRule(gateway.policy, { command: asRequest, targets: [target] });
  if (interaction.kind === "mention" || rule.required === 0) return false;
  // What the command itself refuses needs nobody's approval
  await answerOf({ command, args }, person, act);
  const named = { command: asRequest, input: withTarget(asRequest, input, target), target, person };
  const via = interaction.kind === "button" ? ("button" as const) : ("command" as const);
  await submitChange({ ...named, ...place, via, interactionId: interaction.id }, act);
  return true;
}

/** Rules judge a console by the project that its VM has now, as the gate does; what is known of it may be a minute old. */
async function asItIsNow(known: Target, gateway: GatewayContext): Promise<Target> {
  const { id, projectId } = await gateway.compute.vms.get(known.id);
  const now = await asNamedNow({ ...known, id, projectId }, gateway);
  if (now) return now;
  throw new UserError(
    `The compute service doesn't find the project of ${known.name}, so nothing was opened.`,
    "Try again in a minute.",
  );
}

/** The button for the requester of an approved console, shown to nobody else. */
export async function offerApproved(
  { request, act }: { request: StoredRequest; act: Act },
  person: Person,
): Promise<void> {
  const { reply, gateway } = act;
  const { record } = request;
  if (record.requester.id !== person.id) {
    const asked = { command: console, targets: [record.target], person };
    const text = "This console was requested by someone else.";
    await refuse(asked, { rule: "console.requester", text }, gateway);
  }
  if (request.state !== "authorized") throw noLonger(request);
  const invocation = { command: console, args: parseInput(console, record.input) };
  const offer = await answerOf(invocation, person, act, { approved: record.id });
  await reply.privately(offer.message);
}

/** The request whose approvals cover this opening, checked as the gate does; undefined where none are needed. */
async function approvedRequest(
  { request: id, insist }: Input,
  vm: Target,
  person: Person,
  gateway: GatewayContext,
): Promise<StoredRequest | undefined> {
  const { asRequest } = console;
  const needed = approvalRule(gateway.policy, { command: console, targets: [vm] });
  if (!asRequest || (needed.required === 0 && id === undefined)) return undefined;
  const request = typeof id === "string" ? await gateway.store.get(id) : undefined;
  const asked = { command: console, person, targets: [vm] };
  const lacks = (text: string, hint: string) =>
    refuse(asked, { rule: "console.approval", text, hint }, gateway);
  const record = request?.record;
  const isIts =
    record?.command === asRequest.name &&
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
  const changed = seen === undefined ? `${vm.name} is gone` : difference(record.target, seen);
  if (changed !== undefined) return lacks(`${changed}.`, "Check it, then request again.");
  const problem = await approvalProblem(request, asRequest, { target: vm, vms: [] }, gateway);
  if (problem) return lacks(`No console: ${problem.why}.`, problem.hint ?? "Request it again.");
  return { ...request, progress: { ...request.progress, ...(seen ? { before: seen } : {}) } };
}

function noLonger(request: StoredRequest): UserError {
  return new UserError(
    `This console can't be opened: its request is ${stateWords(request.state)}.`,
    "`/vm console` requests another.",
  );
}

/** Nothing of the session is written down, but that it was opened, and by which approved request. */
async function openOnce(
  vm: Target,
  person: Person,
  approved: StoredRequest | undefined,
  gateway: GatewayContext,
): Promise<ConsoleSession> {
  if (!approved) return gateway.compute.vms.console(vm.id);
  const { store } = gateway;
  const progress = { ...approved.progress, sentAt: await store.now() };
  const actor = person.id;
  // The claim: from here on no vote counts, and nobody opens it a second time
  const claim = { state: "sending", attempt: approved.attempt + 1, progress, actor } as const;
  const claimed = await moveOr(approved, { ...claim, why: "opened by its requester" }, gateway);
  const end = async (state: "done" | "rejected" | "unclear", why: string) => {
    const after = state === "done" && progress.before ? { after: progress.before } : {};
    await store.move(claimed, { state, progress: { ...progress, ...after, why }, why, actor });
  };
  try {
    const session = await gateway.compute.vms.console(vm.id);
    await end("done", "the compute service returned an address");
    return session;
  } catch (error) {
    const isUnclear =
      !(error instanceof ComputeError) || ["unclear", "unexpected"].includes(error.kind);
    if (isUnclear) await end("unclear", "the compute service gave no clear answer");
    else await end("rejected", "the compute service didn't open a console");
    throw error;
  }
}

export function consoleOpened(vmName: string, by: string, until: number): Message {
  return message(
    news(md`${by} opened a console on ${vmName}`),
    section(md`🖥️ Console on ${name(vmName)} open by ${by} until ${when(until)}.`),
  );
}

function addressMessage(vmName: string, url: string, until: number): Message {
  const what = md`Console on ${name(vmName)}, good until ${when(until)}. Only you see this; it is removed automatically.`;
  const address = new Markdown(`\`\`\`${inert(url.replaceAll("`", "%60"))}\`\`\``);
  const how = md`Open it with your VNC or serial client. Don't share it: anyone with it controls the VM.`;
  return message(`Console on ${vmName}`, section(what), section(address), context(how));
}
