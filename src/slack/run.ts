import { UserError } from "../errors.ts";
import {
  type Message,
  buttons,
  type ButtonSpec,
  readable,
  section,
  message,
} from "../messages/message.ts";
import { md, name } from "../messages/text.ts";
import { refusal } from "../policy/refusal.ts";
import { metaOf } from "../registry/arguments.ts";
import type { ChangeCommand, Command, ReadCommand, ReadContext } from "../registry/define.ts";
import { parseCommand, parseInput } from "../registry/parse.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { submit } from "../requests/submit.ts";
import type { RequestRecord } from "../requests/record.ts";
import { apologise, hintOf, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { recentRequests } from "./recent.ts";
import { publicly } from "./publicly.ts";
import type { Reply } from "./reply.ts";
import { PickOne, resolveTarget } from "./resolve.ts";
import { dotted, isChange, type Talk } from "./talk.ts";

/** Words typed by a person: parsed, and run as what they name. */
export async function runWords(text: string, ask: Ask, reply: Reply, talk: Talk): Promise<void> {
  const parsed = parseCommand(text, talk.commands);
  if ("refusal" in parsed)
    return reply.privately(say(md`${parsed.refusal.text}`, hintOf(parsed.refusal.hint)));
  await run(parsed.command, parsed.input, ask, reply, talk);
}

/**
 * One command with its arguments as words, from wherever it was asked: typed, pressed or mentioned. The same rules for
 * all: who asks is looked up now, and policy decides before names are looked up, so that a stranger learns none.
 */
export async function run(
  command: Command,
  input: Record<string, unknown>,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  try {
    const args: unknown = parseInput(command, input);
    const person = await talk.person(ask.userId, ask.teamId);
    if (await isRefused(command, [], person, ask, reply, talk)) return;
    if (isChange(command)) await change(command, input, args, person, ask, reply, talk);
    else await answer(command, input, args, person, ask, reply, talk);
  } catch (error) {
    if (error instanceof PickOne) return reply.privately(pickList(command, input, error));
    await reply.privately(apologise(error, talk.log));
  }
}

async function answer(
  command: ReadCommand,
  input: Record<string, unknown>,
  args: unknown,
  person: Person,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const answered = await command.answer(args as never, readContext(person, ask, talk));
  if (command.audience === "channel") return publicly(answered, ask, reply, talk);
  const share = {
    label: "Share in channel",
    action: "share",
    value: JSON.stringify({ command: dotted(command), input }),
  };
  const isSharable = ask.channelId !== "" && command.name !== "gatehouse help";
  await reply.privately(
    isSharable ? message(answered.text, answered.blocks, buttons([share])) : answered,
  );
}

export function readContext(person: Person, ask: Ask, talk: Talk): ReadContext {
  return {
    person,
    channelId: ask.channelId,
    compute: talk.compute,
    inventory: talk.inventory,
    resolve: (kind, words) => resolveTarget(kind, words, talk.inventory),
    mayRun: (command) => refusalOf(command, [], person, ask.channelId, talk) === undefined,
    commands: talk.commands,
    recentRequests: (filter) => recentRequests(filter, talk.store),
    status: talk.status,
    now: talk.now,
  };
}

async function change(
  command: ChangeCommand,
  input: Record<string, unknown>,
  args: unknown,
  person: Person,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const targets = await resolveAll(command, args as Record<string, unknown>, talk);
  if (await isRefused(command, targets, person, ask, reply, talk)) return;
  if (targets.length > 1)
    throw new UserError("One at a time, please.", `\`/${command.name} ${targets[0]?.name ?? ""}\``);
  const [target] = targets;
  if (!target) throw new UserError("That names nothing.", `Try \`${command.example}\`.`);
  // A message is no proof that a person asked: what changes something from there is pressed (reliability.md, X10)
  if (ask.kind === "mention") return reply.privately(pressToConfirm(command, input, target));
  const submitted = await submit(
    {
      command,
      input: withTarget(command, input, target),
      target,
      person,
      channelId: ask.channelId,
      via: viaOf(ask),
      askId: ask.id,
      ...(ask.threadTs ? { threadTs: ask.threadTs } : {}),
      ...(ask.responseUrl ? { sealedResponseUrl: talk.seal(ask.responseUrl) } : {}),
    },
    {
      store: talk.store,
      policyVersion: talk.policyVersion,
      staleAfterMs: talk.policy.timing.staleAfterMs,
      wake: talk.wake,
    },
  );
  talk.nudge();
  if (!submitted.isNew) await reply.privately(await sameAgain(submitted.id, talk));
}

/** The same was asked a moment ago, or is still under way: that request stands for both. */
export async function sameAgain(id: string, talk: Talk): Promise<Message> {
  const request = await talk.store.get(id);
  const state = request ? (request.final ? request.state : "under way") : "on record";
  return say(
    md`You asked for this already: ${name(id)} is ${state}. It was not done a second time.`,
  );
}

async function resolveAll(
  command: ChangeCommand,
  args: Record<string, unknown>,
  talk: Talk,
): Promise<Target[]> {
  if (command.on === "new-project") {
    const newName = String(args["name"]);
    return [{ kind: "project", id: "", name: newName, projectId: "", status: "" }];
  }
  const words = [args[targetKey(command) ?? ""]].flat().filter((word) => typeof word === "string");
  const found: Target[] = [];
  for (const word of words) found.push(await resolveTarget(command.on, word, talk.inventory));
  return found;
}

/** The argument of a command that names its target. */
export function targetKey(command: Command): string | undefined {
  return Object.entries(command.args.shape).find(
    ([, schema]) => metaOf(schema as never).target !== undefined,
  )?.[0];
}

/** The input with the target by id: names may change hands, ids don't. */
export function withTarget(
  command: Command,
  input: Record<string, unknown>,
  target: Target,
): Record<string, unknown> {
  const key = targetKey(command);
  if (key === undefined || target.id === "") return input;
  const isList = Array.isArray(input[key]);
  return { ...input, [key]: isList ? [target.id] : target.id };
}

export async function isRefused(
  command: Command,
  targets: readonly Target[],
  person: Person,
  ask: Pick<Ask, "channelId">,
  reply: Pick<Reply, "privately">,
  talk: Talk,
): Promise<boolean> {
  const refused = refusalOf(command, targets, person, ask.channelId, talk);
  if (!refused) return false;
  await talk.store.note({
    what: "refusal",
    who: person.id,
    team: person.teamId,
    command: command.name,
    targets: targets.map(({ id }) => id),
    rule: refused.rule,
  });
  await reply.privately(say(md`${refused.text}`, hintOf(refused.hint)));
  return true;
}

function refusalOf(
  command: Command,
  targets: readonly Target[],
  person: Person,
  channelId: string,
  talk: Talk,
) {
  return refusal({
    policy: talk.policy,
    person,
    ourTeamId: talk.ourTeamId,
    command,
    targets: [...targets],
    channelId,
  });
}

function viaOf(ask: Ask): RequestRecord["via"] {
  return ask.kind === "button" ? "button" : ask.kind === "submission" ? "modal" : "command";
}

/** Buttons for the candidates; a press runs the same command on that one. What disrupts asks once more. */
function pickList(command: Command, input: Record<string, unknown>, pick: PickOne): Message {
  const specs = pick.candidates.slice(0, 20).map((target): ButtonSpec => {
    const label =
      target.kind === "vm"
        ? `${target.name} in ${target.projectName ?? target.projectId}`
        : target.name;
    return {
      ...runButton(command, input, target),
      label,
      action: `run:${dotted(command)}:${target.id}`,
    };
  });
  const more = pick.candidates.length - specs.length;
  return message(
    pick.message,
    section(
      more > 0
        ? md`${pick.message} ${more} more are not shown: \`project/name\` names one exactly.`
        : md`${pick.message}`,
    ),
    buttons(specs),
  );
}

function pressToConfirm(
  command: ChangeCommand,
  input: Record<string, unknown>,
  target: Target,
): Message {
  const text = md`${command.say.verb} ${name(target.name)}? Changes are pressed, not written in a message.`;
  return message(readable(text), section(text), buttons([runButton(command, input, target)]));
}

/** A button that runs a command on a target. */
export function runButton(
  command: Command,
  input: Record<string, unknown>,
  target: Target,
): ButtonSpec {
  const verb = isChange(command) ? command.say.verb : "Show";
  const value = JSON.stringify(withTarget(command, input, target));
  const base: ButtonSpec = { label: verb, action: `run:${dotted(command)}`, value };
  if (!isChange(command) || command.class === "change") return base;
  return {
    ...base,
    confirm: {
      title: `${verb} ${target.name}?`,
      text: `${target.name} is ${target.status}.`,
      confirm: verb,
      style: "danger",
    },
  };
}
