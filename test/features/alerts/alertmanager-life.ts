import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "../../../sandbox/listen.ts";
import { createRandom } from "../../../sandbox/random.ts";
import { wordsOf } from "../../stories/words.ts";
import type { TestWorld } from "../../support/start-world.ts";
import type { Peers } from "./alertmanager-peers.ts";

/** One POST of a peer, as it arrived at Gatehouse. */
interface Arrival {
  at: number;
  peer: string;
  group: string;
  /** The label `vm` of each alert that fires in it, and of each that has ended. */
  firing: readonly string[];
  ended: readonly string[];
  omitted: number;
  answer: string;
}

interface Body {
  externalURL: string;
  groupLabels: { alertname?: string };
  truncatedAlerts: number;
  alerts: { status: string; labels: { vm?: string } }[];
}

export type Wire = Awaited<ReturnType<typeof startWire>>;

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  request.setEncoding("utf8");
  request.on("data", (part: string) => (text += part));
  await once(request, "end");
  return text;
}

/**
 * The network between the peers and Gatehouse. It notes each delivery, delays some for seconds, and
 * loses some answers, after which Alertmanager repeats the delivery.
 */
export async function startWire(apiPort: number, random: () => number) {
  const arrivals: Arrival[] = [];
  let isFair = true;
  let isDown = false;
  let under = 0;
  const server = createServer((request, response) => {
    const pass = async () => {
      const text = await textOf(request);
      if (isDown) {
        response.writeHead(503).end();
        return;
      }
      const fault = isFair ? 1 : random();
      if (fault < 0.1) await sleep(500 + 4_000 * random());
      const at = Date.now();
      const answer = await fetch(`http://127.0.0.1:${apiPort}${request.url}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: request.headers.authorization ?? "",
        },
        body: text,
      });
      const body = JSON.parse(text) as Body;
      const named = (status: string) =>
        body.alerts.filter((one) => one.status === status).map(({ labels }) => labels.vm ?? "");
      arrivals.push({
        at,
        peer: body.externalURL,
        group: body.groupLabels.alertname ?? "",
        firing: named("firing"),
        ended: named("resolved"),
        omitted: body.truncatedAlerts,
        answer: `${answer.status} ${await answer.text()}`.trim(),
      });
      const isLost = fault > 0.9 && fault < 1;
      response.writeHead(isLost ? 500 : answer.status).end();
    };
    under += 1;
    pass()
      .catch(() => response.writeHead(502).end())
      .finally(() => (under -= 1));
  });
  const { url, close } = await listen(server, 0);
  return {
    url,
    arrivals,
    /** True while it neither delays nor loses anything. */
    set isFair(fair: boolean) {
      isFair = fair;
    },
    /** True while it answers 503 in place of Gatehouse, so that Alertmanager repeats deliveries. */
    set isDown(down: boolean) {
      isDown = down;
    },
    /** Deliveries that haven't been answered. */
    get under() {
      return under;
    },
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

/** Reads a group's newest message: the label `vm` of each firing alert. */
function shownIn(world: TestWorld, group: string): { isFiring: boolean; vms: string[] } {
  const head = new RegExp(
    `^(🔥|✅|⚪) ${group}(?: on ([^\\n·]*?))?(?: ended[^\\n]*| · [^\\n]*)?(?:\\n|$)`,
  );
  const cards = world.ada.seesChannel("ops").messages.flatMap((message) => {
    const found = message.threadTs === undefined ? head.exec(wordsOf(message)) : null;
    return found ? [found] : [];
  });
  const [, sign, on = ""] = cards.at(-1) ?? [];
  const isFiring = sign === "🔥";
  return { isFiring, vms: isFiring ? on.split(", ").filter(Boolean).toSorted() : [] };
}

const whole = ["Cpu", "Disk", "Heat", "Net"];
const vmsOf = (group: string) =>
  group === "Many" ? ["m-1", "m-2", "m-3", "m-4", "m-5"] : ["web-2", "db-1", "gone-1"];

interface Life {
  group: string;
  vm: string;
  startsAt: Date;
  endsAt: Date | undefined;
}

interface Options {
  world: TestWorld;
  peers: Peers;
  wire: Wire;
  seed: number;
  /** How long random events happen (ms). */
  forMs: number;
  /** How soon Gatehouse must agree once nothing happens any more (ms). */
  agreeWithinMs: number;
  /** Called at each quiet point. */
  onAgreed?(line: string): void;
}

/** The state of the peers and of Gatehouse at a quiet point, and how they differ. */
interface Judged {
  isSettled: boolean;
  wrong: readonly string[];
}

/**
 * Lets alerts begin, end, fire again and be silenced, and peers go away, at random from a seed. At
 * quiet points every alert that is active in Alertmanager must fire in Gatehouse. An alert that
 * fires in Gatehouse must be active there, unless Alertmanager never told its end: it sends nothing
 * about silenced alerts, and `max_alerts` cuts its list. Resolves with counts of the events; throws
 * when the two disagree.
 */
export async function liveThrough(options: Options): Promise<Readonly<Record<string, number>>> {
  const { world, peers, wire, seed, forMs } = options;
  const random = createRandom(seed);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const lives = new Map<string, Life>();
  const silences = new Map<string, (by?: number) => Promise<void>>();
  const everSilenced = new Set<string>();
  const counts: Record<string, number> = {};
  const until = performance.now() + forMs;
  let lastEventAt = 0;
  let reachable: number | undefined;

  const post = (all: readonly Life[]) =>
    peers.post(
      all.map(({ group, vm, startsAt, endsAt }) => ({
        name: group,
        vm,
        startsAt,
        endsAt,
        ...(group === "Many" ? { labels: { receiver: "limited" } } : {}),
      })),
      reachable,
    );

  /** The events that can happen to one alert; each returns false if it can't happen now. */
  const events: Readonly<Record<string, (key: string, life: Life) => boolean | Promise<boolean>>> =
    {
      async begins(key, life) {
        if (lives.has(key) && life.endsAt === undefined) return false;
        const startsAt = new Date(Date.now() - 1_000);
        return change(key, { ...life, startsAt, endsAt: undefined });
      },
      async ends(key, life) {
        if (!lives.has(key) || life.endsAt) return false;
        return change(key, { ...life, endsAt: new Date() });
      },
      async refires(key, life) {
        if (!life.endsAt) return false;
        return change(key, { ...life, endsAt: undefined });
      },
      async movesBack(key, life) {
        if (!lives.has(key) || life.endsAt) return false;
        return change(key, { ...life, startsAt: new Date(life.startsAt.getTime() - 20_000) });
      },
      async silences(key, { group, vm }) {
        if (silences.has(key)) return false;
        silences.set(key, await peers.silence(group, vm, reachable));
        everSilenced.add(key);
        return true;
      },
      async unsilences() {
        const key = pick([...silences.keys()]);
        if (key === undefined) return false;
        await silences.get(key)?.(reachable);
        silences.delete(key);
        return true;
      },
      async isolates() {
        if (reachable !== undefined) return false;
        reachable = random() < 0.5 ? 0 : 1;
        peers.freeze(1 - reachable);
        return true;
      },
    };

  async function change(key: string, life: Life): Promise<boolean> {
    lives.set(key, life);
    await post([life]);
    return true;
  }

  async function reconnect(): Promise<void> {
    if (reachable === undefined) return;
    peers.thaw(1 - reachable);
    reachable = undefined;
    // Prometheus keeps sending alerts that fire, and for 15 minutes those that have ended.
    await post([...lives.values()]);
  }

  const weights = Object.entries({
    begins: 6,
    ends: 6,
    refires: 6,
    movesBack: 2,
    silences: 1,
    unsilences: 2,
    isolates: 1,
  }).flatMap(([name, weight]) => Array.from({ length: weight }, () => name));

  async function happen(): Promise<void> {
    for (;;) {
      const group = pick([...whole, "Many"]) ?? "";
      const vm = pick(vmsOf(group)) ?? "";
      const key = `${group} ${vm}`;
      const life = lives.get(key) ?? { group, vm, startsAt: new Date(), endsAt: undefined };
      const name = pick(weights) ?? "";
      if ((await events[name]?.(key, life)) !== true) continue;
      counts[name] = (counts[name] ?? 0) + 1;
      lastEventAt = Date.now();
      return;
    }
  }

  async function judge(): Promise<Judged> {
    const [one, other] = await Promise.all([peers.active(0), peers.active(1)]);
    const lastArrivalAt = wire.arrivals.at(-1)?.at ?? 0;
    // This is longer than two intervals of a group and the wait of the second peer.
    const isQuiet = Date.now() - Math.max(lastArrivalAt, lastEventAt) > 3_500;
    const active = new Set(one);
    const wrong = [...whole, "Many"].flatMap((group) => {
      const shown = shownIn(world, group);
      const there = vmsOf(group).filter((vm) => active.has(`${group} ${vm}`));
      if (group === "Many")
        return there.length > 0 && !shown.isFiring ? [`${group} fires there: ${there.join()}`] : [];
      const last = wire.arrivals.findLast((arrival) => arrival.group === group);
      const isUntold = (vm: string) =>
        everSilenced.has(`${group} ${vm}`) && last?.firing.includes(vm) === true;
      return [
        ...there
          .filter((vm) => !shown.vms.includes(vm))
          .map((vm) => `${group} ${vm} fires there, and not here`),
        ...shown.vms
          .filter((vm) => !there.includes(vm) && !isUntold(vm))
          .map((vm) => `${group} ${vm} fires here, and not there`),
      ];
    });
    return { isSettled: isQuiet && wire.under === 0 && String(one) === String(other), wrong };
  }

  async function agree(): Promise<void> {
    const began = performance.now();
    wire.isFair = true;
    await reconnect();
    for (;;) {
      const { isSettled, wrong } = await judge();
      const afterMs = Math.round(performance.now() - began);
      if (isSettled && wrong.length === 0) {
        counts["agreed"] = (counts["agreed"] ?? 0) + 1;
        counts["slowestMs"] = Math.max(counts["slowestMs"] ?? 0, afterMs);
        options.onAgreed?.(`agreed after ${afterMs} ms: ${JSON.stringify(counts)}`);
        return;
      }
      if (afterMs > options.agreeWithinMs) throw new Error(disagreement(wrong));
      await sleep(250);
    }
  }

  function disagreement(wrong: readonly string[]): string {
    const groups = new Set(wrong.map((line) => line.split(" ")[0] ?? ""));
    const told = wire.arrivals
      .filter(({ group }) => groups.has(group))
      .slice(-25)
      .map(({ at, peer, group, firing, ended, omitted, answer }) =>
        [
          new Date(at).toISOString().slice(11, 23),
          peer.slice(-5),
          group,
          `fires ${firing.join()}`,
          `ended ${ended.join()}`,
          `+${omitted}`,
          answer.slice(0, 80),
        ].join(" | "),
      );
    const lines = [`seed ${seed}: they disagree`, ...wrong, JSON.stringify(counts), ...told];
    return lines.join("\n");
  }

  while (performance.now() < until) {
    wire.isFair = false;
    const many = 3 + Math.floor(random() * 8);
    for (let n = 0; n < many; n++) {
      await happen();
      await sleep(2_500 * random() ** 2);
      if (reachable !== undefined && random() < 0.4) await reconnect();
    }
    await agree();
  }
  return { ...counts, deliveries: wire.arrivals.length };
}
