import { expect, it } from "vitest";
import { createRateLimiter } from "../../src/core/deliver/rate-limiter.ts";
import { policyWith, startWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const vms = Array.from({ length: 8 }, (_, n) => `node-${n}`);

it("eight requests of two people that find no room for their cards share one, and each is told once", async () => {
  await using world = await startWorld({
    policy: policyWith({ operate: ["S01ONCALL", "U0ADA"] }),
    prepare(compute) {
      for (const name of vms) compute.edit.addVm({ project: "payments", name });
    },
  });
  const { store } = world;
  const rates = createRateLimiter(world.client, world.key);
  await rates.pause({ post: "C01OPS" }, 3_000);
  await Promise.all(
    vms.map((name, n) => (n % 2 ? world.ada : world.olivia).types("ops", `/vm restart ${name}`)),
  );
  // No card finds room before each request has looked for it
  await until(async () => {
    await rates.pause({ post: "C01OPS" }, 3_000);
    const all = await store.getMany(await store.recentIds({}, 100));
    return all.filter(({ delivered }) => delivered.marks["card"] !== undefined).length;
  }).toBe(vms.length);
  const requests = await world.settled();
  expect(requests.map(({ state }) => state)).toEqual(vms.map(() => "done"));
  const shared = await hears(world.vera, "ops", /\[Details of one…\]/);
  const members = requests.filter(({ delivered }) => delivered.marks["card"]?.startsWith("shared"));
  expect(members.length).toBeGreaterThanOrEqual(6);
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
