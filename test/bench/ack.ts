import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { startWorld, type World } from "../../sandbox/world.ts";
import { type Figure, quantile } from "./figure.ts";
import { introduce, startBolt, startGatehouse } from "./process.ts";

const perSecond = 50;
const policy = `access: { operate: ["S01ONCALL"] }
limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
`;

/**
 * `/vm restart` at 50 a second while the service hangs or is slow, against a Bolt app that only acknowledges. A round in
 * which this machine itself stood still is played again, at most twice: it would measure the machine.
 */
export async function measureAcks(
  receive: "socket" | "http",
  seconds: number,
): Promise<readonly Figure[]> {
  await using world = await startWorld({
    roles: [],
    receive,
    policy,
    compute: { world: { projects: 40, vmsPerProject: 50 } },
    slack: { rateLimits: "off" },
  });
  const type = typist(world);
  const bare = await bareAcks(world, type, Math.ceil(seconds / 2));
  // Its connection breaks a moment after its end, and must not be taken for Gatehouse's
  while (world.slack.socketMode.connections > 0) await sleep(20);
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse(world));
  await type(1); // names are read and code is warm, as on any day but the first minute
  world.compute.weather({ match: "writes", hang: "before" });
  world.compute.weather({ match: "reads", slowMs: 2000 });
  const { acks } = await calmest(() => type(seconds));
  const where = receive === "http" ? "HTTP" : "Socket Mode";
  const p99 = quantile(acks, 0.99);
  return [
    { name: `ack of \`/vm restart\`, ${where}, p50`, value: quantile(acks, 0.5), unit: "ms" },
    {
      name: `ack of \`/vm restart\`, ${where}, p99 of ${acks.length}`,
      value: p99,
      unit: "ms",
      bound: 50,
      ratio: { to: "a Bolt app that only acks", times: p99 / quantile(bare, 0.99) },
    },
  ];
}

async function bareAcks(world: World, type: Typing, seconds: number): Promise<readonly number[]> {
  await using bare = await startBolt(world.env);
  await introduce(world, bare.told);
  await type(1);
  return (await calmest(() => type(seconds))).acks;
}

interface Round {
  acks: readonly number[];
  /** The longest time for which nothing at all ran in this process. */
  stillMs: number;
}

type Typing = (seconds: number) => Promise<Round>;

/** Each command on another VM, at its own time, whether the one before was acked or not. */
function typist(world: World): Typing {
  const olivia = world.slack.person("olivia");
  const vms = Object.values(world.compute.truth().vms).filter(({ status }) => status === "RUNNING");
  let next = 0;
  return async (seconds) => {
    const began = performance.now();
    const first = next;
    const typed = Array.from({ length: seconds * perSecond }, async (_, n) => {
      const vm = vms[(first + n) % vms.length]?.name;
      await sleep(Math.max(1, began + (n * 1000) / perSecond - performance.now()));
      const outcome = await olivia.types("ops", `/vm restart ${vm}`);
      if (!outcome.acked) throw new Error(`not acknowledged: ${outcome.error}`);
      return outcome.ackMs;
    });
    next += typed.length;
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const acks = await Promise.all(typed);
    delay.disable();
    return { acks, stillMs: delay.max / 1e6 };
  };
}

async function calmest(round: () => Promise<Round>): Promise<Round> {
  let best = await round();
  for (let again = 0; again < 2 && best.stillMs > 30; again++) {
    const other = await round();
    if (other.stillMs < best.stillMs) best = other;
  }
  return best;
}
