import { setTimeout as sleep } from "node:timers/promises";
import {
  apiEnv,
  apiPolicy,
  propose,
  sendAlert,
  stateOfProposal,
} from "../../../../demo/programs.ts";
import { looking } from "../../stage/looking.ts";
import { startSentinels } from "../../../support/redis-nodes.ts";
import type { Stage, StageOptions } from "../../stage/stage.ts";
import { expected, judged, onStage, type Row, type Story } from "../row.ts";

const options: StageOptions = {
  env: apiEnv,
  policy: `alerts: { channel: C02STATUS }\n${apiPolicy.replace('view: ["payments"]', 'view: ["*"]').replace('targets: ["payments/*"]', 'targets: ["*"]')}`,
};

const startsAt = "2026-11-25T02:00:00Z";

/** Sends one alert as Alertmanager does: again and again, until a gateway has taken it. Resolves with how often it was refused. */
async function insist(stage: Stage, vm: string): Promise<number> {
  for (let refused = 0; ; refused++) {
    const [gateway] = stage.gateways();
    const isTaken = await sendAlert(gateway?.apiPort ?? 0, { vm, startsAt }).then(
      () => true,
      () => false,
    );
    if (isTaken) return refused;
    if (refused > 200) throw new Error("no gateway takes the alert");
    await sleep(100);
  }
}

/** The messages about alerts of these VMs, once each has one and no more is owed. */
async function told(stage: Stage, vms: readonly string[]): Promise<number> {
  const about = async () =>
    (await stage.slack.messages()).filter(({ blocks, threadTs }) => {
      const text = JSON.stringify(blocks);
      return !threadTs && text.includes("HighCpu") && vms.some((vm) => text.includes(vm));
    });
  await stage.quiet(60_000);
  await looking(
    async () => ((await about()).length >= vms.length ? true : undefined),
    30_000,
    async () => `${(await about()).length} of ${vms.length} alerts are told`,
  );
  await stage.quiet();
  return (await about()).length;
}

async function onApi(
  more: StageOptions,
  story: (stage: Stage, vms: readonly string[]) => Promise<Story>,
): Promise<Story> {
  return onStage({ ...options, ...more }, async (stage) => {
    const vms = await stage.service.vms();
    return story(
      stage,
      vms.map(({ name }) => name),
    );
  });
}

/** The gateway dies at a point, and another one takes its place: the source repeats. */
const killedAt = (point: "alert" | "alert-kept") => () =>
  onApi({}, async (stage, [vm = ""]) => {
    const [gateway] = stage.gateways();
    await gateway?.arm({ point, do: "kill" });
    const insisting = insist(stage, vm);
    await gateway?.exited;
    await stage.addBot("gateway");
    const refused = await insisting;
    const messages = await told(stage, [vm]);
    return expected([
      ["the source was told that its delivery failed", refused > 0],
      ["one message tells of it", messages === 1],
    ]);
  });

export const apiRows: readonly Row[] = [
  {
    id: "E1",
    fault: "the gateway is killed before it writes an alert",
    must: "the source repeats; one message",
    unknown: "not judged",
    run: killedAt("alert"),
  },
  {
    id: "E2",
    fault: "the gateway is killed after it wrote an alert, before it answers",
    must: "the source repeats; one message",
    unknown: "not judged",
    run: killedAt("alert-kept"),
  },
  {
    id: "E3",
    fault: "Redis can't be reached while alerts come",
    must: "5xx, and the source repeats: each alert is told once",
    unknown: "not judged",
    run: () =>
      onApi({}, async (stage, all) => {
        const vms = all.slice(0, 4);
        stage.lines.redis.refuse(true);
        const insisting = Promise.all(vms.map((vm) => insist(stage, vm)));
        await sleep(1_500);
        stage.lines.redis.refuse(false);
        const refused = await insisting;
        const messages = await told(stage, vms);
        return expected([
          ["each was refused while Redis was away", refused.every((count) => count > 0)],
          ["each is told once", messages === vms.length],
        ]);
      }),
  },
  {
    id: "E4",
    fault: "Slack can't be reached while alerts come",
    must: "taken all the same; each is told once when Slack is back",
    unknown: "not judged",
    run: () =>
      onApi({}, async (stage, all) => {
        const vms = all.slice(0, 4);
        stage.lines.slack.refuse(true);
        const refused = await Promise.all(vms.map((vm) => insist(stage, vm)));
        await sleep(1_000);
        stage.lines.slack.refuse(false);
        const messages = await told(stage, vms);
        return expected([
          ["each was taken at once", refused.every((count) => count === 0)],
          ["each is told once", messages === vms.length],
        ]);
      }),
  },
  {
    id: "E5",
    fault: "the primary of Redis is killed while two peers send alerts",
    must: "after the failover each alert that was taken is told once",
    unknown: "not judged",
    alone: "a failover with sentinels",
    async run() {
      await using nodes = await startSentinels();
      const timing = { claimWindow: 1000, quiesce: 2500, settleDeadline: 8000 };
      return await onApi({ nodes, namespace: "faults-nodes", timing }, async (stage, all) => {
        const vms = all.slice(0, 10);
        const peers = vms.flatMap((vm, n) => [vm, vm].map((one) => ({ one, afterMs: n * 100 })));
        const insisting = Promise.all(
          peers.map(async ({ one, afterMs }) => {
            await sleep(afterMs);
            return insist(stage, one);
          }),
        );
        await sleep(300);
        const old = await nodes.primary();
        await old.kill();
        await nodes.another(old);
        await insisting;
        const messages = await told(stage, vms);
        return expected([["each alert is told once", messages === vms.length]]);
      });
    },
  },
  {
    id: "E6",
    fault: "the gateway is killed right after it wrote the request of a proposal",
    must: "pressed again, it is not run again: one request, one call",
    unknown: "none",
    asksNothing: true,
    run: () =>
      onApi({}, async (stage, [vm = ""]) => {
        const [first] = stage.gateways();
        const { id } = await propose(first?.apiPort ?? 0, `vm snapshot ${vm} before`, "release 42");
        await looking(
          async () =>
            JSON.stringify(await stage.slack.messages()).includes("Run") ? true : undefined,
          15_000,
          async () => "the proposal has no card",
        );
        await first?.arm({ point: "step:pending", do: "kill" });
        stage.faults += 1;
        const press = () => stage.slack.act("olivia", "presses", "Run", { channel: "ops" });
        await press().catch(() => undefined);
        await first?.exited;
        const next = await stage.addBot("gateway");
        await stage.connected(1);
        // Where the next gateway was quicker with what the first had stored, the button is gone
        await press().catch(() => undefined);
        const state = await looking(
          async () => {
            const now = await stateOfProposal(next.apiPort, id);
            return now === "done" ? now : undefined;
          },
          30_000,
          async () => `the proposal is ${await stateOfProposal(next.apiPort, id)}`,
        );
        const verdict = await stage.check();
        const snapshots = (await stage.service.writes()).filter(({ path }) =>
          path.endsWith("/snapshots"),
        );
        return judged(verdict, [
          ["it is done", state === "done"],
          ["one snapshot was asked for", snapshots.length === 1],
        ]);
      }),
  },
];
