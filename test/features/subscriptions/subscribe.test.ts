import { describe, expect, it } from "vitest";
import type { Message } from "../../../src/messages/blocks.ts";
import { person, policyOf } from "../../core/permit/sample.ts";
import { startReading } from "../../commands/reading.ts";
import { shownText } from "../../commands/shown-text.ts";

const plainly = (message: Message) => shownText(message).replaceAll("`", "");
const asked = (words: string) => `gatehouse ${words}`;

describe("gatehouse subscribe", () => {
  it("says what it matches now, shows it, and gatehouse unsubscribe ends it, completely or in part", async () => {
    await using here = await startReading();
    const reads = async (words: string) => plainly(await here.reads(asked(words)));
    const none = await reads("subscribe");
    expect(none).toContain(
      "has no subscriptions. /gatehouse subscribe ml/* trouble,drift,changes adds one.",
    );
    // What it says works as it is, and matches something.
    const example = /\/gatehouse (subscribe .*) adds one/.exec(none)?.[1] ?? "";
    expect(await reads(example)).toMatch(/Now 2 VMs match: ml\//);
    await reads("unsubscribe all");
    expect(await reads("subscribe web-* drift trouble")).toMatch(
      /^Gatehouse tells <#C01OPS> about web-\*: trouble and drift\.\nNow \d VMs match: /,
    );
    expect(await reads("subscribe changes, payments/db-1 nothing-yet-*")).toContain(
      "about payments/db-1, nothing-yet-*: changes.",
    );
    expect(await reads("follow later-*")).toContain(
      "about later-*: trouble, drift, and changes.\nNo VM matches now; those that come later will.",
    );
    const all = await here.reads(asked("subscribe"));
    expect(plainly(all)).toContain("web-*: trouble and drift");
    expect(plainly(all)).toContain("payments/db-1: changes");
    expect(JSON.stringify(all.blocks)).toContain("run:gatehouse.unsubscribe");
    expect(await reads("unsubscribe web-* drift")).toContain(
      "Gatehouse no longer tells <#C01OPS> about web-*: drift",
    );
    expect(await reads("subscriptions")).toMatch(/web-\*: trouble\b/);
    expect(await reads("unsubscribe all")).toContain("Gatehouse no longer tells");
    expect(await reads("subscribe")).toContain("has no subscriptions");
  });

  it.each([
    ["subscribe trouble", "No VM or project is named."],
    ["subscribe no-such-vm", "There is no VM or project called no-such-vm"],
    ["subscribe change", "There is no VM or project called change"],
    ["unsubscribe web-*", "This channel isn't subscribed to web-*."],
    ["unsubscribe all", "This channel isn't subscribed to anything."],
    ["unsubscribe", "/gatehouse unsubscribe needs a name or glob."],
    ["unsubscribe trouble", "No VM or project is named."],
  ])("refuses %j", async (words, expected) => {
    await using here = await startReading();
    await expect(here.reads(asked(words))).rejects.toThrow(expected);
  });

  it("names only what both the channel's team and the person see, as if the rest did not exist", async () => {
    const policy = policyOf(`
access: { operate: ["U0PLA"] }
teams:
  payments: { projects: ["payments"], operate: ["U0PAY"], channel: C01OPS }
  ml: { projects: ["ml"], operate: ["U0PAY", "U0ML"] }
`);
    const matches = async (who: string, glob: string) => {
      await using here = await startReading({ policy, person: person(who) });
      return plainly(await here.reads(asked(`subscribe ${glob}`)));
    };
    expect(await matches("U0PAY", "*")).toMatch(
      /Now \d VMs that this channel may see match: payments\//,
    );
    expect(await matches("U0PAY", "*-7")).toContain("No VM that this channel may see matches now");
    await expect(matches("U0PAY", "train-7")).rejects.toThrow("no VM or project called train-7");
    await expect(matches("U0PAY", "train-8")).rejects.toThrow("no VM or project called train-8");
  });

  it("works only in channels", async () => {
    await using here = await startReading({ channelId: "D0VERA" });
    await expect(here.reads(asked("subscribe web-*"))).rejects.toThrow("Run this in a channel.");
  });
});
