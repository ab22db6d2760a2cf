import { createStatusRecords } from "../../../src/monitor/status-records.ts";
import { md } from "../../../src/messages/markdown.ts";
import { describe, expect, it } from "vitest";
import { wordsOf } from "../../stories/words.ts";
import { pendingOf } from "../../support/pending.ts";
import { parcelsToSign, signParcel, startScene } from "./digest-processes.ts";
import { until } from "../../support/until.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { lineOf } from "../../../src/features/digests/line-buttons.ts";

const daily = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const rule = (timezone: string, at = "09:00", channel = "C02STATUS") => ({
  channel,
  at,
  timezone,
  days: daily,
});
const ms = (iso: string) => Date.parse(iso);
const hour = 3_600_000;

describe("digests on a schedule", () => {
  it("are posted exactly once a day in two time zones across clock changes, by three processes", async () => {
    await using scene = await startScene({
      now: ms("2027-03-26T00:00Z"),
      rules: [rule("Europe/Paris", "02:30"), rule("America/New_York", "02:30", "C01OPS")],
      vms: [knownVm("web-1")],
    });
    const processes = [await scene.start(), await scene.start(), await scene.start()];
    const step = 97 * 60_000;
    for (; scene.set.now < ms("2027-03-31T00:00Z"); scene.set.now += step)
      await Promise.all(processes.map((one) => one.postDue()));
    await scene.said();
    expect(scene.posted()).toHaveLength(5);
    expect(scene.posted("ops")).toHaveLength(5);

    // In New York the clocks went forward two weeks before; here they go back in Paris
    scene.set.now = ms("2027-10-30T12:00Z");
    await Promise.all(processes.map((one) => one.postDue()));
    await scene.said();
    const before = scene.posted().length;
    for (; scene.set.now < ms("2027-11-02T12:00Z"); scene.set.now += step)
      await Promise.all(processes.map((one) => one.postDue()));
    await scene.said();
    expect(scene.posted().length - before).toBe(3);
  });

  it("is posted late, once, and says so when no process ran at its time", async () => {
    await using scene = await startScene({
      now: ms("2026-11-19T12:00Z"),
      rules: [rule("UTC")],
      vms: [knownVm("web-1", "ERROR")],
    });
    await (await scene.start()).postDue(); // the schedule is known from here on
    scene.set.now = ms("2026-11-20T12:00Z");
    const back = [await scene.start(), await scene.start()];
    await Promise.all(back.map((one) => one.postDue()));
    await scene.said();
    const [late, ...others] = scene.posted();
    expect(others).toEqual([]);
    expect(late && wordsOf(late)).toContain("Late by 3 h: it was due Fri, Nov 20, 9:00 AM (UTC).");
  });

  it("does not begin in the past when it is new", async () => {
    await using scene = await startScene({ now: ms("2026-11-20T12:00Z"), rules: [rule("UTC")] });
    const one = await scene.start();
    await one.postDue();
    expect(await pendingOf(scene.redis, scene.key, "notice")).toBe(0);
    scene.set.now += 21 * hour;
    await one.postDue();
    await scene.said();
    expect(scene.posted()).toHaveLength(1);
  });

  it("is posted from the first day on when days lie in between", async () => {
    const weekly = { ...rule("UTC"), days: ["mon"] as const };
    await using scene = await startScene({ now: ms("2026-11-20T12:00Z"), rules: [weekly] });
    const one = await scene.start();
    await one.postDue();
    scene.set.now = ms("2026-11-23T09:00:02Z");
    await one.postDue();
    await scene.said();
    expect(scene.posted()).toHaveLength(1);
  });

  it("follows Slack's settings before those of gatehouse.yml", async () => {
    await using scene = await startScene({ now: ms("2026-11-20T08:00Z"), rules: [rule("UTC")] });
    const { digests, postDue } = await scene.start();
    await digests.schedules.set(rule("UTC", "10:00"));
    await postDue();
    scene.set.now = ms("2026-11-20T09:30Z");
    await postDue();
    await scene.said();
    expect(scene.posted()).toEqual([]);
    scene.set.now = ms("2026-11-20T10:00Z");
    await postDue();
    await scene.said();
    expect(scene.posted()).toHaveLength(1);
    expect(await digests.schedules.clear("C02STATUS")).toBe(true);
    expect(await digests.schedules.all()).toEqual([]);
    expect(await digests.schedules.clear("C02STATUS")).toBe(false);
  });

  it("is given up with an alarm after it crashed three processes", async () => {
    await using scene = await startScene({ now: ms("2026-11-20T08:00Z"), rules: [rule("UTC")] });
    let starts = 0;
    const dies = { at: () => (starts++, new Promise<never>(() => {})) };
    const slot = "digest-C02STATUS-2026-11-20-0900-UTC";
    await (await scene.start(dies)).postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    for (let killed = 0; killed < 3; killed++) {
      // The process is killed in the middle: `postDue` never ends, and its lease does
      void (await scene.start(dies)).postDue();
      await until(() => starts).toBe(killed + 1);
      await scene.redis.del(scene.key("digest-slot", slot, "lease"));
    }
    await (await scene.start(dies)).postDue();
    expect(starts).toBe(3);
    expect(scene.alarms.map(({ id }) => id)).toEqual([`${slot}-failed`]);
    expect(scene.alarms[0]?.message.text).toMatch(/could not be made: three attempts failed/);
    expect(await scene.redis.hget(scene.key("digest-slot", slot), "ended")).toBe("failed");
    expect(scene.posted()).toEqual([]);
  });

  it("isn't given up for another one that crashed three processes while it was due, too", async () => {
    const slotOf = (channel: string) => `digest-${channel}-2026-11-20-0900-UTC`;
    const [poison, innocent] = [slotOf("C02STATUS"), slotOf("C01OPS")];
    await using scene = await startScene({
      now: ms("2026-11-20T08:00Z"),
      rules: [rule("UTC"), rule("UTC", "09:00", "C01OPS")],
    });
    let starts = 0;
    const dies = {
      at: async (_: string, slot: string) => {
        if (slot === poison) starts += 1;
        return new Promise<never>(() => {});
      },
    };
    const others = await scene.start();
    await others.postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    for (let killed = 0; killed < 3; killed++) {
      const { postDue } = await scene.start(dies);
      // Each of the two has a job
      void postDue();
      void postDue();
      await until(() => starts).toBe(killed + 1);
      for (const slot of [poison, innocent])
        await scene.redis.del(scene.key("digest-slot", slot, "lease"));
    }
    await others.postDue();
    await scene.said();
    expect(scene.alarms.map(({ id }) => id)).toEqual([`${poison}-failed`]);
    expect(scene.posted("ops")).toHaveLength(1);
  });

  it("is one message when the process dies between posting and remembering", async () => {
    await using scene = await startScene({ now: ms("2026-11-20T08:00Z"), rules: [rule("UTC")] });
    const one = await scene.start();
    await one.postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    await one.postDue();
    await scene.redis.hdel(
      scene.key("digest-slot", "digest-C02STATUS-2026-11-20-0900-UTC"),
      "ended",
    );
    await scene.redis.del(
      scene.key("digest-slot", "digest-C02STATUS-2026-11-20-0900-UTC", "lease"),
    );
    await (await scene.start()).postDue();
    await scene.said();
    expect(scene.posted()).toHaveLength(1);
  });

  it("is one message when Slack takes it and the answer is lost", async () => {
    await using scene = await startScene({ now: ms("2026-11-20T08:00Z"), rules: [rule("UTC")] });
    const one = await scene.start();
    await one.postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    scene.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    await one.postDue();
    await scene.said();
    expect(scene.posted()).toHaveLength(1);
  });
});

describe("a button in digests that one person answers for all", () => {
  it("shows the answer in each of them in its place, and others keep theirs", async () => {
    await using scene = await startScene({
      now: ms("2026-11-19T12:00Z"),
      rules: [rule("UTC"), rule("UTC", "10:00", "C01OPS")],
      parts: [parcelsToSign("p-1", "p-2")],
    });
    const one = await scene.start();
    await one.postDue();
    for (const now of ["2026-11-20T12:00Z", "2026-11-21T12:00Z"]) {
      scene.set.now = ms(now);
      await one.postDue();
    }
    await scene.said();
    const posted = () => [...scene.posted(), ...scene.posted("ops")].map(wordsOf);
    expect(posted().map((said) => said.split("[Sign for it]").length)).toEqual([3, 3, 3, 3]);
    const words = md`✅ Signed by amir: “it is whole”`;
    await one.answerNotices(signParcel("p-1"), words);
    await one.answerNotices(signParcel("p-1"), words);
    await scene.said();
    for (const said of posted()) {
      expect(said).toMatch(/Parcel p-1 came\.\n✅ Signed by amir: “it is whole”\n📦 Parcel p-2/);
      expect(said.split("[Sign for it]")).toHaveLength(2);
    }
    expect(scene.slack.calls("chat.update")).toHaveLength(4);
  });

  it("shows it in one that Slack takes only in words", async () => {
    await using scene = await startScene({
      now: ms("2026-11-20T08:00Z"),
      rules: [rule("UTC")],
      vms: [knownVm("web-1"), knownVm("db-1", "ERROR"), knownVm("old", "STOPPED")],
      parts: [parcelsToSign("p-1")],
    });
    const refuses = { kind: "error", error: "invalid_blocks", times: 1 } as const;
    scene.slack.weather.add({ method: "chat.postMessage", ...refuses });
    scene.slack.weather.add({ method: "chat.update", ...refuses });
    const one = await scene.start();
    await one.postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    await one.postDue();
    await scene.said();
    await one.answerNotices(signParcel("p-1"), md`✅ Signed by amir: “fine”`);
    await scene.said();
    const [shown = ""] = scene.posted().map(wordsOf);
    expect(shown).toMatch(/Signed by amir: “fine”[^]*VMs by status\n1 ERROR/);
    expect(shown).not.toContain("[Sign for it]");
  });
});

describe("the chart of a digest", () => {
  const shown = { vms: [knownVm("web-1"), knownVm("db-1", "ERROR"), knownVm("old", "STOPPED")] };

  it("is in the message, with the same as text", async () => {
    await using scene = await startScene({
      now: ms("2026-11-20T08:00Z"),
      rules: [rule("UTC")],
      ...shown,
    });
    const one = await scene.start();
    await one.postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    await one.postDue();
    await scene.said();
    const chart = scene.posted()[0]?.blocks.find(({ type }) => type === "data_visualization");
    expect(chart).toMatchObject({
      title: "VMs by status",
      chart: { type: "bar", axis_config: { categories: ["ERROR", "RUNNING", "STOPPED"] } },
    });
    expect(scene.posted().map(wordsOf).join()).toContain("3 VMs: 1 ERROR, 1 STOPPED, 1 RUNNING.");
  });

  it("is text when Slack refuses it, and the digest is posted once", async () => {
    await using scene = await startScene({
      now: ms("2026-11-20T08:00Z"),
      rules: [rule("UTC")],
      ...shown,
    });
    const over = scene.slack.weather.add({
      method: "chat.postMessage",
      kind: "error",
      error: "invalid_blocks",
      times: 1,
    });
    const one = await scene.start();
    await one.postDue();
    scene.set.now = ms("2026-11-20T09:00Z");
    await one.postDue();
    await scene.said();
    over();
    expect(scene.posted()).toHaveLength(1);
    expect(scene.posted()[0]?.blocks.map(({ type }) => type)).not.toContain("data_visualization");
    expect(scene.posted().map(wordsOf).join()).toContain(
      "VMs by status\n1 ERROR · 1 RUNNING · 1 STOPPED",
    );
  });
});

describe("snoozing a line", () => {
  it("keeps it out of the digests of that channel for its time, or until it is un-snoozed", async () => {
    await using scene = await startScene({
      now: ms("2026-11-20T08:00Z"),
      vms: [knownVm("db-1", "ERROR"), knownVm("db-2", "ERROR")],
    });
    const { digests } = await scene.start();
    const line = lineOf({ kind: "error", key: "vm-db-1" });
    await digests.snoozes.snooze("C02STATUS", line, scene.set.now + 24 * hour);
    const words = async (channel: string) => JSON.stringify(await digests.build(channel));
    expect(await words("C02STATUS")).toContain("db-2");
    expect(await words("C02STATUS")).not.toContain("db-1");
    expect(await words("C02STATUS")).toContain("1 line is snoozed here");
    expect(await words("C01OPS")).toContain("db-1");
    scene.set.now += 24 * hour + 1;
    expect(await words("C02STATUS")).toContain("db-1");
    await digests.snoozes.snooze("C02STATUS", line, scene.set.now + hour);
    expect(await words("C02STATUS")).not.toContain("db-1");
    await digests.snoozes.unsnooze("C02STATUS");
    expect(await words("C02STATUS")).toContain("db-1");
  });

  it("lasts when facts about the line change, and ends when the line is certainly gone", async () => {
    await using scene = await startScene({
      now: ms("2026-11-20T08:00Z"),
      vms: [knownVm("db-1", "ERROR")],
    });
    const { digests } = await scene.start();
    const { set } = scene;
    const line = lineOf({ kind: "error", key: "vm-db-1" });
    const words = async () => JSON.stringify(await digests.build("C02STATUS"));
    await digests.snoozes.snooze("C02STATUS", line, set.now + 100 * hour);
    expect(await words()).not.toContain("db-1");
    // Only now it is known when the status began.
    const statuses = { "vm-db-1": ["ERROR", set.now] } as const;
    await createStatusRecords(scene.redis, scene.key).writeRecords(new Map([["p-shop", statuses]]));
    expect(await words()).not.toContain("db-1");
    // A VM that can't be read may still be in ERROR.
    set.vms = [];
    set.state = { stale: true };
    await words();
    set.vms = [knownVm("db-1", "ERROR")];
    set.state = {};
    expect(await words()).not.toContain("db-1");
    set.vms = [knownVm("db-1")];
    await words();
    set.vms = [knownVm("db-1", "ERROR")];
    expect(await words()).toContain("db-1");
  });
});
