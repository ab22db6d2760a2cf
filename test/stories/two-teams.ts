import { submissionPayload, suggestionPayload } from "../../sandbox/slack/deliver/payloads.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { personOf } from "../../sandbox/slack/state/people.ts";
import type { View } from "../../sandbox/slack/state/records.ts";
import { topModal } from "../../sandbox/slack/state/views.ts";
import { createRollouts } from "../../src/features/rollouts/rollouts.ts";
import { createSnapshots } from "../../src/fleet/inventory/snapshots.ts";
import { type FuzzWorld, startFuzzWorld } from "../fuzz/fuzz-world.ts";
import { createTally, type Tally } from "../fuzz/fuzzed.ts";
import { pressPayload } from "./forge.ts";
import { testTiming } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** So that no fleet is read whole for one name: what one name takes can be counted. */
const others = 55;

/**
 * Olivia and Vera are of one team, Amir and Ada of another, of whose things every name and ID holds these letters.
 * Olivia has a request waiting, and may have no second: what she asks for is answered, and never made.
 */
export const foreignLetters = "xqu";

const theirChannel = "C05LEADS";

const policy = `access:
  view: []
  operate: []
  approve: []
  administer: []
teams:
  ours:
    projects: ["payments", "staging"]
    view: ["U0VERA"]
    operate: ["U0OLIVIA"]
    approve: ["U0VERA"]
    breakGlass: ["U0OLIVIA"]
    channel: C02STATUS
  theirs:
    projects: ["xqu*"]
    operate: ["U0AMIR"]
    approve: ["U0ADA"]
    channel: C05LEADS
approvals:
  - { operations: ["*.*"], targets: ["payments/*", "staging/*", "payments", "staging"], required: 1, expires: 1h }
  - { operations: ["vm.stop"], required: 1, expires: 1h }
limits: { requestsPerMinute: 10000, draftsPerPerson: 1, destructivePerHour: 10000 }
${testTiming}
`;

/** What exists in the other team, and what a name in its place must be answered like. */
export interface Foreign {
  /** A VM by name, ID, and project/name; a project; a glob; a request; a rollout; a snapshot. */
  words: Readonly<Record<string, string>>;
  vmId: string;
  projectId: string;
  vm: string;
  project: string;
  draft: string;
  done: string;
  rollout: string;
  snapshot: string;
}

/** The same words of something that isn't there: as long, and as near to what Olivia sees. */
export function madeUp(words: string): string {
  if (words.startsWith("r-")) return "r-zzzz99zzzz";
  if (words.startsWith("roll-")) return `roll-${"2".repeat(words.length - 5)}`;
  if (words.startsWith("snap-")) return `snap-${"8".repeat(words.length - 5)}`;
  return words.replaceAll(foreignLetters, "jqw");
}

export interface TwoTeams extends AsyncDisposable {
  world: FuzzWorld;
  tally: Tally;
  theirs: Foreign;
  /** A card of Olivia's own, to press forged buttons on. */
  card: SeenMessage;
  /** Everything that Olivia is answered, and how often the service is asked for it. */
  answerTo(act: () => Promise<string | void>): Promise<Answered>;
  press(action: string, value: object): Promise<string | void>;
  submit(
    callback: string,
    metadata: object,
    values: Readonly<Record<string, string>>,
  ): Promise<string>;
  suggest(action: string, typed: string, metadata: object): Promise<string>;
  /** What of the other team could have been changed. */
  standing(): Promise<string>;
}

export interface Answered {
  text: string;
  calls: readonly string[];
}

export async function startTwoTeams(): Promise<TwoTeams> {
  const tally = createTally();
  const world = await startFuzzWorld(tally, {
    pace: { claimWindowMs: 60_000, sweepMs: 60_000, inventoryRefreshMs: 3_600_000 },
    mayDeliveriesFail: false,
    policy,
    prepare({ edit }) {
      for (const project of ["xqulab", "xquother"])
        edit.addProject({ id: `prj-${project}`, name: project });
      for (const name of ["xqudb", "xquweb", "xquapp-1", "xquapp-2", "xquapp-3"])
        edit.addVm({ id: `vm-${name}`, project: "xqulab", name });
      for (let n = 0; n < others; n += 1)
        edit.addProject({ id: `prj-other-${n}`, name: `other-${n}` });
    },
  });
  const { slack } = world;
  const amir = slack.person("amir");
  const olivia = slack.person("olivia");
  const rollouts = createRollouts(world.client, world.key);

  await amir.types("leads-only", "/vm snapshot xqudb xqunightly");
  await amir.types("leads-only", "/vm stop xqudb");
  const { record: taken } = await world.until(
    ({ record, final }) => final && record.command === "vm snapshot",
  );
  const { record: asked } = await world.until(({ state }) => state === "draft");
  const [snapshot] = await until(async () => {
    const known = await createSnapshots(world.client, world.key).of("vm-xqudb");
    return known.length > 0 ? known : undefined;
  });
  await amir.types("leads-only", "/vm restart xquapp-*");
  await amir.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
  const planned = topModal(slack.workspace, "U0AMIR")?.privateMetadata ?? "";
  const { roll } = JSON.parse(planned) as { roll: string };
  await amir.submits();
  await world.until(({ record, final }) => final && record.command === "vm restart");
  await amir.presses("roll:pause", { channel: "leads-only" });
  await until(async () => {
    const rollout = await rollouts.get(roll);
    if (rollout?.state !== "paused") return undefined;
    // What was claimed and not submitted before the pause has no request, and waits for Resume
    const open = rollout.progress.open.map(({ request }) => request);
    return (await world.store.getMany(open)).length === 0 || undefined;
  });

  await olivia.types("ops", "/vm stop db-1");
  const card = await slack.until(() =>
    olivia
      .seesChannel("status")
      .messages.find((one) => JSON.stringify(one).includes("vote:approve")),
  );
  await olivia.types("ops", "/project delete staging");
  await olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
  const template = topModal(slack.workspace, "U0OLIVIA");
  if (!template) throw new Error("no dialog is open");
  await olivia.closes({ all: true });
  await world.idle();
  // Her card is edited once more, with the way to where she asked
  await until(() => world.store.outbox.depth()).toBe(0);

  const theirs: Foreign = {
    words: {
      vm: "xqudb",
      "VM's ID": "vm-xqudb",
      "project/VM": "xqulab/xqudb",
      project: "xqulab",
      "project's ID": "prj-xqulab",
      glob: "xqu*",
      "glob in a project": "xqulab/*",
      request: asked.id,
      rollout: roll,
      snapshot: snapshot?.id ?? "",
    },
    vm: "xqudb",
    vmId: "vm-xqudb",
    project: "xqulab",
    projectId: "prj-xqulab",
    draft: asked.id,
    done: taken.id,
    rollout: roll,
    snapshot: snapshot?.id ?? "",
  };

  const view = (
    callbackId: string,
    metadata: object,
    values: Readonly<Record<string, string>>,
  ): View => ({
    ...template,
    id: slack.workspace.newId("V"),
    callbackId,
    privateMetadata: JSON.stringify(metadata),
    state: Object.fromEntries(
      Object.entries(values).map(([block, value]) => [
        block,
        { [block]: { type: "plain_text_input", value } },
      ]),
    ),
  });
  const person = personOf(slack.workspace, "olivia");

  return {
    world,
    tally,
    theirs,
    card,
    async answerTo(act) {
      slack.forgetCalls();
      world.compute.forget();
      const acked = (await act()) ?? "";
      await world.idle();
      await olivia.closes({ all: true }).catch(() => undefined);
      const said = slack
        .calls()
        .filter(({ method }) => !/^(users|usergroups|conversations|auth|team)\./.test(method))
        .filter(({ args }) => args["channel"] !== theirChannel)
        .map(({ method, args }) => `${method} ${JSON.stringify(args)}`);
      return {
        text: [acked, ...said].join("\n"),
        calls: world.compute.calls().map(({ method, path }) => `${method} ${path}`),
      };
    },
    async press(action, value) {
      await world.post(
        pressPayload(world, "olivia", card, { action, value: JSON.stringify(value) }),
      );
    },
    async submit(callback, metadata, values) {
      const payload = submissionPayload(slack.workspace, person, view(callback, metadata, values));
      return (await world.post(payload)).said;
    },
    async suggest(action, typed, metadata) {
      const place = { kind: "view", view: view("dialog", metadata, {}) } as const;
      const payload = suggestionPayload(slack.workspace, person, place, "b", action, typed);
      return (await world.post(payload)).said;
    },
    async standing() {
      const requests = (await world.requests())
        .filter(({ record }) => JSON.stringify(record.target).includes(foreignLetters))
        .map(({ record, state, votes, revision }) =>
          JSON.stringify([record.id, state, votes, revision]),
        );
      const rollout = await rollouts.get(roll);
      return JSON.stringify({
        requests: requests.toSorted(),
        rollout: [rollout?.state, rollout?.revision],
        snapshots: await createSnapshots(world.client, world.key).of("vm-xqudb"),
        vms: Object.values(world.compute.truth().vms).filter(({ id }) =>
          id.includes(foreignLetters),
        ),
        frozen: await world.store.freezeState(),
      });
    },
    [Symbol.asyncDispose]: () => world.close(),
  };
}
