import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { addChannel, seedDemo } from "../../../sandbox/slack/index.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { createRollouts } from "../../../src/features/rollouts/rollouts.ts";
import type { StoredRollout } from "../../../src/features/rollouts/rollout.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";
import { wordsIn } from "../../../sandbox/slack/describe-seen.ts";
import { hears, wordsOf } from "../../stories/words.ts";

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
  channel = "ops",
): Promise<void> {
  await person.types(channel, command);
  await dialogOf(person);
  const answer = await person.submits(values);
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
}

export function rollStore(world: TestWorld) {
  return createRollouts(world.client, world.key);
}

/** The only rollout, or the newest of a channel. */
export async function theRollout(world: TestWorld, channelId?: string): Promise<StoredRollout> {
  const keys = await world.client.keys(world.key("roll", "roll-????????"));
  const all = await Promise.all(
    keys.map((key) => rollStore(world).get(key.split(":").at(-1) ?? "")),
  );
  const [newest] = all
    .filter((rollout) => rollout !== undefined)
    .filter(({ record }) => channelId === undefined || record.channelId === channelId)
    .toSorted((a, b) => b.record.createdAt - a.record.createdAt);
  if (!newest) throw new Error("there is no roll");
  return newest;
}

/** The card of the rollout, as this person sees it. */
export function cardOf(person: PersonActions, channel = "ops"): SeenMessage | undefined {
  return person
    .seesChannel(channel)
    .messages.find(({ blocks }) => JSON.stringify(blocks).includes("roll-"));
}

/** The message that tells olivia how a rollout has ended. */
export const ended = /<@U0OLIVIA> ([\w ]+ (\d+ of )?\d+ VMs? \(|\w+ of \d+ VMs? was stopped)/;

/**
 * A world for several tests: for each a fleet, which is a project with as many VMs, and a channel with the same name. The VMs are called
 * `<name>-0`, `<name>-1`, and so on, and so are their IDs.
 */
export async function startFleets<Name extends string>(
  fleets: Readonly<Record<Name, number>>,
  options: Parameters<typeof startWorld>[0] = {},
) {
  const all = Object.entries<number>(fleets).map(([name, vms], n) => ({
    id: `C0FLEET${n}`,
    name,
    vms,
  }));
  const world = await startWorld({
    ...options,
    compute: { world: "empty", transitionMs: 40 },
    prepare: ({ edit }) => {
      for (const { name: project, vms } of all) {
        edit.addProject({ id: `prj-${project}`, name: project });
        for (let n = 0; n < vms; n += 1)
          edit.addVm({ project, name: `${project}-${n}`, id: `${project}-${n}` });
      }
    },
    slack: {
      seed(workspace) {
        seedDemo(workspace);
        const members = ["U0ADA", "U0OLIVIA", "U0AMIR", "U0VERA", workspace.app.botUserId];
        for (const { id, name } of all) addChannel(workspace, { id, name, members });
      },
    },
  });
  return {
    ...world,
    /** Begins a test with its fleet. */
    async fleet(name: Name) {
      // Slack's limits begin anew, too
      await world.client.del(world.key("pace", "edit"));
      world.compute.forget();
      const id = all.find((one) => one.name === name)?.id;
      return {
        vms: Array.from({ length: fleets[name] }, (_, n) => `${name}-${n}`),
        rolls: (command: string) => rollouts(world.olivia, command, {}, name),
        hears: (words: RegExp) => hears(world.olivia, name, words),
        end: async () => wordsOf(await hears(world.olivia, name, ended)),
        card: () => cardOf(world.olivia, name),
        rollout: () => theRollout(world, id),
        /** Lets a VM never come back from its restart, until the function that this returns is called. */
        holds(vm: string) {
          world.compute.weather({ match: `POST /v1/vms/${vm}/restart`, stuck: true, times: 1 });
          return () => {
            world.compute.edit.setStatus({ vm, status: "RUNNING" });
            world.compute.edit.setMachine({ vm });
          };
        },
      };
    },
  };
}
