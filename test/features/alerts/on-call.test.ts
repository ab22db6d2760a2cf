import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import { testPolicy } from "../../support/start-world.ts";
import {
  fire,
  fireTogether,
  sources,
  startAlertWorld,
  startWithChannels,
  usualSource,
} from "./sending.ts";

const channels = {
  linked: usualSource,
  pages: usualSource,
  changed: usualSource,
  menu: usualSource,
  names: usualSource,
  storm: usualSource,
};
const start = () => startWithChannels(channels);
let world: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  world = await start();
});
afterAll(() => world.close());

const restart = async (vm: string) => {
  await world.olivia.types("ops", `/vm restart ${vm}`);
  await world.ended("vm restart");
};

describe("what on-call needs, on the message of an alert", () => {
  it("is the runbook and the graph as links, which run nothing, and the description", async () => {
    const at = await world.channel("linked");
    const runbook_url = "https://runbooks.example/HighCpu";
    const description = "The pool of <!channel> is *busy*.";
    await at.fire([{ notes: { runbook_url, description }, graph: "http://graphs.example/cpu" }]);
    const card = await at.hears(/HighCpu on web-2/);
    expect(wordsOf(card)).toMatch(
      /CPU above 95% for 5 min\nThe pool of .*[^]*\[Show\] \[Metrics\] \[Runbook\] \[Graph\]\n\[Restart…\] \[Snapshot\]/,
    );
    expect(JSON.stringify(card.blocks)).not.toMatch(/<!channel>|\*busy/);
    const before = world.slack.workspace.ephemerals.length;
    const { opened } = await world.vera.presses("Runbook", { in: card.ts });
    expect(opened).toBe(runbook_url);
    expect((await world.vera.presses("Graph", { in: card.ts })).opened).toBe(
      "http://graphs.example/cpu",
    );
    await at.quiet();
    expect(world.slack.workspace.ephemerals).toHaveLength(before);
    expect(world.compute.writes()).toEqual([]);
  });

  it("says of several pages which alert each is of", async () => {
    const at = await world.channel("pages");
    const page = (name: string) => ({ runbook_url: `https://runbooks.example/${name}` });
    await at.fire([
      { name: "DiskFull", notes: page("DiskFull") },
      { name: "HighCpu", notes: page("HighCpu") },
    ]);
    await at.hears(/\[Metrics\] (\[Runbook of (DiskFull|HighCpu)\] ){2}\[Graph\]\n/);
  });

  it("is the last change of its VM, also in the dialog of its button; a later one is an attempt to end the alert", async () => {
    const at = await world.channel("changed");
    await restart("web-2");
    await at.fire([{}]);
    const card = await at.hears(/HighCpu on web-2/);
    expect(wordsOf(card)).toMatch(
      /\nLast change with Gatehouse: olivia restarted it, \d+:\d\d [AP]M UTC\.\n/,
    );
    expect(JSON.stringify(card.blocks)).toMatch(
      /"text":"What runs there is interrupted\. Last change with Gatehouse: olivia restarted it, \d+ s before the alert came\."/,
    );
    await world.olivia.types("ops", "/vm resize web-2 --cpu 4 --memory 8");
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    await world.olivia.submits({});
    await world.ended("vm resize");
    const changed = await at.hears(/Resized web-2[^]*\(olivia, [^)]*\)\. Still firing/);
    expect(changed.ts).toBe(card.ts);
    expect(wordsOf(changed)).not.toContain("Last change");
  });

  it("is the last change in the question after a menu", async () => {
    const at = await world.channel("menu");
    await restart("web-2");
    await restart("db-1");
    await at.fire([{}, { vm: "db-1" }]);
    const card = await at.hears(/HighCpu on db-1, web-2/);
    const values = [...JSON.stringify(card.blocks).matchAll(/"value":"((?:[^"\\]|\\.)*)"/g)].map(
      ([, value = ""]) => value.replaceAll("\\", ""),
    );
    const value = values.find((one) => one.includes("vm.restart")) ?? "";
    await world.olivia.chooses("menu", value, { in: card.ts });
    await at.hears(
      /Restart (web-2|db-1)\? What runs there is interrupted\.\nLast change with Gatehouse: olivia restarted it, \d/,
    );
  });

  it("is no change that was made while another team had the VM", async () => {
    const policy = `${testPolicy}${sources}teams:
  payments: { projects: [payments], operate: [U0OLIVIA], channel: C02STATUS }
  lab: { projects: [ml], operate: [U0AMIR], channel: C05LEADS }
`;
    await using own = await startAlertWorld({ policy });
    await own.olivia.types("status", "/vm restart web-2");
    const { record } = await own.ended("vm restart");
    await fire(own, [{}], { source: "by-team" });
    const ours = await hears(own.olivia, "status", /HighCpu on web-2/);
    expect(wordsOf(ours)).toContain("Last change with Gatehouse: olivia restarted it");
    const key = own.key("request", record.id);
    const stored = { ...record, target: { ...record.target, projectName: "ml" } };
    await own.client.hset(key, { record: JSON.stringify(stored) });
    await fire(own, [{}], { source: "by-team", groupKey: "later" });
    const card = await hears(own.olivia, "status", /HighCpu on web-2(?![^]*Last change)/);
    expect(wordsOf(card)).not.toContain("olivia");
  });
});

describe("a message about many alerts", () => {
  it("says a name that all have once, above what each says of its VM", async () => {
    const at = await world.channel("names");
    const vms = ["web-2", "db-1", "worker-1"];
    await at.fire(vms.map((vm) => ({ name: "NodeDown", vm, summary: `${vm} is down` })));
    const card = await at.hears(/NodeDown on /);
    expect(wordsOf(card).match(/NodeDown/g)).toHaveLength(1);
    expect(wordsOf(card)).toMatch(/worker-1 in staging is STOPPED as of .*\nworker-1 is down\n/);
  });

  it("lists those of several groups by VM, with what each says and how severe it is", async () => {
    await world.channel("storm");
    const alerts = Array.from({ length: 4 }, (_, n) => ({
      name: `Storm${n}`,
      vm: n % 2 === 0 ? "web-2" : "db-1",
      summary: `Storm${n} is bad`,
    }));
    const shared = wordsOf(
      await fireTogether(world, alerts, { source: "storm", channel: "storm" }),
    );
    expect(shared).toMatch(
      /🔥 (web-2|db-1): 2 alerts · critical, since .*\nStorm\d+: Storm\d+ is bad/,
    );
    for (const vm of ["web-2", "db-1"])
      expect(shared.match(new RegExp(`${vm} in payments is RUNNING`, "g"))).toHaveLength(1);
  });
});
