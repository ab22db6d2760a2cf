import { asPost } from "../../../src/messages/notification.ts";
import { describe, expect, it } from "vitest";
import { type RequestIn, type StoredRequest } from "../../../src/core/request/stored-request.ts";
import { commands } from "../../../src/features/index.ts";
import type { AlertOnVm, AlertPart } from "../../../src/features/alert-part.ts";
import { createRemedies } from "../../../src/features/remedies/remedies.ts";
import { remedySource } from "../../../src/features/remedies/remedy-source.ts";
import { requestable } from "../../../src/registry/define.ts";
import {
  called,
  member,
  movedBy,
  policy,
  restartOf,
  stageOf,
  storeRequest,
  vmTarget,
} from "../../core/asking.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { testJournal } from "../../support/with-redis.ts";

const factsOf = ({ stage: { call, reads, setbacks } }: RequestIn<"sending">) => ({
  call,
  reads,
  setbacks,
});

/** A journal in which restarts of web-2 are followed, each judged as soon as it has ended. */
async function startSource(state: "firing" | "ended") {
  const here = await testJournal();
  const { store } = here;
  const remedies = createRemedies(here.redis, here.key);
  let sentAt = (await store.now()) - 10_000;
  let told: Pick<AlertOnVm, "state" | "endedAt"> & { since?: number } =
    state === "firing" ? { state, endedAt: undefined } : { state, endedAt: await store.now() };
  let also: readonly AlertOnVm[] = [];
  let [heardAt, changedAt] = [Infinity, 0];
  let place: { channelId: string; ts: string } | undefined = { channelId: "C01OPS", ts: "1.0" };
  const alerts: AlertPart = {
    firingOn: async () => ["a-1"],
    find: async () => ({
      vm: "web-2",
      alerts: [{ name: "HighCpu", since: 1, heardAt, isLeftOut: false, ...told }, ...also],
      place,
      source: "prometheus",
      changedAt,
      links: [],
    }),
    redraw: async () => undefined,
  };
  const source = remedySource({
    remedies,
    store,
    changes: requestable(commands),
    config: { policy: { timing: { ...policy.timing, remedyMs: 0 } } },
    alerts: () => alerts,
    inventory: {
      findVm: async (words) =>
        elsewhere
          ? { record: { ...knownVm("web-2"), id: words, status: elsewhere } }
          : { unknown: [] },
    },
  });
  let elsewhere: string | undefined;
  return {
    ...here,
    /** Where the alert's message stands from now on; undefined while it isn't posted. */
    stands: (at: typeof place) => void (place = at),
    /** What its source tells from now on, in a delivery that arrives now. */
    async tells(now: typeof told) {
      told = now;
      heardAt = changedAt = await store.now();
    },
    /** Another alert of the VM, as its source told it. */
    alsoTells: (alert: Pick<AlertOnVm, "name" | "state" | "endedAt">) =>
      void (also = [{ since: 1, heardAt, isLeftOut: false, ...alert }]),
    /** Its source was last heard before the restart. */
    isSilent: () => void (heardAt = 0),
    /** The VM's status, as somebody else changed it. */
    changesElsewhere: (status: string) => void (elsewhere = status),
    /** A restart that is under way, typed or as an attempt to end the alert. */
    async sends(
      is: "typed" | "attempt",
      ...alertNames: readonly string[]
    ): Promise<RequestIn<"sending">> {
      // The same restart within ten seconds would be the same request.
      for (const same of await here.redis.keys(here.key("same", "*"))) await here.redis.del(same);
      const { approval: _none, ...submission } = restartOf(vmTarget("web-2"));
      const asked = await storeRequest(store, submission);
      sentAt += 10;
      const to = { state: "sending", ...called({ sentAt }) } as const;
      const sending = await movedBy(store.move(asked, { to, why: "claimed" }));
      if (is === "attempt") await this.follows(sending, ...alertNames);
      return sending;
    },
    follows: ({ record }: StoredRequest, ...alertNames: readonly string[]) =>
      remedies.follow({
        request: record.id,
        alert: "a-1",
        vmId: record.target.id,
        project: { id: record.target.projectId, name: record.target.projectName },
        command: record.command,
        alertProjects: [],
        fired: Object.fromEntries(alertNames.map((name) => [name, 1])),
      }),
    ends: (sending: RequestIn<"sending">) =>
      movedBy(
        store.move(sending, {
          to: { ...stageOf("done", factsOf(sending)), after: knownVm("web-2") },
          why: "read RUNNING",
        }),
      ),
    /** Notes that a message was posted. */
    says: ({ record }: StoredRequest, messageKey: "end" | "correction") =>
      remedies.outbox.remember(record.id, { [`said:${messageKey}`]: "1.1" }),
    /** When its source wants to be asked again (ms). */
    looksAgainMs: async ({ record }: StoredRequest) =>
      (await source.prepareMessages(record.id, await remedies.outbox.get(record.id)))?.waitMs,
    /** The first message that is owed about the attempt, as a notification shows it. */
    async words({ record }: StoredRequest) {
      const owed = await source.prepareMessages(record.id, await remedies.outbox.get(record.id));
      const message = await owed?.messages[0]?.render();
      return message && asPost(message).text;
    },
    /** What became of the attempt, and how many messages tell it. */
    async judged({ record }: StoredRequest) {
      const owed = await source.prepareMessages(record.id, await remedies.outbox.get(record.id));
      const remedy = await remedies.get(record.id);
      const verdict = remedy?.judgment?.verdicts["HighCpu"];
      return [verdict ?? remedy?.state, owed?.messages.length];
    },
  };
}

it("what still fires is told once the alert has its message, which comes later where it fires anew", async () => {
  await using here = await startSource("firing");
  const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
  here.stands(undefined);
  expect(await here.judged(attempt)).toEqual(["failed", 0]);
  expect(await here.looksAgainMs(attempt)).toBeGreaterThan(0);
  here.stands({ channelId: "C01OPS", ts: "2.0" });
  expect(await here.judged(attempt)).toEqual(["failed", 1]);
});

describe("an attempt whose alert fires as far as was told", () => {
  it("has no verdict before its source has spoken again, and tells that it hasn't", async () => {
    await using here = await startSource("firing");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
    here.isSilent();
    expect(await here.judged(attempt)).toEqual(["unheard", 1]);
    await here.tells({ state: "firing", endedAt: undefined });
    expect(await here.judged(attempt)).toEqual(["failed", 1]);
  });

  it("helped, if its source tells later that the alert ended in time, and what was said is taken back", async () => {
    await using here = await startSource("firing");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
    here.isSilent();
    expect(await here.judged(attempt)).toEqual(["unheard", 1]);
    await here.says(attempt, "end");
    await here.tells({ state: "ended", endedAt: attempt.changedAt });
    expect(await here.judged(attempt)).toEqual(["helped", 1]);
    await here.says(attempt, "correction");
    expect(await here.judged(attempt)).toEqual(["helped", 0]);
  });

  it("didn't help after all, if its alert fires again with the same beginning", async () => {
    await using here = await startSource("ended");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
    await here.tells({ state: "ended", endedAt: attempt.changedAt });
    expect(await here.judged(attempt)).toEqual(["helped", 0]);
    await here.tells({ state: "firing", endedAt: undefined });
    expect(await here.judged(attempt)).toEqual(["failed", 1]);
    await here.tells({ state: "ended", endedAt: await here.store.now() });
    expect(await here.judged(attempt)).toEqual(["failed", 0]);
  });

  it("isn't judged by another firing that began after it ended", async () => {
    await using here = await startSource("firing");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
    await here.tells({ state: "firing", endedAt: undefined, since: attempt.changedAt });
    expect(await here.judged(attempt)).toEqual(["unclear", 1]);
  });

  it("isn't known to have ended it, where the VM was stopped elsewhere", async () => {
    await using here = await startSource("ended");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
    here.changesElsewhere("STOPPED");
    expect(await here.judged(attempt)).toEqual(["explained", 0]);
  });

  it("takes back that it still fires, also if it had ended before the restart was sent", async () => {
    await using here = await startSource("firing");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu"));
    here.isSilent();
    expect(await here.judged(attempt)).toEqual(["unheard", 1]);
    await here.says(attempt, "end");
    await here.tells({ state: "ended", endedAt: 2 });
    expect(await here.judged(attempt)).toEqual(["early", 1]);
    expect(await here.words(attempt)).toBe(
      "✅ HighCpu on web-2 had ended before the restart; prometheus told it only later.",
    );
  });

  it("takes back nothing that wasn't told: another alert had ended when it was judged", async () => {
    await using here = await startSource("firing");
    const attempt = await here.ends(await here.sends("attempt", "HighCpu", "DiskFull"));
    here.isSilent();
    here.alsoTells({ name: "DiskFull", state: "ended", endedAt: attempt.changedAt });
    expect(await here.judged(attempt)).toEqual(["unheard", 1]);
    await here.says(attempt, "end");
    expect(await here.judged(attempt)).toEqual(["unheard", 0]);
    await here.tells({ state: "ended", endedAt: attempt.changedAt });
    expect(await here.judged(attempt)).toEqual(["helped", 1]);
    expect(await here.words(attempt)).toMatch(/^✅ HighCpu on web-2 had ended after the restart;/);
  });
});

describe("an attempt to end an alert that was followed by another request on the VM", () => {
  it("is judged and told as if the other weren't there, where that one was never sent", async () => {
    await using here = await startSource("firing");
    const first = await here.ends(await here.sends("attempt", "HighCpu"));
    await here.follows(
      await storeRequest(here.store, restartOf(vmTarget("web-2"), { person: member("U0ADA") })),
      "HighCpu",
    );
    expect(await here.judged(first)).toEqual(["failed", 1]);
  });

  it("isn't known to have ended the alert, where the other one changed the VM by whatever way", async () => {
    await using here = await startSource("ended");
    const first = await here.ends(await here.sends("attempt", "HighCpu"));
    const second = await here.ends(await here.sends("typed"));
    expect(await here.judged(first)).toEqual(["explained", 0]);
    await here.follows(second, "HighCpu");
    expect(await here.judged(second)).toEqual(["helped", 0]);
  });

  it("isn't known to have ended it, where the other one is still under way", async () => {
    await using here = await startSource("ended");
    const first = await here.ends(await here.sends("attempt", "HighCpu"));
    await here.sends("typed");
    expect(await here.judged(first)).toEqual(["explained", 0]);
  });

  it("is known to have ended it, where the compute service refused the other one", async () => {
    await using here = await startSource("ended");
    const first = await here.ends(await here.sends("attempt", "HighCpu"));
    const second = await here.sends("typed");
    const to = stageOf("rejected", factsOf(second));
    await movedBy(here.store.move(second, { to, why: "refused" }));
    expect(await here.judged(first)).toEqual(["helped", 0]);
  });

  it("leaves it to the other one to tell what still fires, only if that one follows the alert", async () => {
    await using here = await startSource("firing");
    const first = await here.ends(await here.sends("attempt", "HighCpu"));
    const typed = await here.ends(await here.sends("typed"));
    await here.ends(await here.sends("attempt", "DiskFull"));
    expect(await here.judged(first)).toEqual(["failed", 1]);

    const second = await here.ends(await here.sends("attempt", "HighCpu"));
    const third = await here.ends(await here.sends("attempt", "HighCpu"));
    expect(typed.record.id).not.toBe(third.record.id);
    expect(await here.judged(second)).toEqual(["failed", 0]);
    expect(await here.judged(third)).toEqual(["failed", 1]);
  });
});

describe("an attempt of which nobody saw the end when it came", () => {
  it("has no verdict: a person recorded it, or it took effect after it was told as not applied", async () => {
    await using here = await startSource("ended");
    const { store } = here;
    const lost = async () => {
      const sending = await here.sends("attempt", "HighCpu");
      const to = stageOf("unclear", factsOf(sending));
      return { unclear: await movedBy(store.move(sending, { to, why: "no answer" })), to };
    };

    const first = await lost();
    const unknown = stageOf("unknown", { call: first.to.call });
    const asked = await movedBy(
      store.move(first.unclear, { to: unknown, why: "it can't be read" }),
    );
    const recorded = stageOf("done", {
      call: first.to.call,
      decidedBy: { id: "U0OLIVIA", name: "olivia" },
    });
    const byPerson = await movedBy(store.move(asked, { to: recorded, why: "it happened" }));
    expect(await here.judged(byPerson)).toEqual(["void", 0]);

    const second = await lost();
    const notApplied = stageOf("not-applied", { call: second.to.call });
    const ended = await movedBy(store.move(second.unclear, { to: notApplied, why: "no effect" }));
    const late = stageOf("done", { call: second.to.call });
    const seenLate = await movedBy(store.move(ended, { to: late, why: "took effect late" }));
    expect(await here.judged(seenLate)).toEqual(["void", 0]);

    const seen = await here.ends(await here.sends("attempt", "HighCpu"));
    expect(await here.judged(seen)).toEqual(["helped", 0]);
  });
});
