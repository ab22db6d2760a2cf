import { buttons, type ButtonSpec, message, type Message, section } from "../messages/message.ts";
import { hintOf, md } from "../messages/text.ts";
import { mayRun } from "../policy/refusal.ts";
import type { Command, ReadCommand, ReadContext } from "../registry/define.ts";
import { parseCommand, parseInput } from "../registry/parse.ts";
import type { Person } from "../registry/person.ts";
import { apologise, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { runInEmergency } from "./break-glass.ts";
import { change } from "./change.ts";
import { controlFor } from "./control.ts";
import { recentRequests } from "./recent.ts";
import { needsDialog } from "./dialog.ts";
import { isRefused } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { PickOne, resolveTarget } from "./resolve.ts";
import { runButton } from "./run-button.ts";
import { showAnswer } from "./show-answer.ts";
import { isChange, type Talk } from "./talk.ts";

/** Words typed by a person: parsed, and run as what they name. */
export async function runWords(text: string, ask: Ask, reply: Reply, talk: Talk): Promise<void> {
  const parsed = parseCommand(text, talk.commands);
  if ("refusal" in parsed) {
    return reply.privately(say(md`${parsed.refusal.text}`, hintOf(parsed.refusal.hint)));
  }
  const { command, input, breakGlass } = parsed;
  if (breakGlass !== undefined && isChange(command)) {
    return runInEmergency(command, input, breakGlass, ask, reply, talk);
  }
  await run(command, input, ask, reply, talk);
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
    const isForm = isChange(command) && needsDialog(command);
    // A form fills in what is missing; everything else must be right now
    const args: unknown = isForm ? input : parseInput(command, input);
    const person = await talk.person(ask.userId, ask.teamId);
    const asked = { command, targets: [], person, channelId: ask.channelId };
    if (await isRefused(asked, reply, talk)) return;
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
  const toChannel = command.audience === "channel";
  await showAnswer(answered, { command, input, toChannel }, ask, reply, talk);
}

export function readContext(person: Person, ask: Pick<Ask, "channelId">, talk: Talk): ReadContext {
  const { policy, ourTeamId } = talk;
  return {
    person,
    channelId: ask.channelId,
    compute: talk.compute,
    inventory: talk.inventory,
    snapshots: talk.snapshots,
    pins: policy.attestation.pins,
    resolve: (kind, words) => resolveTarget(kind, words, talk.inventory),
    mayRun: (command) => mayRun({ policy, person, ourTeamId, command }),
    commands: talk.commands,
    recentRequests: (filter) => recentRequests(filter, talk.store),
    status: talk.status,
    control: controlFor(person, ask.channelId, talk),
    now: talk.now,
  };
}

/** Buttons for the candidates; a press runs the same command on that one. What disrupts asks once more. */
function pickList(command: Command, input: Record<string, unknown>, pick: PickOne): Message {
  const specs = pick.candidates.slice(0, 20).map((target): ButtonSpec => {
    const label =
      target.kind === "vm"
        ? `${target.name} in ${target.projectName ?? target.projectId}`
        : target.name;
    const spec = runButton(command, input, target);
    return { ...spec, label, action: `${spec.action}:${target.id}` };
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
