import { expect, it } from "vitest";
import {
  createRemedies,
  judgmentRecord,
  remedyRecord,
  remedyState,
} from "../../../src/features/remedies/remedies.ts";
import { expectOnlyWhole, garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

const remedy = {
  request: "r-1",
  alert: "a-1",
  vmId: "vm-1",
  project: { id: "p-1", name: "payments" },
  command: "vm restart",
  alertProjects: [{ id: "prj-1", name: "payments" }],
  fired: { HighCpu: 1 },
};
const judgment = {
  verdicts: { HighCpu: "helped" },
  firedOnce: ["HighCpu"],
  changedAt: 1,
  judgedAt: 2,
  isSuperseded: false,
} as const;

it("a remedy and its judgment are read whole or not at all", () => {
  expect(remedyState.check("void", "r-1")).toBe("void");
  expectOnlyWhole(remedyRecord, remedy);
  expectOnlyWhole(judgmentRecord, judgment);
});

it("a remedy that can't be read is none, and a judgment that can't be read is made again", async () => {
  await using here = await testRedis();
  const remedies = createRemedies(here.redis, here.key);
  await remedies.follow(remedy);
  const hash = here.key("remedy", remedy.request);
  const whole = await here.redis.hgetall(hash);
  for (const text of garbage) {
    for (const part of ["remedy", "state"]) {
      await here.redis.hset(hash, { ...whole, [part]: text });
      expect(await remedies.get(remedy.request), `${part}: ${text}`).toBeUndefined();
      expect(await remedies.of(remedy.vmId, "HighCpu")).toEqual([]);
    }
    await here.redis.hset(hash, { ...whole, judgment: text });
    expect(await remedies.get(remedy.request)).toMatchObject({
      state: "open",
      judgment: undefined,
    });
  }
});
