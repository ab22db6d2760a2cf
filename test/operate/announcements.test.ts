import { describe, expect, it } from "vitest";
import { createNotices } from "../../src/core/deliver/notices.ts";
import { createAnnouncements, freezeNewsWork } from "../../src/operate/announcements.ts";
import { readPending } from "../../src/redis/pending.ts";
import { usual } from "../core/permit/sample.ts";
import { thaw } from "../support/commands.ts";
import { testJournal } from "../support/with-redis.ts";

describe("the news of a freeze", () => {
  it("is announced once and in order, and shown by messages, when a process dies in the middle", async () => {
    await using here = await testJournal();
    const { redis, key, store: journal } = here;
    const team = { projects: ["pay-*"], channel: "C07PAY", view: [], operate: [], approve: [] };
    const policy = {
      ...usual,
      access: { ...usual.access, administer: ["U0ADA", "U0AMIR"] },
      audit: { channel: "C09AUDIT" },
      alerts: { channel: "C08ALERTS" },
      teams: { pay: { ...team, breakGlass: [] } },
    };
    const { announce } = createNotices({ redis, key });
    const told: string[] = [];
    const { tellStopped } = createAnnouncements({
      config: { policy },
      journal,
      async announce(notice) {
        const isNew = await announce(notice);
        if (isNew) told.push(`${notice.channelId}: ${notice.message.text}`);
        return isNew;
      },
    });
    let redrawn = 0;
    const work = freezeNewsWork({
      journal,
      commands: [thaw],
      tellStopped,
      config: { policy },
      namesOf: async () => (id) => id.replace("U0", "").toLowerCase(),
      async changed() {
        redrawn += 1;
        if (redrawn === 1) throw new Error("Command timed out");
      },
    });
    const pending = async () => (await readPending(redis, key)).get(work.pending.kind);
    async function takeAndHandle(): Promise<void> {
      const [id = ""] = (await pending()) ?? [];
      const taken = await work.pending.take(id);
      if (taken === undefined || !("mark" in taken)) throw new Error("nothing is due");
      await work.handle(id, taken.mark);
    }

    await journal.freeze({ by: "vera", id: "U0VERA", reason: "incident 4711" });
    await journal.thaw({ id: "U0ADA", name: "ada" });
    await expect(takeAndHandle()).rejects.toThrow("Command timed out");
    expect(await pending()).toHaveLength(1);
    // By then it counts as dead
    await redis.zincrby(work.pending.list, -5_000, work.pending.memberOf("all"));
    await takeAndHandle();
    const frozen =
      "🧊 vera froze all changes: incident 4711. What was not sent yet won't run; reads still work. ada and amir can allow changes again with /gatehouse thaw.";
    const thawed =
      "Changes are allowed again: ada ended the freeze by vera (incident 4711). Requests that it canceled have Request again on their messages.";
    const channels = ["C09AUDIT", "C08ALERTS", "C07PAY"];
    expect(told).toEqual(
      [frozen, thawed].flatMap((words) => channels.map((channel) => `${channel}: ${words}`)),
    );
    expect(redrawn).toBe(3);
    expect(await pending()).toBeUndefined();
    expect(await journal.freezeNews.owed()).toEqual([]);
  });
});
