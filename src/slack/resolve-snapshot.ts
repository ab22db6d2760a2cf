import { UserError } from "../errors.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import { argumentsOf } from "../registry/usage.ts";
import type { Talk } from "./talk.ts";

/**
 * The input with a snapshot by its id, where a name was given that one known snapshot of this VM bears. An id that we
 * never saw passes: the service knows more than we do.
 */
export async function withSnapshotId(
  command: ChangeCommand,
  input: Record<string, unknown>,
  target: Target,
  { snapshots }: Pick<Talk, "snapshots">,
): Promise<Record<string, unknown>> {
  const key = argumentsOf(command).find(({ picker }) => picker === "snapshot")?.key;
  const words = key === undefined ? undefined : input[key];
  if (key === undefined || typeof words !== "string" || target.kind !== "vm") return input;
  const known = await snapshots.of(target.id);
  if (known.some(({ id }) => id === words)) return input;
  const named = known.filter(({ name }) => name === words);
  if (named.length === 0) return input;
  const withId = named.filter(({ id }) => id !== "");
  if (withId.length === 1) return { ...input, [key]: withId[0]?.id };
  if (withId.length === 0) {
    throw new UserError(
      `The service gave no id for the snapshot ${words}, so it can't be restored by its name.`,
      `\`/vm snapshots ${target.name}\` shows which have one.`,
    );
  }
  throw new UserError(
    `${withId.length} snapshots of ${target.name} are called ${words}.`,
    `Name one by its id: ${withId.map(({ id }) => `\`${id}\``).join(", ")}.`,
  );
}
