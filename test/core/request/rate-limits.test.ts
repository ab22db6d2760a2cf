import { describe, expect, it } from "vitest";
import type { Hourly } from "../../../src/core/request/rate-limits.ts";
import { testJournal } from "../../support/with-redis.ts";
import { storeRequest, member, restartOf, stageOf, vmTarget } from "../asking.ts";

const limits = {
  requestsPerMinute: 30,
  draftsPerPerson: 2,
  destructivePerHour: 3,
  breakGlassPerHour: 1,
};
const turn = (personId: string, holder: string, hourly?: Hourly) => ({
  personId,
  holder,
  hourly,
  limits,
});

describe("asking for more changes than policy allows", () => {
  it("gives one person 30 of 500 at once, and takes nothing from others", async () => {
    await using here = await testJournal();
    const asked = Array.from({ length: 500 }, (_, n) =>
      here.store.countAgainstLimits(turn("U0MAL", `m-${n}`)),
    );
    const said = await Promise.allSettled(asked);
    expect(said.filter(({ status }) => status === "fulfilled")).toHaveLength(30);
    const refused = said.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(refused.reason).toMatchObject({
      name: "UserError",
      message:
        "You requested 30 changes within a minute, the limit for one person. Nothing was done.",
      hint: expect.stringMatching(/^Try again in (1 min|\d+ s)\. `limits\.requestsPerMinute`/),
    });
    await expect(here.store.countAgainstLimits(turn("U0OLIVIA", "o-1"))).resolves.toBeUndefined();
  });

  it("counts an ask that is delivered twice once", async () => {
    await using here = await testJournal();
    for (let n = 0; n < 100; n += 1)
      await here.store.countAgainstLimits(turn("U0OLIVIA", "the-same"));
  });

  it("counts what was taken before Redis's clock was set back from then on, for a minute", async () => {
    await using here = await testJournal();
    for (let n = 0; n < 30; n += 1) await here.store.countAgainstLimits(turn("U0OLIVIA", `o-${n}`));
    const places = here.key("rate", "person", "U0OLIVIA");
    for (let n = 0; n < 30; n += 1) await here.redis.zincrby(places, 3_600_000, `o-${n}`);
    await expect(here.store.countAgainstLimits(turn("U0OLIVIA", "late"))).rejects.toMatchObject({
      hint: expect.stringMatching(/^Try again in (1 min|\d+ s)\. /),
    });
    const taken = await here.redis.zrange(places, "-1", "-1", "WITHSCORES");
    expect(Number(taken[1])).toBeLessThanOrEqual(await here.store.now());
  });

  it("frees a place a minute after it was taken", async () => {
    await using here = await testJournal();
    for (let n = 0; n < 30; n += 1) await here.store.countAgainstLimits(turn("U0OLIVIA", `o-${n}`));
    await expect(here.store.countAgainstLimits(turn("U0OLIVIA", "late"))).rejects.toThrow(
      /the limit for one person/,
    );
    const places = here.key("rate", "person", "U0OLIVIA");
    await here.redis.zadd(places, (await here.store.now()) - 60_001, "o-0");
    await here.store.countAgainstLimits(turn("U0OLIVIA", "late"));
    await expect(here.store.countAgainstLimits(turn("U0OLIVIA", "later"))).rejects.toThrow(
      /the limit for one person/,
    );
    expect(await here.redis.pttl(places)).toBeGreaterThan(0);
  });

  it("allows three destructive requests an hour in total", async () => {
    await using here = await testJournal();
    const { store } = here;
    for (const id of ["U0A", "U0B", "U0C", "U0D", "U0E"])
      await store.countAgainstLimits(turn(id, `d-${id}`, "destructivePerHour"));
    const took = await Promise.all(
      ["r-1", "r-2", "r-3", "r-4"].map((id) =>
        store.takeHourlyPlace("destructivePerHour", id, limits),
      ),
    );
    expect(took.filter(Boolean)).toHaveLength(3);
    const again = ["r-1", "r-2", "r-3", "r-4"][took.indexOf(true)] ?? "";
    expect(await store.takeHourlyPlace("destructivePerHour", again, limits)).toBe(true);
    await expect(
      store.countAgainstLimits(turn("U0F", "d-f", "destructivePerHour")),
    ).rejects.toThrow("Limit reached: 3 destructive requests an hour in total. Nothing was done.");
    await store.countAgainstLimits(turn("U0F", "restart-f"));
  });

  it("counts break-glass apart, so that neither takes the other's places", async () => {
    await using here = await testJournal();
    const { store } = here;
    expect(await store.takeHourlyPlace("breakGlassPerHour", "r-1", limits)).toBe(true);
    expect(await store.takeHourlyPlace("breakGlassPerHour", "r-2", limits)).toBe(false);
    expect(await store.takeHourlyPlace("destructivePerHour", "r-3", limits)).toBe(true);
    await expect(store.countAgainstLimits(turn("U0A", "b", "breakGlassPerHour"))).rejects.toThrow(
      "Limit reached: 1 use of break-glass an hour in total. Nothing was done.",
    );
  });

  it("gives back the place of what was cancelled, not of what was done", async () => {
    await using here = await testJournal();
    const { store } = here;
    const requests = [];
    for (const name of ["a", "b", "c"]) {
      const { approval: _none, ...plain } = restartOf(vmTarget(name));
      const request = await storeRequest(store, plain);
      await store.takeHourlyPlace("destructivePerHour", request.record.id, limits);
      requests.push(request);
    }
    expect(await store.takeHourlyPlace("destructivePerHour", "r-d", limits)).toBe(false);
    const [first, second] = requests;
    if (!first || !second) throw new Error("nothing was asked");
    await store.move(first, { to: stageOf("done"), why: "done" });
    expect(await store.takeHourlyPlace("destructivePerHour", "r-d", limits)).toBe(false);
    await store.move(second, { to: stageOf("cancelled"), why: "cancelled" });
    expect(await store.takeHourlyPlace("destructivePerHour", "r-d", limits)).toBe(true);
    expect(await store.takeHourlyPlace("destructivePerHour", "r-e", limits)).toBe(false);
  });

  it("lets two requests of one person wait for approval, until one is decided", async () => {
    await using here = await testJournal();
    const { store } = here;
    const drafts = [];
    for (const name of ["a", "b"]) {
      const request = await storeRequest(store, restartOf(vmTarget(name)));
      await store.takeDraftPlace("U0OLIVIA", request.record.id, limits);
      drafts.push(request);
    }
    await expect(store.takeDraftPlace("U0OLIVIA", "r-c", limits)).rejects.toThrow(
      "2 of your requests wait for approval, the limit for one person. Nothing was done.",
    );
    await store.takeDraftPlace("U0OTHER", "r-o", limits);
    const [draft] = drafts;
    if (!draft) throw new Error("nothing was asked");
    const digest = draft.record.approval?.digest.slice(0, 16) ?? "";
    await store.vote(draft, member("U0AMIR"), "approve", digest);
    await store.takeDraftPlace("U0OLIVIA", "r-c", limits);
    await expect(store.takeDraftPlace("U0OLIVIA", "r-d", limits)).rejects.toThrow(/wait for/);
    await store.leaveDraftPlace("U0OLIVIA", "r-c");
    await store.takeDraftPlace("U0OLIVIA", "r-d", limits);
  });

  it("destroys nothing at all where policy says 0", async () => {
    await using here = await testJournal();
    const none = { ...turn("U0OLIVIA", "d"), limits: { ...limits, destructivePerHour: 0 } };
    await expect(
      here.store.countAgainstLimits({ ...none, hourly: "destructivePerHour" }),
    ).rejects.toThrow("Destructive commands are disabled.");
    await here.store.countAgainstLimits({ ...none, holder: "r" });
  });
});
