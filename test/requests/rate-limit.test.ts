import { describe, expect, it } from "vitest";
import { createStore } from "../../src/requests/store.ts";
import { testRedis } from "../support/with-redis.ts";
import { ask, member, restartOf, vmTarget } from "./asking.ts";

async function journal() {
  const { redis, key, [Symbol.asyncDispose]: close } = await testRedis();
  return { redis, key, store: createStore(redis, key), [Symbol.asyncDispose]: close };
}

const limits = { requestsPerMinute: 30, destructivePerHour: 3 };
const turn = (personId: string, askId: string, destroys = false) => ({
  personId,
  askId,
  destroys,
  limits,
});

describe("asking for more changes than policy allows", () => {
  it("gives one person 30 of 500 at once, and takes nothing from others", async () => {
    await using here = await journal();
    const asked = Array.from({ length: 500 }, (_, n) =>
      here.store.takeTurn(turn("U0MAL", `m-${n}`)),
    );
    const said = await Promise.allSettled(asked);
    expect(said.filter(({ status }) => status === "fulfilled")).toHaveLength(30);
    const refused = said.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(refused.reason).toMatchObject({
      name: "UserError",
      message:
        "You asked for 30 changes within a minute, and that is the most for one person. Nothing was done.",
      hint: expect.stringMatching(/^Try again in (1 min|\d+ s)\. `limits\.requestsPerMinute`/),
    });
    await expect(here.store.takeTurn(turn("U0OLIVIA", "o-1"))).resolves.toBeUndefined();
  });

  it("counts an ask that is delivered twice once", async () => {
    await using here = await journal();
    for (let n = 0; n < 100; n += 1) await here.store.takeTurn(turn("U0OLIVIA", "the-same"));
  });

  it("frees a place a minute after it was taken", async () => {
    await using here = await journal();
    for (let n = 0; n < 30; n += 1) await here.store.takeTurn(turn("U0OLIVIA", `o-${n}`));
    await expect(here.store.takeTurn(turn("U0OLIVIA", "late"))).rejects.toThrow(
      /most for one person/,
    );
    const places = here.key("rate", "person", "U0OLIVIA");
    await here.redis.zadd(places, (await here.store.now()) - 60_001, "o-0");
    await here.store.takeTurn(turn("U0OLIVIA", "late"));
    await expect(here.store.takeTurn(turn("U0OLIVIA", "later"))).rejects.toThrow(
      /most for one person/,
    );
    expect(await here.redis.pttl(places)).toBeGreaterThan(0);
  });

  it("lets everybody together destroy three things an hour", async () => {
    await using here = await journal();
    const people = ["U0A", "U0B", "U0C", "U0D", "U0E"];
    const said = await Promise.allSettled(
      people.map((id) => here.store.takeTurn(turn(id, `d-${id}`, true))),
    );
    expect(said.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    await expect(here.store.takeTurn(turn("U0F", "d-f", true))).rejects.toThrow(
      /everybody together/,
    );
    await here.store.takeTurn(turn("U0F", "restart-f"));
  });

  it("gives back the place of what was denied, not of what was done", async () => {
    await using here = await journal();
    const requests = [];
    for (const name of ["a", "b", "c"]) {
      const request = await ask(here.store, restartOf(vmTarget(name)));
      await here.store.takeTurn(turn("U0OLIVIA", `d-${name}`, true));
      await here.store.turnTaken(`d-${name}`, request.record.id);
      requests.push(request);
    }
    await expect(here.store.takeTurn(turn("U0OLIVIA", "d-d", true))).rejects.toThrow(
      /everybody together/,
    );
    const [denied] = requests;
    if (!denied) throw new Error("nothing was asked");
    const digest = denied.record.approval?.digest.slice(0, 16) ?? "";
    await here.store.vote(denied, member("U0AMIR"), "deny", digest);
    await here.store.takeTurn(turn("U0OLIVIA", "d-d", true));
    await expect(here.store.takeTurn(turn("U0OLIVIA", "d-e", true))).rejects.toThrow(
      /everybody together/,
    );
  });

  it("destroys nothing at all where policy says 0", async () => {
    await using here = await journal();
    const none = {
      ...turn("U0OLIVIA", "d", true),
      limits: { requestsPerMinute: 1, destructivePerHour: 0 },
    };
    await expect(here.store.takeTurn(none)).rejects.toThrow("Nothing may be destroyed from here.");
    await here.store.takeTurn({ ...none, askId: "r", destroys: false });
  });
});
