import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { createRollouts } from "../../../src/features/rollouts/rollouts.ts";
import type { StoredRollout } from "../../../src/features/rollouts/rollout.ts";
import type { TestWorld } from "../../support/start-world.ts";
import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";

/** A fleet of VMs `vm-0000-000` and so on in the project `team-0000`; every fiftieth is stopped. */
export function fleetOf(vms: number, transitionMs = 40) {
  return { compute: { world: { projects: 1, vmsPerProject: vms }, transitionMs } };
}

/** Names of the fleet's VMs from one index up to, not including, another. */
export const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `vm-0000-${String(from + at).padStart(3, "0")}`);

/** The VMs that were asked to change, in the order of the calls. */
export const touched = (world: TestWorld): string[] =>
  world.compute.writes().map(({ path }) => path.split("/")[3] ?? "");

/** The text of the open dialog, once it shows more than that it is loading. */
export async function dialogOf(person: PersonActions): Promise<string> {
  const seen = await person.until(
    ({ modals }) =>
      modals.length > 0 && !/Loading the current/.test(JSON.stringify(modals[0]?.blocks)),
  );
  return wordsIn(seen.modals[0]?.blocks ?? [])
    .join("\n")
    .replaceAll(/[*`\u2060]/g, "");
}

/** Types the command and confirms its dialog. */
export async function rollouts(
  person: PersonActions,
  command: string,
  values: Record<string, string> = {},
): Promise<void> {
  await person.types("ops", command);
  await dialogOf(person);
  const answer = await person.submits(values);
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
}

export function rollStore(world: TestWorld) {
  return createRollouts(world.client, world.key);
}

/** The only rollout. */
export async function theRollout(world: TestWorld): Promise<StoredRollout> {
  const [key] = await world.client.keys(world.key("roll", "roll-????????"));
  const rollout = await rollStore(world).get(key?.split(":").at(-1) ?? "");
  if (!rollout) throw new Error("there is no roll");
  return rollout;
}

/** The card of the rollout, as this person sees it. */
export function cardOf(person: PersonActions): SeenMessage | undefined {
  return person
    .seesChannel("ops")
    .messages.find(({ blocks }) => JSON.stringify(blocks).includes("roll-"));
}
