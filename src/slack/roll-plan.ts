import { UserError } from "../errors.ts";
import { buttons, message, type Message, readable, section } from "../messages/message.ts";
import { lines, md, name, plain } from "../messages/text.ts";
import { rollingOf, withoutRolling } from "../registry/rolling.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { argumentsOf } from "../registry/usage.ts";
import { count } from "../rolls/render-roll.ts";
import { csv } from "../messages/csv.ts";
import { newRollId, type RollRecord, rollVersion } from "../rolls/roll.ts";
import { apologise } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { loadingView, stoppedView } from "./dialog-view.ts";
import { refusalOf } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { needApproval, readNow, sortOut } from "./roll-sort.ts";
import type { Several } from "./roll-targets.ts";
import { mostListed, rollView } from "./roll-view.ts";
import type { Talk } from "./talk.ts";
import { uploadFile } from "./upload.ts";

/** Somebody names several VMs: what would happen to which of them is shown, and nothing runs before they say yes. */
export async function proposeRoll(
  command: ChangeCommand,
  input: Record<string, unknown>,
  several: Several,
  person: Person,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const title = plain(`${command.say.verb} ${count(several.targets.length, "VM")}`, 24);
  const opened = ask.kind === "mention" ? undefined : await reply.open(loadingView(title));
  try {
    const planned = await planRoll(command, input, several, person, ask, talk);
    if (!opened) return await reply.privately(pressToGoOn(planned.record, command));
    const hasFile = await sendList(planned.targets, person, talk);
    const view = rollView({ command, ...planned, hasFile });
    await reply.update(opened.id, view);
  } catch (error) {
    if (!opened) throw error;
    const { text } = apologise(error, talk.log);
    await reply.update(opened.id, stoppedView(title, md`${text}`));
  }
}

/** Looks at what stands now and writes down what is proposed. Throws UserError where nothing of it may or need be done. */
async function planRoll(
  command: ChangeCommand,
  input: Record<string, unknown>,
  several: Several,
  person: Person,
  ask: Ask,
  talk: Talk,
): Promise<{ record: RollRecord; targets: readonly Target[] }> {
  const now = await readNow(several.targets, talk);
  const sorted = sortOut(command, input, now.targets, talk);
  const { targets } = sorted;
  const leftOut = [...now.leftOut, ...sorted.leftOut];
  if (targets.length === 0) {
    const reasons = [...new Set(leftOut.map(({ why }) => why))].slice(0, 5).join("; ");
    throw new UserError(
      `None of the ${several.targets.length} VMs is left to ${command.say.verb.toLowerCase()}: ${reasons}.`,
      "Nothing was done.",
    );
  }
  const needing = needApproval(command, targets, talk);
  if (needing) {
    const names = needing.targets.slice(0, 5).map((target) => target.name);
    const more = needing.targets.length - names.length;
    throw new UserError(
      `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""} can't go with the others: ${needing.why}.`,
      "Ask for those one by one; each approval is for one VM. Nothing was done.",
    );
  }
  const named = argumentsOf(command).find(({ target }) => target !== undefined)?.key ?? "";
  const { [named]: _targets, ...own } = withoutRolling(command, input);
  const record: RollRecord = {
    v: rollVersion,
    id: newRollId(),
    command: command.name,
    input: own,
    words: plain(several.words, 200),
    options: rollingOf(command, input, targets.length),
    total: targets.length,
    ...(several.isEverything ? { isEverything: true } : {}),
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    channelId: ask.channelId || person.id,
    ...(ask.threadTs ? { threadTs: ask.threadTs } : {}),
    policyVersion: talk.policyVersion,
    leftOut,
    createdAt: talk.now(),
  };
  await talk.rolls.plan(record, targets);
  return { record, targets };
}

/** The same dialog from a button: for asks that can't open one, or whose trigger was too old. */
export async function openPlanned(
  rollId: string,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const roll = await talk.rolls.get(rollId);
  const command = talk.commands.find(({ name: called }) => called === roll?.record.command);
  if (!roll || roll.state !== "planned" || command?.kind !== "change")
    throw new UserError("That is too old, or was asked for already.", "Please ask again.");
  if (roll.record.requester.id !== ask.userId)
    throw new UserError("Only who asked for it can go on with it.");
  const targets = await talk.rolls.targets(rollId);
  const person = await talk.person(ask.userId, ask.teamId);
  const refused = rollRefusal(command, targets, person, roll.record.channelId, talk);
  if (refused !== undefined) throw new UserError(refused);
  const view = rollView({ command, record: roll.record, targets, hasFile: false });
  if (!(await reply.open(view)))
    throw new UserError("That took too long to open.", "Please press again.");
}

function pressToGoOn(record: RollRecord, command: ChangeCommand): Message {
  const text = lines(
    md`${command.say.verb} ${count(record.total, "VM")} (${name(record.words)})?`,
    md`Please press the button: it shows each of them, and nothing happens before you say yes.`,
  );
  const value = JSON.stringify({ roll: record.id });
  const look = { label: `Look at ${count(record.total, "VM")}`, action: "roll:open", value };
  return message(readable(text), section(text), buttons([look]));
}

/** Too many for a dialog: all of them as a file, to the asker alone. */
async function sendList(targets: readonly Target[], person: Person, talk: Talk): Promise<boolean> {
  if (targets.length <= mostListed) return false;
  const rows = targets.map((target) => [
    target.name,
    target.projectName ?? target.projectId,
    target.status,
    target.id,
  ]);
  const sent = await uploadFile({
    web: talk.web,
    apiUrl: talk.apiUrl,
    to: { userId: person.id },
    name: "vms.csv",
    title: `${targets.length} VMs`,
    content: csv([["VM", "Project", "Status", "Id"], ...rows]),
  });
  return sent.is === "posted";
}

/** Why this person may not run it on these any more, as a sentence. */
export function rollRefusal(
  command: ChangeCommand,
  targets: readonly Target[],
  person: Person,
  channelId: string,
  talk: Talk,
): string | undefined {
  const refused = refusalOf({ command, targets, person, channelId }, talk);
  if (refused) return refused.text;
  const needing = needApproval(command, targets, talk);
  return needing && `${needing.targets[0]?.name ?? ""} needs approval: ${needing.why}.`;
}
