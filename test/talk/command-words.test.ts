import { describe, expect, it } from "vitest";
import { commands } from "../support/commands.ts";
import { mentionWords } from "../../src/talk/command-words.ts";

describe("words in the answer to a mention", () => {
  it.each([
    ["`/vm list` shows all.", "`@gatehouse vm list` shows all."],
    ["`/gatehouse status` and `/vm`", "`@gatehouse status` and `@gatehouse vm`"],
    ["You can't run /vm restart here.", "You can't run vm restart here."],
    ["`/invite @gatehouse`, `/v1/vm/x`, `a/vm`", "`/invite @gatehouse`, `/v1/vm/x`, `a/vm`"],
    ["https://x.example/vm and /vms", "https://x.example/vm and /vms"],
  ])("name no slash command: %s", (said, reworded) => {
    expect(mentionWords(said, commands)).toBe(reworded);
  });
});
