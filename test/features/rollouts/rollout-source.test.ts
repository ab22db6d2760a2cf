import { afterEach, describe, expect, it, vi } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { startMessaging } from "../../support/start-delivery.ts";
import { newRolloutId, type RolloutState } from "../../../src/features/rollouts/rollout.ts";
import { createRollouts } from "../../../src/features/rollouts/rollouts.ts";
import { isChange } from "../../../src/registry/define.ts";
import type { RateLimiter } from "../../../src/core/deliver/rate-limiter.ts";
import { rolloutSource } from "../../../src/features/rollouts/rollout-source.ts";
import { vmTarget } from "../../core/asking.ts";
import { until } from "../../support/until.ts";

/**
 * Starts a rollout of three VMs, and processes that deliver its messages, each with its own rate
 * limiter.
 */
async function rollingOut({ channelId = "C01OPS" } = {}) {
  const level = await startMessaging();
  const { slack, redis, key } = level;
  const rollouts = createRollouts(redis, key);
  const id = newRolloutId();
  const targets = ["web-1", "web-2", "web-3"].map((name) => vmTarget(name));
  await rollouts.plan(
    {
      id,
      command: "vm restart",
      input: {},
      words: "web-*",
      options: { maxUnavailable: 1, canary: false, stopOnFailure: 1 },
      total: targets.length,
      requester: { id: "U0OLIVIA", teamId: "T01CONF", name: "olivia" },
      channelId,
      policyVersion: "v1",
      leftOut: [],
      createdAt: 0,
    },
    targets,
  );
  return {
    ...level,
    rollouts,
    id,
    start(change?: (usual: RateLimiter) => RateLimiter) {
      const changes = commands.filter(isChange);
      return level.deliver([rolloutSource({ rollouts, commands: changes, editMs: 50 })], change);
    },
    /** Moves the rollout as its worker would. */
    async goes(state: RolloutState, ok: number): Promise<void> {
      const rollout = await rollouts.get(id);
      if (!rollout) throw new Error("it is gone");
      const progress = { ...rollout.progress, next: ok, ok };
      await rollouts.move(rollout, { state, progress });
    },
    /**
     * Makes the rollout due again, as if the half minute for which a delivery hides it were over.
     */
    async isDueAgain(): Promise<void> {
      await rollouts.outbox.later(id, 0);
    },
    empty: () => level.empty("rollout"),
    cards: () =>
      slack
        .person("vera")
        .seesChannel("ops")
        .messages.filter(({ blocks }) => JSON.stringify(blocks).includes(id)),
    directs: () =>
      slack
        .person("olivia")
        .seesChannel("gatehouse")
        .messages.filter(({ blocks }) => JSON.stringify(blocks).includes(id)),
    edits: () => slack.calls("chat.update").map(({ args }) => String(args["text"])),
  };
}

/**
 * Holds one call of a rate limiter until the test releases it, like a process that was stopped
 * there.
 */
function asleepAt(what: "post" | "edit") {
  const [asleep, awake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = async () => {
    asleep.resolve();
    await awake.promise;
  };
  return {
    asleep: asleep.promise,
    wakes: awake.resolve,
    rateLimiter: (usual: RateLimiter): RateLimiter => ({
      ...usual,
      async post(channelId, turn) {
        if (what === "post") await hold();
        return usual.post(channelId, turn);
      },
      async edit(turn) {
        if (what === "edit") await hold();
        return usual.edit(turn);
      },
    }),
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("the message of a rollout", () => {
  it("is posted once, though one process slept between reading it and posting it", async () => {
    await using here = await rollingOut();
    const held = asleepAt("post");
    const sleeper = here.start(held.rateLimiter);
    await here.goes("running", 0);
    await held.asleep;
    // A closing process takes no more work.
    const closed = sleeper.close();
    here.start();
    await here.isDueAgain();
    await here.empty();
    expect(here.cards()).toHaveLength(1);
    held.wakes();
    await closed;
    await here.empty();
    expect(here.cards()).toHaveLength(1);
  });

  it("isn't replaced by an older one from a process that slept before its edit", async () => {
    await using here = await rollingOut();
    const held = asleepAt("edit");
    const sleeper = here.start(held.rateLimiter);
    await here.goes("running", 0);
    await here.empty();
    await here.goes("running", 1);
    await held.asleep;
    // It takes nothing more
    const closed = sleeper.close();
    here.start();
    await here.goes("done", 3);
    await here.isDueAgain();
    await here.empty();
    expect(here.edits().at(-1)).toContain("Restarted 3 VMs");
    held.wakes();
    await closed;
    await here.empty();
    expect(here.edits().filter((text) => text.includes("1 of 3"))).toEqual([]);
  });

  it("shows progress in time, though the process before had a clock that is an hour ahead", async () => {
    await using here = await rollingOut();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    const ahead = here.start();
    await here.goes("running", 0);
    await here.empty();
    await ahead.close();
    vi.useRealTimers();
    here.start();
    await here.goes("running", 1);
    await here.slack.until(() => here.edits().length === 1);
    expect(here.edits()).toEqual([expect.stringContaining("1 of 3")]);
  });

  it("continues in direct messages when its channel is closed to Gatehouse, and ends there", async () => {
    await using here = await rollingOut();
    here.start();
    await here.goes("running", 0);
    await here.empty();
    here.slack.edit.removeBot("ops");
    await here.goes("done", 3);
    await here.empty();
    const posts = here.slack.calls("chat.postMessage").filter(({ ok }) => ok);
    expect(posts.map(({ args }) => args["channel"])).toEqual(["C01OPS", "D0OLIVIA"]);
  });

  it("is in direct messages once, though the answer to its post is lost and the first look-up fails", async () => {
    // The rollout was requested on the Home tab. Slack accepts the person's ID as a channel for a
    // post, but finds no messages under it.
    await using here = await rollingOut({ channelId: "U0OLIVIA" });
    here.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    here.slack.weather.add({ method: "conversations.open", kind: "lost-before", times: 2 });
    here.start();
    await here.goes("running", 0);
    const owed = async () => {
      const left = await here.rollouts.outbox.depth();
      if (left > 0) await here.isDueAgain();
      return left;
    };
    await until(owed).toBe(0);
    expect(here.slack.calls("conversations.history")).toHaveLength(1);
    expect(here.directs()).toHaveLength(1);
    // The card is edited where it was found.
    await here.goes("done", 3);
    await here.empty();
    expect(here.edits().at(-1)).toContain("Restarted 3 VMs");
    expect(here.directs()).toHaveLength(1);
  });
});
