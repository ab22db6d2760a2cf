import { UserError } from "../errors.ts";
import { md, name } from "../messages/text.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { checkInput } from "../registry/parse.ts";
import type { Person } from "../registry/person.ts";
import { type Rolling, rollingArgs, rollingOf } from "../registry/rolling.ts";
import type { Target } from "../registry/target.ts";
import { argumentsOf } from "../registry/usage.ts";
import type { StoredRoll } from "../rolls/roll.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { inputOf } from "./dialog-view.ts";
import { parseJson, textAt } from "./payload.ts";
import type { Reply } from "./reply.ts";
import { rollRefusal } from "./roll-plan.ts";
import { asksNumber } from "./roll-view.ts";
import { isChange, type Talk } from "./talk.ts";

type Submission = Extract<Ask, { kind: "submission" }>;
type Errors = Record<string, string>;

/** Everything that is wrong with a submitted dialog for several VMs, by field; undefined when it may run. */
export async function checkRoll(
  ask: Submission,
  talk: Talk,
): Promise<{ errors: Errors } | undefined> {
  try {
    const { roll, command, targets, person } = await readPlanned(ask, talk);
    if (roll.state !== "planned") return undefined;
    const { errors } = readFields(ask, roll, command);
    const refused = rollRefusal(command, targets, person, roll.record.channelId, talk);
    if (refused !== undefined) errors["roll:most"] = refused;
    return Object.keys(errors).length > 0 ? { errors } : undefined;
  } catch (error) {
    if (error instanceof UserError) return { errors: { "roll:most": error.message } };
    throw error;
  }
}

/** The yes of a person: from here on a worker goes over the targets. Said twice, it is one roll. */
export async function submitRoll(ask: Submission, reply: Reply, talk: Talk): Promise<void> {
  const { roll, command, person } = await readPlanned(ask, talk);
  const { errors, input, options } = readFields(ask, roll, command);
  const [problem] = Object.values(errors);
  if (problem !== undefined) throw new UserError(problem);
  const record = { ...roll.record, input, options };
  if (roll.state === "planned") {
    // However many VMs: a person confirmed it once, with the number before their eyes
    const { limits } = talk.policy;
    await talk.store.takeTurn({ personId: person.id, askId: ask.id, destroys: false, limits });
  }
  const started =
    roll.state === "planned" &&
    (await talk.rolls.move(roll, {
      state: "running",
      progress: { ...roll.progress, startedAt: await talk.rolls.now() },
      record,
      why: `confirmed: ${roll.record.words}`,
      actor: person.id,
      tell: "now",
    }));
  if (!started)
    await reply.privately(
      say(md`You asked for this already: ${name(roll.record.id)} is under way.`),
    );
}

interface Planned {
  roll: StoredRoll;
  command: ChangeCommand;
  targets: readonly Target[];
  person: Person;
}

async function readPlanned(ask: Submission, talk: Talk): Promise<Planned> {
  const id = textAt(parseJson(ask.privateMetadata), "roll");
  const roll = await talk.rolls.get(id);
  const command = talk.commands.find(({ name: called }) => called === roll?.record.command);
  if (!roll || !command || !isChange(command))
    throw new UserError("This was open for too long: what it shows is old. Please ask again.");
  if (roll.record.requester.id !== ask.userId)
    throw new UserError("Only who asked for it can go on with it.");
  const person = await talk.person(ask.userId, ask.teamId);
  return { roll, command, targets: await talk.rolls.targets(id), person };
}

function readFields(
  ask: Submission,
  { record }: StoredRoll,
  command: ChangeCommand,
): { errors: Errors; input: Record<string, unknown>; options: Rolling } {
  const errors: Errors = {};
  const text = (field: string) => String(ask.values[field] ?? "").trim();
  const own = inputOf(command, record.input, ask.values);
  const shown = argumentsOf(command);
  const named = shown.find(({ target }) => target !== undefined);
  // Any one target will do: what is checked here is everything else
  const checked = checkInput(command, {
    ...own,
    ...(named ? { [named.key]: named.isList ? ["any"] : "any" } : {}),
  });
  for (const { key, text: why } of "problems" in checked ? checked.problems : [])
    errors[`arg:${key}` in ask.values ? `arg:${key}` : "roll:most"] ??= why;
  const most = rollingArgs.maxUnavailable.safeParse(text("roll:most"));
  if (!most.success) errors["roll:most"] = "A whole number from 1, or a percentage like 10%.";
  const failures = rollingArgs.stopOnFailure.safeParse(text("roll:failures"));
  if (!failures.success) errors["roll:failures"] = "A whole number from 1 to 1000.";
  if (asksNumber(record) && text("roll:number") !== String(record.total))
    errors["roll:number"] = `Type ${record.total}: so many VMs will be touched.`;
  const ticked = ask.values["roll:canary"];
  const canary = Array.isArray(ticked) ? ticked.length > 0 : Boolean(ticked);
  const options = rollingOf(
    command,
    { maxUnavailable: text("roll:most"), canary, stopOnFailure: text("roll:failures") },
    record.total,
  );
  return { errors, input: own, options };
}
