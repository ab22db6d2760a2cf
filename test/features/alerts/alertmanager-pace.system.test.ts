import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../../sandbox/ensure-redis.ts";
import { createRandom } from "../../../sandbox/random.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { usualPace } from "../../../src/config/policy-schema.ts";
import { wordsOf } from "../../stories/words.ts";
import { pendingOf } from "../../support/pending.ts";
import { programOf } from "../../support/programs.ts";
import { until } from "../../support/until.ts";
import { startWire } from "./alertmanager-life.ts";
import { type PostedAlert, startPeers } from "./alertmanager-peers.ts";
import { startWithChannels } from "./sending.ts";

const program = programOf("prometheus-alertmanager");

/** How much faster than usual everything is. */
const factor = 100;
/** The pace of Alertmanager's own example, and Gatehouse's time until a change is judged. */
const pace = {
  waitMs: 30_000 / factor,
  intervalMs: 300_000 / factor,
  repeatMs: (4 * 3600_000) / factor,
};
const remedyMs = usualPace.remedyMs / factor;

const source = "format: alertmanager, offer: [vm.snapshot], notify: { critical: [S01ONCALL] }";
const channels = {
  storm: source,
  flaps: source,
  short: source,
  helped: source,
  failed: source,
  early: source,
  on: source,
  agreed: source,
};
type Channel = keyof typeof channels;

const nodes = ["node-1", "node-2", "node-3"];
const own = ["flap-1", "short-1", "help-1", "fail-1", "early-1", "on-1"];

/** A world to which one real Alertmanager sends, through a wire that can be cut. */
async function start() {
  const apiPort = await freePort();
  const world = await startWithChannels(channels, {
    env: { API_PORT: String(apiPort) },
    pace: { remedyMs },
    prepare: ({ edit }) => {
      for (const name of [...nodes, ...own]) edit.addVm({ project: "payments", name });
    },
  });
  const wire = await startWire(apiPort, createRandom(1));
  const receivers = Object.keys(channels).map((name) => {
    return { name, url: `${wire.url}/alerts/${name}` };
  });
  const peers = await startPeers(program ?? "", receivers, { pace, count: 1 });
  const close = async () => {
    await peers[Symbol.asyncDispose]();
    await wire[Symbol.asyncDispose]();
    await world.close();
  };
  return { ...world, wire, peers, close };
}

/** Alert number `n` of a group of 1,000, with the labels and annotations of kube-prometheus. */
function podAlert(n: number, startsAt: Date): PostedAlert {
  const pod = `payments-api-7d9f8b6c5d-${String(n).padStart(5, "0")}`;
  return {
    name: "KubePodNotReady",
    vm: nodes[n - 500] ?? "",
    startsAt,
    labels: {
      receiver: "storm",
      severity: n === 999 ? "critical" : "warning",
      cluster: "eu-west-1-prod",
      namespace: "payments",
      container: "kube-rbac-proxy-main",
      endpoint: "https-main",
      instance: `10.42.${Math.floor(n / 250)}.${n % 250}:8443`,
      job: "kube-state-metrics",
      pod,
      prometheus: "monitoring/k8s",
      service: "kube-state-metrics",
      uid: `7b0c5a1e-1f5c-4e1a-9f0e-${String(n).padStart(12, "0")}`,
    },
    annotations: {
      summary: "Pod has been in a non-ready state for more than 15 minutes.",
      description: `Pod payments/${pod} has been in a non-ready state for longer than 15 minutes on cluster eu-west-1-prod.`,
      runbook_url: "https://runbooks.prometheus-operator.dev/runbooks/kubernetes/kubepodnotready",
    },
  };
}

/** The button to the next page of an answer. */
const nextIn = (words: string) => /\[(Next \d+)\]/.exec(words)?.[1];

describe.skipIf(program === undefined)("the real Alertmanager at its usual pace", () => {
  let world: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world?.close());

  /** The alerts of a channel that are active in Alertmanager. */
  const activeOf = async (name: string) =>
    (await world.peers.active()).filter((one) => one.startsWith(`${name} `));

  /** What Alertmanager delivered of a group. */
  const deliveriesOf = (name: string) => world.wire.arrivals.filter(({ group }) => group === name);

  /** One alert of a VM, told in a channel of its own. */
  async function alertOn(vm: string, channel: Channel, name: string) {
    const at = await world.channel(channel);
    let startsAt = new Date();
    const post = (...all: readonly Partial<PostedAlert>[]) =>
      world.peers.post(
        all.map((one) => {
          return { name, vm, startsAt, labels: { receiver: channel, severity: "warning" }, ...one };
        }),
      );
    return {
      ...at,
      begins(since = new Date(Date.now() - 120_000)) {
        startsAt = since;
        return post({});
      },
      ends: (endsAt = new Date(), ...vms: readonly string[]) =>
        post(...(vms.length > 0 ? vms : [vm]).map((one) => ({ vm: one, endsAt }))),
      /** It ends and begins anew, which Alertmanager hears at once. */
      async flaps(endsAt: Date, anew: Date) {
        await post({ endsAt }, { startsAt: anew });
        startsAt = anew;
      },
      /** The same alert begins on another VM, so that Alertmanager tells of the group again. */
      joins: (other: string) => post({ vm: other }),
      /** Presses the button of a restart, and resolves with the request once it has ended. */
      async restarts(card: SeenMessage) {
        await world.olivia.presses("Restart…", { in: card.ts });
        const request = await until(async () => {
          const ended = await world.ended("vm restart");
          return ended.record.target.name === vm && ended;
        });
        expect(request.state).toBe("done");
        return request;
      },
      async answers(command: string, words: RegExp): Promise<string> {
        await world.olivia.types(channel, command);
        return wordsOf(await at.hears(words));
      },
    };
  }

  it("tells 1,000 alerts of a group whole: each is taken, and counted on one card, which calls by the worst", async () => {
    const at = await world.channel("storm");
    const startsAt = new Date(Date.now() - 60_000);
    const all = Array.from({ length: 1_000 }, (_, n) => podAlert(n, startsAt));
    // Prometheus sends at most 64 at once.
    for (let n = 0; n < all.length; n += 64) await world.peers.post(all.slice(n, n + 64));
    const counts =
      /^🔥 KubePodNotReady on [^\n]* and 997 more · warning, critical\n1,000 alerts firing/;
    const card = await at.hears(counts);
    await at.quiet();
    expect(at.cards()).toHaveLength(1);
    expect(deliveriesOf("KubePodNotReady").map(({ answer }) => answer.slice(0, 3))).not.toContain(
      "413",
    );
    expect(await activeOf("KubePodNotReady")).toHaveLength(1_000);
    for (const node of nodes)
      expect(wordsOf(card)).toMatch(new RegExp(`\n${node} in payments is RUNNING`));
    const said = [wordsOf(card), ...at.thread(card)].join("\n");
    expect(said).toContain("<!subteam^S01ONCALL>");

    await world.olivia.types("storm", "/gatehouse night 1h");
    await at.hears(
      /🔥 KubePodNotReady on [^\n]* and 997 more \(1,000 alerts\) fires, says storm\./,
    );
    await world.olivia.types("storm", "/gatehouse digest now");
    const digest = wordsOf(await at.hears(/^Digest/));
    const lines = digest.match(/🔥 KubePodNotReady has been firing/g) ?? [];
    const [, more = "0"] = /… and (\d+) alerts firing more/.exec(digest) ?? [];
    expect(lines.length + Number(more)).toBe(1_000);

    const endsAt = new Date();
    for (let n = 0; n < all.length; n += 64)
      await world.peers.post(all.slice(n, n + 64).map((one) => ({ ...one, endsAt })));
    await at.hears(
      /^✅ KubePodNotReady on [^\n]* and 997 more ended after [^\n]*\nEnded [^\n]*, 1,000 alerts\n/,
    );
    await world.olivia.types("storm", "/gatehouse night 1h");
    await at.hears(/✅ KubePodNotReady on [^\n]* and 997 more \(1,000 alerts\) ended /);
    expect(await activeOf("KubePodNotReady")).toEqual([]);
    const answers = deliveriesOf("KubePodNotReady").map(({ answer }) => answer.slice(0, 4));
    expect(new Set(answers)).toEqual(new Set(["202 "]));
  });

  it("doesn't hear of an alert that ended and began anew between two flushes before its group changes, and credits no restart", async () => {
    const at = await alertOn("flap-1", "flaps", "Flaps");
    await at.begins(new Date(Date.now() - 3 * 3600_000));
    const card = await at.hears(/^🔥 Flaps on flap-1/);
    const { changedAt } = await at.restarts(card);
    const anew = new Date(changedAt + 2);
    await at.flaps(new Date(changedAt + 1), anew);
    // The set of what fires is the same, so Alertmanager tells nothing until it is time to repeat.
    await at.hears(/Flaps on flap-1 still fires, [^\n]* flaps has told: it hasn't spoken since/);
    await at.joins("node-1");
    const told = await at.hears(/^🔥 Flaps on flap-1, node-1[^]*\. Firing again\./);
    expect(JSON.stringify(told.blocks)).toContain(
      `2 alerts firing, since <!date^${Math.floor(anew.getTime() / 1_000)}^`,
    );
    expect(await activeOf("Flaps")).toEqual(["Flaps flap-1", "Flaps node-1"]);
    await at.ends(new Date(), "flap-1", "node-1");
    // Its newest firing began after the restart, so nobody is said to have ended it.
    await at.hears(/^✅ Flaps on flap-1, node-1 ended after [^\n;]*\.\n/);
    expect(await activeOf("Flaps")).toEqual([]);
    await at.begins(new Date());
    const again = await at.hears(/^🔥 Flaps on flap-1 /);
    await at.quiet();
    expect(wordsOf(again)).not.toMatch(/didn't help|ended it/);
  });

  it("tells an end once, and opens nothing for an alert that began and ended between two flushes", async () => {
    const at = await alertOn("short-1", "short", "Short");
    await at.begins();
    const card = await at.hears(/^🔥 Short on short-1/);
    await world.peers.post(
      [undefined, new Date()].map((endsAt) => {
        const startsAt = new Date(Date.now() - 1_000);
        return { name: "Short", vm: "node-1", startsAt, endsAt, labels: { receiver: "short" } };
      }),
    );
    await at.ends();
    await at.hears(/^✅ Short on [^]* ended after [^]*\nEnded /);
    await at.quiet();
    expect(at.thread(card).filter((words) => words.startsWith("✅ Short"))).toHaveLength(1);
    expect(at.thread(card).join("\n")).not.toContain("🔥");
    expect(at.cards()).toHaveLength(1);
  });

  it("credits a restart with an end that is told at the next flush, and never says that it didn't help", async () => {
    const at = await alertOn("help-1", "helped", "Helped");
    await at.begins();
    const card = await at.hears(/^🔥 Helped on help-1/);
    // Alertmanager's next flush comes later than Gatehouse looks.
    world.wire.isDown = true;
    const request = await at.restarts(card);
    await at.ends(new Date(request.changedAt + 1_000 / factor));
    const still = await at.hears(/Helped on help-1 still fires/);
    expect(wordsOf(still)).toMatch(
      /still fires, \d+ s after the restart, as far as helped has told: it hasn't spoken since the restart\.$/m,
    );
    await at.hears(/^🔥 [^]*Restarted help-1 [^\n]*\. Still firing, as far as helped has told\./);
    world.wire.isDown = false;
    await at.hears(/^✅ Helped on help-1 ended after 2 min[^\n]*; olivia had restarted it\./);
    await at.hears(
      /^✅ @?[^ ]* ?Helped on help-1 had ended after the restart; helped told it only later\./,
    );
    expect(await activeOf("Helped")).toEqual([]);
    await at.begins(new Date());
    const again = await at.hears(/^🔥 Helped on help-1[^]*\nLast time a restart ended it \(/);
    expect(wordsOf(again)).toMatch(/\nRestarted help-1 [^\n]*\. Firing again\.\n/);
    expect(at.thread(card).join("\n")).not.toContain("didn't help");
    expect(await activeOf("Helped")).toEqual(["Helped help-1"]);
    expect(await at.answers("/gatehouse night 1h", /The night since/)).toMatch(
      /🔥 Helped on help-1 fires, says helped\./,
    );
    expect(await at.answers("/gatehouse digest now", /^Digest/)).toMatch(
      /🔥 Helped has been firing on help-1 in payments/,
    );
    expect(await at.answers("/gatehouse why help-1", /Helped has been firing on help-1/)).toContain(
      "🔥",
    );
    await at.ends();
    const isEnded = () =>
      at.cards().some(({ ts, text }) => ts === again.ts && text.startsWith("✅"));
    await until(isEnded);
    expect(await at.answers("/gatehouse night 1h", /✅ Helped on help-1 ended/)).not.toContain(
      "🔥 Helped",
    );
  });

  it("takes back that a restart ended it, where another Prometheus tells that the same firing goes on", async () => {
    const at = await alertOn("on-1", "on", "GoesOn");
    const since = new Date(Date.now() - 120_000);
    await at.begins(since);
    await at.restarts(await at.hears(/^🔥 GoesOn on on-1/));
    await at.ends();
    await at.hears(/^✅ GoesOn on on-1 ended after 2 min[^\n]*; olivia had restarted it\./);
    await until(() => pendingOf(world.client, world.key, "remedy")).toBe(0);
    await at.begins(since);
    const card = await at.hears(/^🔥 GoesOn on on-1[^]*\nA restart didn't help the last time\./);
    expect(wordsOf(card)).toMatch(/\nRestarted on-1 [^\n]*\. Still firing\.\n/);
    expect(await activeOf("GoesOn")).toEqual(["GoesOn on-1"]);
  });

  it("says that a restart didn't help once Alertmanager tells so, after the time to judge", async () => {
    const at = await alertOn("fail-1", "failed", "Failed");
    await at.begins();
    const card = await at.hears(/^🔥 Failed on fail-1/);
    await at.restarts(card);
    await at.hears(
      /Failed on fail-1 still fires, [^\n]* has told: it hasn't spoken since the restart/,
    );
    await at.quiet();
    expect(wordsOf(at.cards().at(-1) ?? card)).not.toContain("didn't help");
    await at.joins("node-1");
    await at.hears(
      /^🔥 Failed on fail-1, node-1[^]*A restart didn't help the last time\.[^]*Still firing\./,
    );
    expect(await activeOf("Failed")).toEqual(["Failed fail-1", "Failed node-1"]);
    await at.ends(new Date(), "fail-1", "node-1");
    // It ended long after the restart.
    await at.hears(/^✅ Failed on fail-1, node-1 ended after [^\n;]*\.\n/);
  });

  it("credits nobody with an alert that had ended before the press, which is told afterwards", async () => {
    const at = await alertOn("early-1", "early", "Early");
    await at.begins();
    const card = await at.hears(/^🔥 Early on early-1/);
    world.wire.isDown = true;
    await at.ends();
    expect(await activeOf("Early")).toEqual([]);
    await at.restarts(card);
    await at.hears(
      /Early on early-1 still fires, [^\n]* has told: it hasn't spoken since the restart/,
    );
    world.wire.isDown = false;
    await at.hears(/^✅ Early on early-1 ended after 2 min[^\n;]*\.\n/);
    await at.hears(/Early on early-1 had ended before the restart; early told it only later\./);
    await at.begins(new Date());
    const again = await at.hears(/^🔥 Early on early-1/);
    await at.quiet();
    expect(wordsOf(again)).not.toMatch(/ended it|didn't help/);
    expect(await activeOf("Early")).toEqual(["Early early-1"]);
  });

  it("leaves cards, a handover, a digest, and a night that agree with Alertmanager's own API", async () => {
    const at = await alertOn("flap-1", "agreed", "Agreed");
    await at.begins();
    await at.hears(/^🔥 Agreed on flap-1/);
    await at.joins("node-2");
    await at.hears(/^🔥 Agreed on flap-1, node-2/);
    await at.ends(new Date(), "flap-1");
    await at.hears(/^🔥 Agreed on node-2/);
    await at.quiet();
    const active = await world.peers.active();
    expect(active).toContain("Agreed node-2");
    const firingIn = (words: string, line: RegExp) =>
      [...words.matchAll(line)].map(([, name, vm]) => `${name} ${vm}`).toSorted();
    const fires = /🔥 (\w+) has been firing on ([\w-]+) in/g;
    const handover = await at.answers("/gatehouse handover", /^Handover/);
    expect(firingIn(handover, fires)).toEqual(active);
    const digest = await at.answers("/gatehouse digest now", /^Digest/);
    expect(firingIn(digest, fires)).toEqual(active);
    const cards = Object.keys(channels).flatMap((name) =>
      world.ada
        .seesChannel(name)
        .messages.filter(({ threadTs }) => threadTs === undefined)
        .flatMap((message) => {
          const [, alert, vms = ""] = /^🔥 (\w+) on ([^·\n]*) · /.exec(wordsOf(message)) ?? [];
          return vms === "" ? [] : vms.split(", ").map((vm) => `${alert} ${vm.trim()}`);
        }),
    );
    expect(cards.toSorted()).toEqual(active);
    await world.olivia.types("agreed", "/gatehouse night 1h");
    let page = await at.hears(/^The night since/);
    let night = wordsOf(page);
    // What still fires began last, and a page has 20 acts.
    for (let next = nextIn(night); next !== undefined; next = nextIn(wordsOf(page))) {
      await world.olivia.presses(next, { in: page.ts });
      const shown = Number(/ to (\d+) of \d+ are shown/.exec(wordsOf(page))?.[1]);
      page = await at.hears(new RegExp(`\\n${shown + 1} to \\d+ of `));
      night += wordsOf(page);
    }
    const groups = [...night.matchAll(/🔥 (\w+) on [^\n]* fires/g)].map(([, name]) => name);
    expect(new Set(groups)).toEqual(new Set(active.map((one) => one.split(" ")[0])));
    expect(night).not.toMatch(/refused|unknown/);
  });
});
