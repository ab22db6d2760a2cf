import { UserError } from "../errors.ts";
import { type Message } from "../messages/blocks.ts";
import { md, when, withFullStop } from "../messages/markdown.ts";
import { scopeOfPerson } from "../core/permit/access.ts";
import type { Permit } from "../core/permit/permit.ts";
import { commandWithRole } from "../registry/command-roles.ts";
import {
  type ChangeCommand,
  dottedName,
  locksTarget,
  requestable,
  restoresSnapshot,
} from "../registry/define.ts";
import { emergencyWordsOf } from "../registry/emergency.ts";
import { type Input, type Person, asksForChange, withTarget } from "../registry/invocation.ts";
import { parseInvocation } from "../registry/parse.ts";
import { type ButtonOrigin, askerOf, repeatedBy, undoneBy } from "../core/request/origin.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { basisToUndo, savedBy } from "../core/request/saved-by.ts";
import { lookAt } from "../core/perform/judge.ts";
import { readTarget } from "../core/perform/read-target.ts";
import {
  lacksId,
  mayRetry,
  mayUndo,
  renderCard,
  whoMaySkip,
  withResult,
} from "../core/cards/render-card.ts";
import { endWords, isChannel, renderResult } from "../core/cards/render-result.ts";
import { describeChange } from "../core/cards/asking.ts";
import { say } from "../slack/error-reply.ts";
import { type Press, isDirect } from "../slack/receive/interaction.ts";
import { upperFirst } from "../text/letter-case.ts";
import { parseJson } from "../text/parse-json.ts";
import { answer } from "./answer.ts";
import {
  authorize,
  authorizeOnRequest,
  authorizeRecording,
  authorizeRequest,
  authorizeTargets,
} from "./authorize.ts";
import { openForm, refreshForm } from "./form.ts";
import {
  type Act,
  type Contributions,
  type PressHandler,
  changeNamed,
  commandNamed,
  outdated,
  personOf,
  type GatewayContext,
} from "./gateway-context.ts";
import { openOr, tooSlow } from "./reply-with-error.ts";
import { run, runNamed, runWords } from "./run.ts";
import { alreadyRequested, placeOf } from "./submit-change.ts";
import {
  alreadyResolved,
  idModal,
  authorizeAddingId,
  orJustChanged,
  reasonModal,
  vote,
} from "./vote.ts";
import { callOf, deciderOf, holderOf, noSetbacks, sentWords } from "../core/request/stage.ts";

/**
 * Handlers of presses by action. Buttons of commands are `run:…`; features add their own
 * (`Contributions`).
 */
const presses: Readonly<Record<string, PressHandler>> = {
  "vote:approve": vote,
  "vote:deny": vote,
  "request:show": onRequest(showRequest),
  "request:cancel": onRequest(byLists(cancel)),
  "request:look": onRequest(byLists(lookAgain)),
  "request:later": onRequest(byLists(askLater)),
  "request:record": onRequest(showBlocking),
  "request:happened": onRequest(askHappened),
  "request:not-happened": onRequest(askOutcome),
  "request:retry": onRequest(oncePerButton("retry", retry)),
  "request:again": onRequest(oncePerButton("again", requestAgain)),
  "request:undo": onRequest(oncePerButton("undo", undo)),
  "request:next": onRequest(oncePerButton("next", runNext)),
  "lost:run": runLost,
  share: shareAnswer,
  /** An option of a menu names in its value the action to handle. */
  menu: async (act, { do: action, ...of }) => {
    if (typeof action !== "string" || action === "menu") throw outdated();
    await press({ ...act, interaction: { ...act.interaction, action, value: JSON.stringify(of) } });
  },
};

/**
 * The first words of all actions: those of `presses`, of features, of commands, and of inputs of
 * forms.
 */
export const buttonFamilies = (contributed: Pick<Contributions, "presses">): readonly string[] => [
  ...new Set(
    [...Object.keys(presses), ...Object.keys(contributed.presses)].map(
      (action) => action.split(":")[0] ?? "",
    ),
  ),
  "run",
  "pick",
  "arg",
  "dialog",
];

export async function press(act: Act<Press>): Promise<void> {
  const { action, value: text } = act.interaction;
  const [kind = "", choice = ""] = action.split(":");
  if (action.endsWith(":refresh")) return refreshForm(act);
  // Inputs of a form count once the form is submitted.
  if (kind === "pick" || kind === "arg") return;
  const value = readValue(parseJson(text));
  if (kind === "run") {
    const command = commandNamed(choice, act.gateway);
    return runNamed({ command, input: value }, act);
  }
  const { presses: added } = act.gateway.contributed;
  const handlePress =
    pressHandlerIn(presses, action) ?? pressHandlerIn(added, action) ?? pressHandlerIn(added, kind);
  if (!handlePress) throw outdated();
  await handlePress(act, value);
}

/** The action comes from outside, so an inherited name like `constructor` must not match. */
const pressHandlerIn = (table: Contributions["presses"], name: string): PressHandler | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/**
 * Runs a typed command whose answer Slack lost (`lost-replies.ts`), unless it made a request
 * meanwhile.
 */
async function runLost(act: Act<Press>, { interaction, text }: Input): Promise<void> {
  if (typeof interaction !== "string" || typeof text !== "string") throw outdated();
  const origin = { kind: "typed", interaction } as const;
  const first = await act.gateway.store.madeBy(origin);
  if (first) return act.reply.privately(await alreadyRequested(first.record.id, act.gateway));
  await runWords(text, { ...act, origin });
}

/** Runs the command again and shows its answer to the whole channel. */
async function shareAnswer(act: Act<Press>, value: Input): Promise<void> {
  const command = commandNamed(String(value["command"]), act.gateway);
  const invocation = parseInvocation(command, readValue(value["input"] ?? {}));
  if (asksForChange(invocation)) throw outdated();
  const person = await personOf(act);
  const { channelId } = act.interaction;
  const { input } = invocation;
  const asking = await authorize({ command, input, person, channelId }, act.gateway);
  await answer(invocation, asking, act, { isShared: true });
}

export interface Pressed {
  request: StoredRequest;
  command: ChangeCommand;
  value: Input;
  act: Act<Press>;
}

/**
 * Wraps a handler for a button of a request. Refuses a press in a message of another channel than
 * the request's own.
 */
export function onRequest(handlePress: (pressed: Pressed) => Promise<unknown>): PressHandler {
  return async (act, value) => {
    const { interaction, gateway } = act;
    const request = await gateway.store.get(String(value["request"]));
    const command = changeNamed(request?.record.command, gateway);
    if (!request || !command) throw outdated();
    const { card, requestMessage: asked } = request.delivered;
    const isAlone = interaction.ephemeral || isDirect(interaction);
    const isElsewhere = card && interaction.channelId !== "" && !isAlone;
    const isTheirs = [card, asked].some((message) => message?.channelId === interaction.channelId);
    if (isElsewhere && !isTheirs) throw outdated();
    await handlePress({ request, command, value, act });
  };
}

/** Wraps a handler for people who may run the request's command on its target. */
export function byRight(
  handlePress: (pressed: Pressed, permit: Permit) => Promise<unknown>,
): (pressed: Pressed) => Promise<unknown> {
  return async (pressed) => {
    const { request, command, act } = pressed;
    const permit = await authorizeRequest(request, command, await personOf(act), act.gateway);
    await handlePress(pressed, permit);
  };
}

/** Wraps a handler that changes no target, for people whom the lists let run the command on it. */
function byLists(
  handlePress: (pressed: Pressed, person: Person) => Promise<unknown>,
): (pressed: Pressed) => Promise<unknown> {
  return async (pressed) => {
    const { request, command, act } = pressed;
    const person = await personOf(act);
    await authorizeOnRequest(request, command, person, act.gateway);
    await handlePress(pressed, person);
  };
}

type RequestButton = Extract<ButtonOrigin, { kind: "request" }>;
type RequestPress = RequestButton["press"];

/** Origin of a request that a button of this request makes. */
function buttonOf({ record }: StoredRequest, button: RequestPress, { next }: Input): RequestButton {
  const undoes = button === "undo" ? record.id : button === "retry" ? undoneBy(record) : undefined;
  return {
    kind: "request",
    request: record.id,
    press: button,
    ...(typeof next === "string" ? { command: next } : {}),
    ...(undoes === undefined ? {} : { undoes }),
  };
}

/**
 * Wraps a handler of a button that makes a follow-up request: one button makes one request, however
 * often and by whomever it is pressed.
 */
function oncePerButton(
  button: RequestPress,
  handlePress: (pressed: Pressed) => Promise<unknown>,
): (pressed: Pressed) => Promise<unknown> {
  return async (pressed) => {
    const { request, value, act } = pressed;
    const { interaction, reply, gateway } = act;
    const { userId } = interaction;
    const buttonOrigin = buttonOf(request, button, value);
    const first = await gateway.store.madeBy(buttonOrigin);
    if (first) {
      const used = "This button was already used.";
      return reply.privately(await alreadyRequested(first.record.id, gateway, used));
    }
    const isRepeated = repeatedBy({ origin: buttonOrigin }) !== undefined;
    const asker = isRepeated ? askerOf(request.record) : undefined;
    const origin = asker === undefined ? buttonOrigin : { ...buttonOrigin, asker };
    const { requester, channelId, threadTs } = request.record;
    const isTold = isDirect(interaction) && userId === requester.id && isChannel(channelId);
    // The requester presses in a direct message, but requested in a channel: go on in the channel,
    // where others see it.
    const place = isTold ? placeOf({ channelId, threadTs }) : {};
    return handlePress({
      ...pressed,
      act: { ...act, interaction: { ...interaction, ...place }, origin },
    });
  };
}

async function showRequest({ request, command, act }: Pressed): Promise<void> {
  const { channelId } = act.interaction;
  const person = await personOf(act);
  const { policy, commands, attestationNote, factsAfter, nameOf, learnNames } = act.gateway;
  const emergency = emergencyWordsOf.ifAny(act.gateway);
  const reader = commandWithRole(commands, "shows-request");
  if (!reader) throw outdated();
  await authorize({ command: reader, person, channelId }, act.gateway);
  const { final } = request;
  const after = final ? await attestationNote(request, command) : undefined;
  const goesOn = final ? await factsAfter(request, act.gateway.sees) : [];
  await learnNames(whoMaySkip(request, command, policy));
  const known = { policy, emergency, nameOf, commands, after };
  const card = renderCard(request, command, [], known);
  const result = renderResult(request, command, after, { isMentioned: false, goesOn, commands });
  await act.reply.privately(final ? withResult(result, card) : card);
}

async function runNext({ request, command, value, act }: Pressed): Promise<void> {
  const instead = request.state === "cancelled" ? request.stage.instead : undefined;
  const offered = [...(command.next ?? []), instead];
  const next = offered.find((step) => step?.command === value["next"]);
  if (!next) throw outdated();
  const named = commandNamed(next.command, act.gateway);
  const { target } = request.record;
  // A project that was just created is known by its name alone.
  const id = target.id === "" ? target.name : target.id;
  await run(parseInvocation(named, withTarget(named, {}, { id })), act);
}

async function retry(pressed: Pressed): Promise<void> {
  const { request, act } = pressed;
  const undoes = undoneBy(request.record);
  if (!mayRetry(request)) throw outdated();
  if (undoes === undefined) return requestAgain(pressed);
  const undone = await act.gateway.store.get(undoes);
  if (!undone) throw noLongerUndone(request, act.gateway);
  return openUndo({ ...pressed, request: undone }, request.record.reason);
}

/** Runs the command once more, as a new request of the person who pressed, with its own checks. */
async function requestAgain({ request, command, act }: Pressed): Promise<void> {
  const { input, reason } = request.record;
  const typed = commandNamed(dottedName(command), act.gateway);
  await run({ ...parseInvocation(typed, input), reason }, act);
}

/** Undoes a request, with its reason to begin with. */
async function undo(pressed: Pressed): Promise<void> {
  const { reason } = pressed.request.record;
  await openUndo(pressed, reason && `Undo: ${reason}`.slice(0, 500));
}

/**
 * Opens the form that restores the safety snapshot, with the approvals of any restore. People who
 * may approve a restore may request this one.
 */
async function openUndo({ request, act }: Pressed, reason: string | undefined): Promise<void> {
  const { gateway } = act;
  const saved = savedBy(request);
  const { target } = request.record;
  const restore = requestable(gateway.commands).find(restoresSnapshot);
  if (!restore || saved === undefined || !mayUndo(request, await gateway.store.now()))
    throw noLongerUndone(request, gateway);
  const person = await personOf(act);
  const { channelId } = act.interaction;
  const input = { vm: target.id, snapshot: saved.snapshotId };
  const basis = basisToUndo(request);
  const asking = await authorize({ command: restore, input, person, channelId, basis }, gateway);
  const permit = await authorizeTargets(asking, { targets: [target] }, gateway);
  const more = reason === undefined ? {} : { reason };
  if (!(await openForm(permit, act, more))) throw tooSlow();
}

function noLongerUndone(
  { record: { target } }: StoredRequest,
  { commands }: Pick<GatewayContext, "commands">,
): UserError {
  const lister = commandWithRole(commands, "lists-snapshots");
  const way = lister && `\`/${lister.name} ${target.name}\` lists what can be restored.`;
  return new UserError("This can no longer be undone from here.", way);
}

async function cancel({ request, command, act }: Pressed, { id, name }: Person): Promise<void> {
  const { reply, gateway } = act;
  if (request.state !== "authorized" && request.state !== "draft") {
    if (callOf(request.stage) === undefined)
      return reply.privately(alreadyOver(request, command, id));
    throw new UserError(
      "It is too late to cancel: it was already sent.",
      "The result will appear in the thread.",
    );
  }
  const setbacks = request.state === "authorized" ? request.stage.setbacks : noSetbacks;
  const decidedBy = { id, name };
  const to = { state: "cancelled", why: sentWords(setbacks), setbacks, decidedBy } as const;
  await orJustChanged(gateway.store.move(request, { to, why: "cancelled", actor: id }));
}

/** Says why there is nothing to cancel, for a request that ended without a call. */
function alreadyOver(request: StoredRequest, command: ChangeCommand, personId: string): Message {
  const { record, stage, state } = request;
  const isTheirs = state === "cancelled" && deciderOf(stage)?.id === personId;
  const how = isTheirs ? md`you canceled it` : endWords(request);
  // A denial keeps no setbacks, so after a claim it isn't known whether a call left before.
  const setbacks = "setbacks" in stage ? stage.setbacks : noSetbacks;
  const isKnown = "setbacks" in stage || request.attempt === 0;
  const sent = isKnown ? md` ${upperFirst(sentWords(setbacks))}.` : md``;
  const sign = isTheirs ? "✓ " : "";
  return say(md`${sign}${describeChange(record, command)}: ${withFullStop(how)}${sent}`);
}

/** Reads the target again and shows it; only a person resolves an unknown outcome. */
async function lookAgain({ request, act: { reply, gateway } }: Pressed): Promise<void> {
  if (request.state !== "unknown") throw alreadyResolved(request);
  const { seen } = await readTarget(request.record.target, gateway);
  const lastLook = lookAt(seen, await gateway.store.now());
  const reads = { ...request.stage.reads, last: lastLook };
  const to = { ...request.stage, reads };
  await gateway.store.move(request, { to, why: `looked again: ${lastLook.status}` });
  const text = md`${request.record.target.name} is ${lastLook.status} now. Only a person can tell whether this request did it.`;
  await reply.privately(say(text));
}

/**
 * Enough time to look elsewhere or to wake someone, and short enough for requests that wait behind
 * this one (ms).
 */
const asksAgainMs = 30 * 60_000;

async function askLater({ request, command, act }: Pressed, { id }: Person): Promise<void> {
  const { reply, gateway } = act;
  if (request.state !== "unknown") throw alreadyResolved(request);
  const asksAgainAt = (await gateway.store.now()) + asksAgainMs;
  const to = { ...request.stage, asksAgainAt };
  await orJustChanged(gateway.store.move(request, { to, why: "can't be told yet", actor: id }));
  const locked = locksTarget(command)
    ? md` Until it is recorded, ${request.record.target.name} stays locked for changes.`
    : md``;
  const text = md`Gatehouse asks again in its thread at ${when(asksAgainAt, "{time}")}.${locked}`;
  await reply.privately(say(text));
}

/** Shows the request with an unknown outcome that this request waits for. */
async function showBlocking({ request: { stage }, act }: Pressed): Promise<void> {
  const { store } = act.gateway;
  const blocking = await store.get(holderOf(stage)?.request ?? "");
  const command = changeNamed(blocking?.record.command, act.gateway);
  if (!blocking || !command) throw outdated();
  if (blocking.state !== "unknown") throw alreadyResolved(blocking);
  await authorizeRecording(blocking, command, await personOf(act), act.gateway);
  await act.reply.privately(renderCard(blocking, command));
}

/**
 * Asks what happened. If only the ID is missing, people who may run the command and administrators
 * may add it.
 */
async function askHappened(pressed: Pressed): Promise<unknown> {
  const { request, command, act } = pressed;
  if (!lacksId(request, command)) return askOutcome(pressed);
  const person = await personOf(act);
  await authorizeAddingId(request, command, person, act.gateway);
  const seesAll = scopeOfPerson(act.gateway.policy, person, act.gateway.ourTeamId) === undefined;
  return openOr(act, idModal(request, { seesAll }));
}

/** Asks for a reason before a person resolves an unknown outcome. */
async function askOutcome({ request, command, act }: Pressed): Promise<void> {
  const person = await personOf(act);
  await authorizeRecording(request, command, person, act.gateway);
  if (request.state !== "unknown") throw alreadyResolved(request);
  const { policy, ourTeamId } = act.gateway;
  const happened = act.interaction.action === "request:happened";
  const seesAll = scopeOfPerson(policy, person, ourTeamId) === undefined;
  await openOr(act, reasonModal(request, command, { happened, seesAll }));
}

function readValue(value: unknown): Input {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw outdated();
  return { ...value };
}
