import { describe, expect, it } from "vitest";
import { commands } from "../../support/commands.ts";
import { parseCommand } from "../../../src/registry/parse.ts";
import { quickest } from "../../support/quickest.ts";
import { wordsToUs } from "../../../src/slack/receive/message-words.ts";

const us = "U0GATEHOUSE";
const words = (text: string) => wordsToUs(text.replaceAll("@gatehouse", `<@${us}>`), us);

describe("the words of a message to Gatehouse", () => {
  it.each([
    // Formatting is no word, wherever its pair is
    ["@gatehouse *restart web-2*", "restart web-2"],
    ["@gatehouse *restart* web-2", "restart web-2"],
    ["@gatehouse restart *web-2*", "restart web-2"],
    ["@gatehouse _restart_ ~web-2~", "restart web-2"],
    ["@gatehouse restart _web-2_, *web-1* and ~db-1~!", "restart web-2, web-1 and db-1"],
    ["*@gatehouse restart web-2*", "restart web-2"],
    ["*@gatehouse* restart web-2", "restart web-2"],
    ["@gatehouse *_restart ~web-2~_*", "restart web-2"],
    ["@gatehouse **restart web-2**", "restart web-2"],
    ["@gatehouse *restart `web-2`*", "restart web-2"],
    ["@gatehouse `*restart* web-2`", "*restart* web-2"],
    ["@gatehouse `restart web-2`", "restart web-2"],
    ["@gatehouse ```restart web-2```", "restart web-2"],
    ["@gatehouse restart *<http://web-2.example|web-2.example>*", "restart web-2.example"],
    // A glob stays one
    ["@gatehouse restart web-*", "restart web-*"],
    ["@gatehouse restart web-* db-*", "restart web-* db-*"],
    ["@gatehouse restart *-1 web-*", "restart *-1 web-*"],
    ["@gatehouse restart *-1,*-2", "restart *-1,*-2"],
    ["@gatehouse restart web-*,db-*", "restart web-*,db-*"],
    ["@gatehouse *restart* web-*", "restart web-*"],
    ["@gatehouse *restart web-**", "restart web-*"],
    ["@gatehouse *restart* *web-**", "restart web-*"],
    ["@gatehouse restart `*web*`", "restart *web*"],
    ['@gatehouse restart "*web*"', 'restart "*web*"'],
    ["@gatehouse restart *web *db", "restart *web *db"],
    ["@gatehouse restart web-?", "restart web-?"],
    ["@gatehouse restart `web-2?`", "restart web-2?"],
    // Underscores inside names are letters
    ["@gatehouse restart a_b", "restart a_b"],
    ["@gatehouse restart _a_b_", "restart a_b"],
    ["@gatehouse restart web_a web_b", "restart web_a web_b"],
    ["@gatehouse restart a_b*", "restart a_b*"],
    // What is said around a command
    ["@gatehouse: restart web-2", "restart web-2"],
    ["@gatehouse, could you restart web-2?", "restart web-2"],
    ["@gatehouse could you please restart web-2, thanks!", "restart web-2"],
    ["@gatehouse, would you please restart web-2 please?", "restart web-2"],
    ["@gatehouse - restart web-2.", "restart web-2"],
    ["@gatehouse restart web-2?", "restart web-2"],
    ["@gatehouse restart web-2? Thank you!", "restart web-2"],
    ["hey @gatehouse restart web-2 please", "restart web-2"],
    ["it hangs again. @gatehouse restart web-2", "restart web-2"],
    ["restart db-1 failed, @gatehouse: restart web-2", "restart web-2"],
    ["hey @gatehouse @gatehouse: restart web-2", "restart web-2"],
    ["restart web-2 @gatehouse", "restart web-2"],
    ["restart web-2, @gatehouse.", "restart web-2,"],
    ["restart web-2 @gatehouse please!", "restart web-2"],
    ["restart web-2 @gatehouse, thanks", "restart web-2"],
    ["hey @gatehouse!", "hey"],
    ["@gatehouse hi", "hi"],
    ["Hi!", "Hi"],
    ["hey @gatehouse what is wrong with web-2?", "what is wrong with web-2"],
    ["thanks!", "thanks"],
    ["@gatehouse thank you", "thank you"],
    ["@gatehouse restart web-2\nThank you", "restart web-2"],
    ["hey gatehouse, restart web-2", "restart web-2"],
    ["gatehouse status", "gatehouse status"],
    ["@gatehouse", ""],
    ["@gatehouse!", ""],
    ["@gatehouse /vm restart web-2", "/vm restart web-2"],
    ["@gatehouse vm list --status ERROR", "vm list --status ERROR"],
    ["@gatehouse can-i vm restart web-2", "can-i vm restart web-2"],
    ["@gatehouse show <@U0OLIVIA> web-2", "show @U0OLIVIA web-2"],
  ])("%s", (text, meant) => {
    expect(words(text)).toBe(meant);
  });

  it("name no more VMs than they did with the marks", () => {
    for (const [text, targets] of [
      ["@gatehouse restart *web-2*", ["web-2"]],
      ["@gatehouse, could you restart web-2?", ["web-2"]],
      ["@gatehouse restart *web*", ["web"]],
      ["@gatehouse restart web-*", ["web-*"]],
    ] as const) {
      const parsed = parseCommand(words(text), commands);
      expect([text, "refusal" in parsed ? parsed.refusal.text : parsed.input["vms"]]).toEqual([
        text,
        targets,
      ]);
    }
  });

  it("take linear time, whatever marks they hold", () => {
    const tookMs = quickest(() => {
      for (const part of ["*a ", "_a_b", "~*_", "*a* ", "`*` ", "<@U1> *", "-", ". ", "please "])
        words(part.repeat(20_000 / part.length));
    });
    expect(tookMs).toBeLessThan(2_000);
  });
});
