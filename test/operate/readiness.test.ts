import { describe, expect, it } from "vitest";
import { Readiness } from "../../src/operate/readiness.ts";

const well = { unready: async () => [], redisProblem: async () => undefined };
const reasonsOf = async (readiness: Readiness, part?: "API") =>
  (await readiness.unready(part)).map(({ reason }) => reason);

describe("why a process gets no work", () => {
  it("is that it starts, until its last part is open", async () => {
    const readiness = new Readiness(() => false);
    expect(await reasonsOf(readiness)).toEqual(["starting"]);
    readiness.status = well;
    expect(await reasonsOf(readiness)).toEqual(["starting"]);
    readiness.isStarted = true;
    expect(await reasonsOf(readiness)).toEqual([]);
  });

  it("is Slack, without which the API still works", async () => {
    const readiness = new Readiness(() => false);
    readiness.status = well;
    readiness.isStarted = true;
    readiness.gateway = { problem: () => "Slack: no connection" };
    expect(await reasonsOf(readiness)).toEqual(["slack"]);
    expect(await reasonsOf(readiness, "API")).toEqual([]);
    expect(readiness.isSlackConnected()).toBe(false);
  });

  it("is that it can't continue, which whoever restarts it is told once it happens", async () => {
    const told: string[] = [];
    const readiness = new Readiness(
      () => false,
      (why) => void told.push(why),
    );
    readiness.status = well;
    readiness.wedge("another process writes the trail");
    expect(await reasonsOf(readiness)).toEqual(["stuck"]);
    expect(told).toEqual(["another process writes the trail"]);
  });

  it("is its stop, during which it can no longer be stuck", async () => {
    const readiness = new Readiness(() => true);
    readiness.wedge("too late");
    expect(readiness.wedged).toBeUndefined();
    expect(await reasonsOf(readiness)).toEqual(["stopping"]);
  });
});
