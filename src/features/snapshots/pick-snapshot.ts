import { type KnownSnapshot, snapshotName } from "../../fleet/inventory/snapshots.ts";
import { duration } from "../../messages/markdown.ts";
import type { Picker } from "../../talk/gateway-context.ts";
import { fitting, option } from "../../talk/suggestions.ts";
import { textAt } from "../../slack/json.ts";
import { parseJson } from "../../text/parse-json.ts";

/** Offers the snapshots of the form's VM. */
export const pickSnapshot: Picker = async ({ privateMetadata, typed: raw }, gateway) => {
  const typed = raw.trim();
  const known = await gateway.snapshots.of(textAt(parseJson(privateMetadata), "targetId"));
  const options = known
    .filter(({ id }) => id !== "")
    .map((snapshot) =>
      option(
        snapshot.id,
        snapshotName(snapshot, known, gateway.now()) || snapshot.id,
        describe(snapshot, gateway),
      ),
    );
  // An unknown ID may be valid: the compute service can't list snapshots
  return fitting(typed, options, option(typed, `Use the ID ${typed}`));
};

function describe({ at, id, isSafety }: KnownSnapshot, { now }: { now(): number }): string {
  return `${isSafety ? "safety snapshot, " : ""}${duration(now() - at)} old, ${id}`;
}
