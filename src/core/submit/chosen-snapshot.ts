import type { KnownSnapshot } from "../../fleet/inventory/snapshots.ts";
import type { DialogFacts } from "../../registry/define.ts";

/** The known snapshot that the input names, by its ID or its name. */
export function chosenSnapshot({ snapshots, input }: DialogFacts): KnownSnapshot | undefined {
  const words = input["snapshot"];
  return snapshots.find(({ id, name: called }) => id !== "" && (id === words || called === words));
}
