import { UserError } from "../../errors.ts";
import { type Snapshots, takenAt } from "../../inventory/snapshots.ts";
import { type ChangeCommand, type Target, argumentsOf } from "../../registry/define.ts";
import { type Input, withTarget } from "../../registry/invocation.ts";

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
