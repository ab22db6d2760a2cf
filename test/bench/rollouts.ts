import type { Figure } from "./figure.ts";
import { type Pace, usualPace } from "../../src/config/policy-schema.ts";
import { startWorld } from "../../sandbox/world.ts";

export interface RolloutFigures {
  vms: number;
  /** Of all of them, from the yes to the last one. */
  seconds: number;
  /** Reads of the project's VMs while they settled, for each VM; the read of each VM before its send not counted. */
  pollsPerVm: number;
  slackCalls: number;
  /** What they may be: 60 and one for each 5 seconds. */
  slackCallsAllowed: number;
  /** VMs that were not restarted exactly once: must be 0. */
  wrong: number;
}

const pace: Pace = {
  ...usualPace,
  restartMarkMs: 10_000,
  pollFirstMs: 100,
  pollMostMs: 1_000,
  stableGapMs: 200,
  transitionGapMs: 200,
  inventoryRefreshMs: 3_600_000,
};

/** Times as in production, a tenth of their length: what counts here are ratios. */
const policy = `access: { view: ["*"], operate: ["S01ONCALL"] }
timing: { httpTimeout: 5s, quiesce: 12s, settleDeadline: 60s }
`;

/**
 * Restarts a whole project with one command, in a world with a private or a given Redis. `maxUnavailable` as in
 * the dialog: `100%` is all at once, `5` a rolling restart.
 */
export async function measureRollout(options: {
  vms: number;
  maxUnavailable: string;
  redisUrl?: string;
}): Promise<RolloutFigures> {
  const { vms } = options;
  const namespace = `bench-${process.pid}-${Math.round(performance.now())}`;
  await using world = await startWorld({
    policy,
    pace,
    namespace,
    compute: {
      world: { projects: 1, vmsPerProject: vms },
      transitionMs: [200, 600],
      mostPerPage: 1000,
    },
    ...(options.redisUrl ? { redisUrl: options.redisUrl } : {}),
  });
  for (const vm of Object.values(world.compute.truth().vms))
    world.compute.edit.setStatus({ vm: vm.id, status: "RUNNING" });
  const olivia = world.slack.person("olivia");
  await olivia.types("ops", `/vm restart vm-* --max-unavailable ${options.maxUnavailable}`);
  await olivia.until(({ modals }) => JSON.stringify(modals).includes(`Type ${vms}`));
  world.compute.forget();
  world.slack.forgetCalls();
  const began = performance.now();
  const { errors } = await olivia.submits({ "roll:number": String(vms) });
  if (errors) throw new Error(JSON.stringify(errors));
  await olivia.until(
    ({ channels }) =>
      channels.some(({ messages }) =>
        messages.some(({ text }) => /has ended|was stopped/.test(text)),
      ),
    300_000,
  );
  const seconds = (performance.now() - began) / 1000;
  const polls = world.compute
    .calls()
    .filter(({ path }) => /^\/v1\/projects\/[^/]+\/vms/.test(path));
  const slackCalls = Object.values(world.slack.callCounts()).reduce((sum, calls) => sum + calls, 0);
  const truth = Object.values(world.compute.truth().vms);
  return {
    vms,
    seconds,
    pollsPerVm: polls.length / vms,
    slackCalls,
    slackCallsAllowed: 60 + Math.floor(seconds / 5),
    wrong: truth.filter(({ restarts }) => restarts !== 1).length,
  };
}

/** The figures of rollouts with their bounds, for the table. */
export async function measureRollouts(): Promise<readonly Figure[]> {
  const atOnce = await measureRollout({ vms: 200, maxUnavailable: "100%" });
  const rolling = await measureRollout({ vms: 200, maxUnavailable: "10" });
  return [
    {
      name: "A roll of 200 VMs at once: polls per settled VM",
      value: atOnce.pollsPerVm,
      unit: "",
      bound: 0.1,
    },
    {
      name: "A rolling restart of 200 VMs, 10 at a time: Slack calls",
      value: rolling.slackCalls,
      unit: "",
      bound: rolling.slackCallsAllowed,
    },
    {
      name: "… VMs that were not restarted exactly once",
      value: atOnce.wrong + rolling.wrong,
      unit: "",
      bound: 0,
    },
  ];
}
