import { describe, expect, it } from "vitest";
import { sentence } from "../../src/messages/message.ts";
import { md } from "../../src/messages/text.ts";
import type { Control } from "../../src/registry/define.ts";
import { startReading } from "./reading.ts";
import { shownText } from "./shown-text.ts";

const told =
  (what: string) =>
  async (words = "") =>
    sentence(md`${what}: ${words}`);

/** Answers with what it was asked. */
function control(over: Partial<Control> = {}): Control {
  return {
    mustAdminister: () => undefined,
    freeze: async () => true,
    thaw: async () => true,
    canI: told("can-i"),
    why: told("why"),
    approvals: told("approvals"),
    audit: async (words) => ({ message: await told("audit")(words) }),
    digest: async (action, words) => told(`digest ${action ?? ""}`)(words),
    ...over,
  };
}

async function answer(words: string, over: Partial<Control> = {}): Promise<string> {
  await using at = await startReading({ world: "empty", control: control(over) });
  return shownText(await at.reads(words));
}

describe("questions about requests and rights", () => {
  it.each([
    ["gatehouse can-i vm restore db-1 —snapshot x", "can-i: vm restore db-1 --snapshot x"],
    ['gatehouse can-i vm show "two words"', 'can-i: vm show "two words"'],
    ["gatehouse why r-7fk3m9q2xw", "why: r-7fk3m9q2xw"],
    ["gatehouse approvals", "approvals: "],
    ["gatehouse audit db-1", "audit: db-1"],
    ["gatehouse audit", "audit: "],
  ])("%s", async (words, said) => {
    expect((await answer(words)).trim()).toBe(said.trim());
  });
});

describe("/gatehouse freeze and thaw", () => {
  it("say what holds from now on", async () => {
    expect(await answer("gatehouse freeze storage is failing")).toBe(
      "🧊 All changes are frozen. Reading goes on. `/gatehouse thaw` ends it.",
    );
    expect(await answer("gatehouse thaw")).toBe(
      "Changes are allowed again. What was asked during the freeze is not done by itself: ask again.",
    );
  });

  it("say when it was so already", async () => {
    expect(await answer("gatehouse freeze", { freeze: async () => false })).toBe(
      "🧊 Changes are frozen already; the first reason stands. `/gatehouse status` shows it.",
    );
    expect(await answer("gatehouse thaw", { thaw: async () => false })).toBe("Nothing was frozen.");
  });

  it("hand on the reason as it was written", async () => {
    const reasons: string[] = [];
    const freeze = async (reason: string) => reasons.push(reason) > 0;
    await answer("gatehouse freeze disks fail, it's the “raid siren”", { freeze });
    await answer("gatehouse freeze 'disks fail'", { freeze });
    expect(reasons).toEqual([`disks fail, it's the "raid siren"`, "disks fail"]);
  });
});
