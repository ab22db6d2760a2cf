import { setTimeout as sleep } from "node:timers/promises";
import { type RedisNodes, startCluster, startSentinels } from "../../../support/redis-nodes.ts";
import { looking } from "../../stage/looking.ts";
import { answersTo } from "../../people/hearing.ts";
import type { Bot } from "../../stage/start-bot.ts";
import type { Stage, StageOptions } from "../../stage/stage.ts";
import { fresh, judged, kinds, onStage, type Row, type Story } from "../row.ts";

const namespace = "faults-nodes";
const operations = 200;
const alone = "how long nothing is taken";
const must = "work resumes within 10 s; every process says when it can't work; every request ends";

/** Asks for 200 changes, and for more until `faults` are done, one after the other: what nobody asks for, nobody takes. */
async function asking(stage: Stage, faults: (strike: Strike) => Promise<void>): Promise<Asking> {
  const take = fresh(stage);
  const struckAt: number[] = [];
  const said = new Set<number>();
  let isOver = false;
  const probing = (async () => {
    while (!isOver) {
      for (const bot of stage.bots) said.add(await readinessOf(bot));
      await sleep(300);
    }
  })();
  const striking = sleep(2500).then(() =>
    faults(async (fault) => {
      stage.faults += 1;
      struckAt.push(Date.now());
      await fault();
    }),
  );
  let isStriking = true;
  const struck = () => void (isStriking = false);
  striking.then(struck, struck); // awaited below
  for (let n = 0; n < operations || isStriking; n++) {
    const command = kinds[n % kinds.length] ?? "";
    await stage.request(command, await take(command), { channel: n % 2 ? "ops" : "status" });
    await sleep(n < operations ? 30 : 200);
  }
  await striking;
  // Somebody must ask after the last fault, too
  const last = await take("vm stop");
  for (const until = Date.now() + 10_000; Date.now() < until; await sleep(200)) {
    await stage.request("vm stop", last);
    const journal = await stage.journal().catch(() => []);
    if (journal.some(({ target }) => target === last)) break;
  }
  await stage.quiet(45_000);
  isOver = true;
  await probing;
  const ready = await readyWithin(5_000, stage.bots);
  const made = (await stage.journal()).map(({ fields }) => Number(fields["createdAt"]));
  const awayMs = struckAt.map((at) => Math.min(...made.filter((one) => one > at)) - at);
  return { awayMs: Math.max(...awayMs), said, ready };
}

/** What each answers once all say yes, or at the end of this time. */
async function readyWithin(ms: number, bots: readonly Bot[]): Promise<number[]> {
  for (const until = Date.now() + ms; ; await sleep(200)) {
    const ready = await Promise.all(bots.map(readinessOf));
    if (ready.every((status) => status === 200) || Date.now() > until) return ready;
  }
}

/** 0: no answer. */
const readinessOf = ({ port }: Bot): Promise<number> =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ status }) => status,
    () => 0,
  );

type Strike = (fault: () => Promise<unknown>) => Promise<void>;

interface Asking {
  /** The longest time after a fault in which nothing was taken (ms). */
  awayMs: number;
  /** Every answer of `/readyz` meanwhile. */
  said: ReadonlySet<number>;
  /** What each process answers afterwards. */
  ready: readonly number[];
}

async function drill(
  seed: number,
  more: Pick<StageOptions, "nodes" | "redis">,
  faults: (stage: Stage, strike: Strike) => Promise<void>,
): Promise<Story> {
  // Nine servers on one machine: a claim takes longer than with one
  const timing = { claimWindow: 1000, quiesce: 2500, settleDeadline: 8000 };
  const options = { seed, namespace, workers: 2, vms: operations + 120, timing, ...more };
  return onStage(options, async (stage) => {
    const { awayMs, said, ready } = await asking(stage, (strike) => faults(stage, strike));
    const heard = (
      await Promise.all(["olivia", "amir"].map((who) => answersTo(stage, who)))
    ).flat();
    const bugs = heard.filter((text) => /went wrong|isn't known/.test(text));
    const refused = heard.filter((text) => /nothing was done/.test(text)).length;
    const notes = [
      `nothing was taken for ${(awayMs / 1000).toFixed(1)} s; ${refused} times “nothing was done”`,
    ];
    return judged(
      await stage.check(),
      [
        [`work went on within 10 s (${awayMs} ms)`, awayMs < 10_000],
        [
          `no process ended ${stage.bots.map((bot) => bot.lastWords()).join("")}`,
          stage.bots.every((bot) => !bot.isGone()),
        ],
        [`all are ready again (${ready.join(" ")})`, ready.every((status) => status === 200)],
        ["readiness was no while nothing could be taken", awayMs < 2000 || said.has(503)],
        [`nobody reads of a bug: ${bugs.slice(0, 3).join(" / ")}`, bugs.length === 0],
      ],
      { notes },
    );
  });
}

async function onCluster(
  seed: number,
  faults: (cluster: Awaited<ReturnType<typeof startCluster>>, strike: Strike) => Promise<void>,
  how: { one?: boolean } = {},
): Promise<Story> {
  await using cluster = await startCluster(namespace, how);
  return await drill(seed, { nodes: cluster }, (_, strike) => faults(cluster, strike));
}

/** Ends the primary, waits until another one serves, and starts the old one again. */
async function replaced(nodes: RedisNodes, strike: Strike): Promise<void> {
  const old = await nodes.primary();
  await strike(() => old.kill());
  await nodes.another(old);
  await old.start();
}

/** Frozen until another one has taken over, and for a moment longer. */
async function frozen(nodes: RedisNodes, strike: Strike): Promise<void> {
  const old = await nodes.primary();
  await strike(async () => old.freeze());
  await nodes.another(old);
  await sleep(1000);
  old.thaw();
}

/** Redis is slow from the moment on in which an interaction is acked, claimed, and not handled yet. */
async function slowInHand(stage: Stage): Promise<void> {
  const [gateway] = stage.gateways();
  const before = gateway?.hits.length ?? 0;
  await gateway?.arm({ point: "ack", do: "wait" });
  await looking(
    async () => ((gateway?.hits.length ?? 0) > before ? true : undefined),
    15_000,
    async () => "no interaction is in hand",
  );
  await stage.redis.call("CLIENT", "PAUSE", "1600", "ALL");
  gateway?.go();
}

export const redisFailoverRows: Row[] = [
  {
    id: "R20",
    fault: "a Cluster's primary with Gatehouse's slot is killed during 200 requests",
    must,
    unknown: "no trace",
    alone,
    run: ({ seed }) => onCluster(seed, replaced),
  },
  {
    id: "R21",
    fault: "the same primary is frozen for longer than the node timeout",
    must,
    unknown: "no trace",
    alone,
    run: ({ seed }) => onCluster(seed, frozen),
  },
  {
    id: "R22",
    fault: "sentinels fail over: the primary is killed, and its successor frozen",
    must,
    unknown: "no trace",
    alone,
    async run({ seed }) {
      await using nodes = await startSentinels();
      return await drill(seed, { nodes }, async (_, strike) => {
        await replaced(nodes, strike);
        await nodes.whole();
        await frozen(nodes, strike);
      });
    },
  },
  {
    id: "R23",
    fault:
      "CLUSTER FAILOVER, and Gatehouse's slot moves to another primary; REDIS_URL names one node",
    must,
    unknown: "no trace",
    alone,
    run: ({ seed }) =>
      onCluster(
        seed,
        async (cluster, strike) => {
          await strike(() => cluster.failOver());
          await sleep(2000);
          await strike(() => cluster.moveSlot());
        },
        { one: true },
      ),
  },
  {
    id: "R24",
    fault: "every node of a Cluster is restarted, one by one",
    must,
    unknown: "no trace",
    alone,
    run: ({ seed }) =>
      onCluster(seed, async (cluster, strike) => {
        for (const node of cluster.nodes) {
          const isOurs = (await cluster.primary()) === node;
          await strike(() => node.kill());
          if (isOurs) await cluster.another(node);
          await node.start();
          await cluster.whole();
        }
      }),
  },
  {
    id: "R25",
    fault: "Redis repeatedly answers 1.6 s late",
    must: "it is reported as slow, never as a bug; what was provably not sent isn't unknown",
    unknown: "no trace",
    alone,
    run: ({ seed }) =>
      drill(seed, {}, async (stage, strike) => {
        for (let n = 0; n < 4; n++) {
          await strike(() => slowInHand(stage));
          await sleep(3000);
        }
      }),
  },
];
