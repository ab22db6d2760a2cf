import { UserError } from "../../errors.ts";
import { type Snapshots, takenWords } from "../../fleet/inventory/snapshots.ts";
import type { Target } from "../../registry/define.ts";
import { type Input, PickValue } from "../../registry/invocation.ts";
import { fold, plainForm } from "../../text/fold.ts";

/**
 * Replaces the name of a known snapshot of this VM by its ID. Unknown words are kept, because they
 * may be an ID. Throws PickValue when several snapshots have the name, and UserError when none of
 * them has a confirmed ID.
 */
export async function withSnapshotId(
  input: Input,
  target: Target,
  { snapshots, now }: { snapshots: Pick<Snapshots, "of">; now(): number },
): Promise<Input> {
  const words = input["snapshot"];
  if (typeof words !== "string") return input;
  const known = await snapshots.of(target.id);
  const byId = known.find(({ id }) => id !== "" && id === plainForm(words));
  if (byId) return { ...input, snapshot: byId.id };
  const exact = known.filter(({ name }) => name === words);
  const named = exact.length > 0 ? exact : known.filter(({ name }) => fold(name) === fold(words));
  if (named.length === 0) return input;
  const withId = named.filter(({ id }) => id !== "");
  if (withId.length === 1) return { ...input, snapshot: withId[0]?.id };
  const claimed = named.find((snapshot) => snapshot.claimed)?.claimed;
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
  const choices = withId.map((snapshot): [string, Input] => [
    takenWords(snapshot, withId, now()),
    { ...input, vm: target.id, snapshot: snapshot.id },
  ]);
  const several = `${withId.length} snapshots of ${target.name} are called ${words}.`;
  throw new PickValue(several, choices);
}
