import { expect, it } from "vitest";
import { policyWith, startWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const patient = { httpTimeout: "5s", quiesce: "12s", settleDeadline: "30s" };
const vms = Array.from({ length: 12 }, (_, n) => `node-${n}`);

it("twelve requests of two people at once share a card, within Slack's limits, and each is told once", async () => {
  await using world = await startWorld({
    // Long durations keep a busy machine out of it: the test is about who is told what
    policy: policyWith(
      { operate: ["S01ONCALL", "U0ADA"], timing: patient },
      "limits: { requestsPerMinute: 100 }\n",
    ),
    pace: { restartMarkMs: 10_000 },
    compute: { transitionMs: 600 },
    slack: { rateLimits: "slack" },
    prepare(compute) {
      for (const name of vms) compute.edit.addVm({ project: "payments", name });
    },
  });
  await Promise.all(
    vms.map((name, n) => (n % 2 ? world.ada : world.olivia).types("ops", `/vm restart ${name}`)),
  );
  await until(async () => (await world.store.recentIds({}, 100)).length).toBe(vms.length);
  const requests = await world.settled();
  expect(requests.map(({ state }) => state)).toEqual(vms.map(() => "done"));
  const shared = await hears(world.vera, "ops", /\[Details of one…\]/);
  // Two cards go at once; the others find no room
  const members = requests.filter(({ delivered }) => delivered.said["card"]?.startsWith("shared"));
  expect(members.length).toBeGreaterThanOrEqual(8);
  for (const { record } of members)
    expect(wordsOf(shared)).toMatch(
      new RegExp(`✅ Restarted ${record.target.name} in .* \\(${record.requester.name}\\)`),
    );
  // In the card itself when all had ended before it was posted, else in its thread
  const told = world.vera
    .seesChannel("ops")
    .messages.filter(({ ts, threadTs }) => [ts, threadTs].includes(shared.ts))
    .map(wordsOf)
    .join("\n");
  for (const id of ["U0ADA", "U0OLIVIA"]) {
    expect(told.match(new RegExp(`<@${id}>`, "g"))).toHaveLength(1);
    expect(told).toMatch(new RegExp(`✅ <@${id}> All \\d are done\\.`));
  }
  expect(world.slack.calls().filter(({ status }) => status === 429)).toEqual([]);

  // Details and buttons are a press away, for the asker and for who looks on
  const { id = "", target } = members[0]?.record ?? {};
  await world.vera.chooses("Details of one…", JSON.stringify({ request: id }), {
    in: shared.ts,
  });
  const details = await hears(
    world.vera,
    "ops",
    new RegExp(`: Restarted ${target?.name} in [^]*\\nSent .*\\n`),
  );
  expect(details.ephemeral).toBe(true);
  expect(wordsOf(details)).toContain(id);
});
