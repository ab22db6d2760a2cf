import { describe, expect, it } from "vitest";
import { hears, wordsOf } from "../../stories/words.ts";
import { policyWith, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { fire, isQuiet, sources, startAlertWorld } from "./sending.ts";

const restart = async (world: TestWorld, vm: string) => {
  await world.olivia.types("ops", `/vm restart ${vm}`);
  await world.ended("vm restart");
};

describe("what on-call needs, on the message of an alert", () => {
  it("is the runbook and the graph as links, which run nothing, and the description", async () => {
    await using world = await startAlertWorld();
    const runbook_url = "https://runbooks.example/HighCpu";
    const description = "The pool of <!channel> is *busy*.";
    await fire(world, [
      { notes: { runbook_url, description }, graph: "http://graphs.example/cpu" },
    ]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
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
    await isQuiet(world);
    expect(world.slack.workspace.ephemerals).toHaveLength(before);
    expect(world.compute.writes()).toEqual([]);
  });

  it("says of several pages which alert each is of", async () => {
    await using world = await startAlertWorld();
    const page = (name: string) => ({ runbook_url: `https://runbooks.example/${name}` });
    await fire(world, [
      { name: "DiskFull", notes: page("DiskFull") },
      { name: "HighCpu", notes: page("HighCpu") },
    ]);
    await hears(
      world.olivia,
      "ops",
      /\[Metrics\] (\[Runbook of (DiskFull|HighCpu)\] ){2}\[Graph\]\n/,
    );
  });

  it("is the last change of its VM, also in the dialog of its button, and after a later change", async () => {
    await using world = await startAlertWorld();
    await restart(world, "web-2");
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    expect(wordsOf(card)).toMatch(/\nLast change: olivia restarted it, \d+:\d\d [AP]M UTC\.\n/);
    expect(JSON.stringify(card.blocks)).toMatch(
      /"text":"What runs there is interrupted\. Last change: olivia restarted it, \d+ s before the alert came\."/,
    );
    await world.olivia.types("ops", "/vm resize web-2 --cpu 4 --memory 8");
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    await world.olivia.submits({});
    await world.ended("vm resize");
    const changed = await hears(world.olivia, "ops", /Last change: olivia resized it[^]*Restart…/);
    expect(changed.ts).toBe(card.ts);
  });

  it("is the last change in the question after a menu", async () => {
    await using world = await startAlertWorld();
    await restart(world, "web-2");
    await restart(world, "db-1");
    await fire(world, [{}, { vm: "db-1" }]);
    const card = await hears(world.olivia, "ops", /HighCpu on db-1, web-2/);
    const values = [...JSON.stringify(card.blocks).matchAll(/"value":"((?:[^"\\]|\\.)*)"/g)].map(
      ([, value = ""]) => value.replaceAll("\\", ""),
    );
    const value = values.find((one) => one.includes("vm.restart")) ?? "";
    await world.olivia.chooses("menu", value, { in: card.ts });
    await hears(
      world.olivia,
      "ops",
      /Restart (web-2|db-1)\? What runs there is interrupted\.\nLast change: olivia restarted it, \d/,
    );
  });

  it("is no change that was made while another team had the VM", async () => {
    const policy = `${testPolicy}${sources}teams:
  payments: { projects: [payments], operate: [U0OLIVIA], channel: C02STATUS }
  lab: { projects: [ml], operate: [U0AMIR], channel: C05LEADS }
`;
    await using world = await startAlertWorld({ policy });
    await world.olivia.types("status", "/vm restart web-2");
    const { record } = await world.ended("vm restart");
    await fire(world, [{}], { source: "by-team" });
    const ours = await hears(world.olivia, "status", /HighCpu on web-2/);
    expect(wordsOf(ours)).toContain("Last change: olivia restarted it");
    const key = world.key("request", record.id);
    const stored = { ...record, target: { ...record.target, projectName: "ml" } };
    await world.client.hset(key, { record: JSON.stringify(stored) });
    await fire(world, [{}], { source: "by-team", groupKey: "later" });
    const card = await hears(world.olivia, "status", /HighCpu on web-2(?![^]*Last change)/);
    expect(wordsOf(card)).not.toContain("olivia");
  });
});

describe("many alerts", () => {
  it("of one name say it once, above what each says of its VM", async () => {
    await using world = await startAlertWorld();
    const vms = ["web-2", "db-1", "worker-1"];
    await fire(
      world,
      vms.map((vm) => ({ name: "NodeDown", vm, summary: `${vm} is down` })),
    );
    const card = await hears(world.olivia, "ops", /NodeDown on /);
    expect(wordsOf(card).match(/NodeDown/g)).toHaveLength(1);
    expect(wordsOf(card)).toMatch(/web-2 in payments is RUNNING as of .*\nweb-2 is down\n/);
  });

  it("in a shared message are by VM, with what each says and how severe it is", async () => {
    // A busy machine doesn't answer all reads within the second that most tests give the service.
    const timing = { httpTimeout: "5s", quiesce: "16s", settleDeadline: "30s" };
    const policy = `${policyWith({ timing })}${sources}`;
    await using world = await startAlertWorld({ policy });
    const names = Array.from({ length: 30 }, (_, n) => `Storm${n}`);
    await Promise.all(
      names.map((name, n) =>
        fire(world, [{ name, vm: n % 2 === 0 ? "web-2" : "db-1", summary: `${name} is bad` }], {
          groupKey: name,
        }),
      ),
    );
    const shared = wordsOf(
      await hears(world.olivia, "ops", /alert groups firing[^]*: \d+ alerts[^]*: \d+ alerts/),
    );
    expect(shared).toMatch(
      /🔥 (web-2|db-1): \d+ alerts · critical, since .*\nStorm\d+: Storm\d+ is bad/,
    );
    // Read a moment ago, or not yet where the machine is busy
    for (const vm of ["web-2", "db-1"])
      expect(
        shared.match(new RegExp(`${vm} in payments (is|was last seen) RUNNING`, "g")),
      ).toHaveLength(1);
  });
});
