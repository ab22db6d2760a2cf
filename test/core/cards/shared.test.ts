import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { asPost } from "../../../src/messages/notification.ts";
import { md } from "../../../src/messages/markdown.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import {
  type Member,
  renderSharedCard,
  renderSharedResult,
} from "../../../src/core/cards/render-card.ts";
import { shownText } from "../../commands/shown-text.ts";
import { called, stageOf, storedIn, vmTarget } from "../asking.ts";

const at = Date.parse("2026-11-20T12:00:00Z");

const done = stageOf("done", called({ sentAt: at }));

function member(n: number, stage: Stage = done, note?: Member["note"]): Member {
  const request = storedIn(stage, {
    record: {
      id: `r-${n}`,
      command: "vm restart",
      input: { vms: [`vm-payments-web-${n}`] },
      target: vmTarget(`web-${n}`),
      requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
      channelId: "C01OPS",
      origin: { kind: "typed", interaction: "1.1" },
      policyVersion: "v1",
      createdAt: at,
      runsUntil: at + 600_000,
    },
    owner: "w-1",
    revision: 3,
    changedAt: at + 4000,
    delivered: { marks: { card: "shared s-1" } },
  });
  return { request, command: restart, note };
}

const some = (count: number, note?: Member["note"]) =>
  Array.from({ length: count }, (_, n) => member(n, done, note));

it("a shared card has a line for each request, and a menu that names each", () => {
  const running = member(9, stageOf("accepted", called({ sentAt: at })));
  const shown = renderSharedCard([member(1), running]);
  expect(asPost(shown).text).toBe("2 requests: 1 done, 1 running");
  expect(shownText(shown)).toMatch(/✅ Restarted `web-1`.*\(olivia\)/);
  expect(shownText(shown)).toMatch(
    /⏳ \*Restart\* `web-9` in payments: running since .*\(olivia\)/,
  );
  expect(JSON.stringify(shown.blocks.at(-1))).toContain("✅ Restart web-1 (olivia)");
});

it("sixty fit into one message, within Slack's limits", () => {
  const shown = renderSharedCard(some(60), [some(60, { line: md`Attested again: ✅ verified` })]);
  expect(shown.blocks.length).toBeLessThan(50);
  expect(JSON.stringify(shown.blocks).length).toBeLessThan(13_000);
  expect(shownText(shown)).toContain("All 60 are done.");
});

it("forty that were refused with long sentences have a line each, shortened, with who asked", () => {
  const refused = Array.from({ length: 40 }, (_, n) =>
    member(n, stageOf("rejected", { why: `the service said <${"no & ".repeat(56)}>` })),
  );
  const text = shownText(renderSharedCard(refused, [refused]));
  for (const { request } of refused)
    expect(text).toMatch(
      new RegExp(
        `❌ Restart of \`${request.record.target.name}\` was not done[^\n]*… \\(olivia\\)`,
      ),
    );
  expect(text).not.toContain("more: choose");
  expect(shownText(renderSharedCard([member(1), ...refused.slice(0, 39)]))).toContain(
    "✅ Restarted `web-1` in 4 s. (olivia)",
  );
});

it("a requester's only one is said by its line, and in words where the message is one line", () => {
  const { request, command } = member(2);
  const requester = { id: "U0ADA", teamId: "T0OURS", name: "ada" };
  const hers = { request: { ...request, record: { ...request.record, requester } }, command };
  const shown = renderSharedCard([member(1), hers], [[member(1)], [hers]]);
  expect(asPost(shown).text).toBe("✅ Restarted web-1 in 4 s. ✅ Restarted web-2 in 4 s.");
  expect(shownText(shown).split("\n").slice(0, 4)).toEqual([
    "✅ <@U0OLIVIA> `web-1`",
    "✅ <@U0ADA> `web-2`",
    "✅ Restarted `web-1` in 4 s. (olivia)",
    "✅ Restarted `web-2` in 4 s. (ada)",
  ]);
});

it("a note that holds for several is said once, with their names", () => {
  const theirs = [
    ...some(7, { line: md`Attested again: ✅ verified` }),
    member(8, done, { line: md`🔴 *no pin*` }),
  ];
  const shown = shownText(renderSharedResult([theirs]));
  expect(shown.match(/Attested again/g)).toHaveLength(1);
  expect(shown).toMatch(/`web-0`, `web-1`, `web-2`, `web-3`, `web-4` and 2 more: Attested again/);
  expect(shown).toContain("`web-8`: 🔴 *no pin*");
});

it("what was done and fails attestation by now is red in the sum, the line, and the menu", () => {
  const bad = member(8, done, { line: md`🔴 no pin`, but: "its attestation failed" });
  const shown = renderSharedCard([member(1), bad], [[member(1), bad]]);
  expect(asPost(shown).text).toBe("🔴 All 2 are done, but 1 of them fails attestation.");
  expect(shownText(shown)).toMatch(/🔴 Restarted `web-8`.* in 4 s, but its attestation failed\./);
  expect(JSON.stringify(shown.blocks.at(-1))).toContain("🔴 Restart web-8 (olivia)");
  expect(asPost(renderSharedResult([[bad]])).text).toMatch(/^🔴 Restarted web-8/);
});

it("results of several people are one message, with a mention of each", () => {
  const { requester } = member(1).request.record;
  const hers = (n: number, stage: Stage = done) => {
    const { request, ...rest } = member(n, stage);
    const record = { ...request.record, requester: { ...requester, id: "U0ADA", name: "ada" } };
    return { ...rest, request: { ...request, record } };
  };
  const failed = hers(3, stageOf("failed", { why: "it did not start" }));
  const shown = renderSharedResult([
    [member(1), member(2)],
    [hers(4), failed],
  ]);
  expect(shownText(shown)).toBe(
    "✅ <@U0OLIVIA> All 2 are done.\n❌ <@U0ADA> 1 of 2 done, 1 not.\nNot done: `web-3`.",
  );
  expect(asPost(shown).text).toBe("olivia: ✅ All 2 are done. ada: ❌ 1 of 2 done, 1 not.");
});

it("a result names what was not done, and a single one has its own words", () => {
  const failed = member(3, stageOf("rejected", { why: "the compute service refused" }));
  const shown = renderSharedResult([[member(1), failed]]);
  expect(asPost(shown).text).toBe("❌ 1 of 2 done, 1 not.");
  expect(shownText(shown)).toBe("❌ <@U0OLIVIA> 1 of 2 done, 1 not.\nNot done: `web-3`.");
  const single = renderSharedResult([[member(1)]]);
  expect(asPost(single).text).toBe("✅ Restarted web-1 in 4 s.");
  expect(shownText(single)).toMatch(/^✅ <@U0OLIVIA> `web-1` runs again\. Sent <!date[^\n]*$/);
  // When the card is gone, nothing above the result says what was done.
  expect(shownText(renderSharedResult([[member(1)]], { isBelowCard: false }))).toMatch(
    /^✅ <@U0OLIVIA> Restarted `web-1` in 4 s\.\nSent /,
  );
});
