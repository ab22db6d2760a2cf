import { expect, it } from "vitest";
import { importsOf, readSources } from "./sources.ts";

const sources = readSources(["src"]);

/** The files that build blocks or their elements themselves, and why each does. */
const buildBlocks = {
  "src/slack/receive/deliveries.ts":
    "Slack asks for the options of a search alone, while the form is open.",
};

/** Tell what is known and what happened, of which the sources of facts and events alone read. */
const telling = [
  "src/commands/audit-page.ts",
  "src/commands/vm-rows.ts",
  "src/commands/vm/list.ts",
  "src/commands/vm/show.ts",
  "src/features/diagnosis/diagnose.ts",
  "src/features/digests/create-digests.ts",
  "src/features/digests/digest.ts",
  "src/features/digests/items.ts",
  "src/features/digests/render-digest.ts",
  "src/features/home/home-tab.ts",
  "src/features/home/render-home.ts",
  "src/features/night/night.ts",
  "src/features/night/render-night.ts",
  "src/features/outages/render-recap.ts",
  "src/features/rollouts/tell-handover.ts",
  "src/features/subscriptions/follow-trail.ts",
  "src/features/subscriptions/render-feed.ts",
  "src/features/subscriptions/tell-elsewhere.ts",
];

const importOfBlocks =
  /^import \{([^}]*)\} from "[./]*messages\/(?:blocks|button-elements|drawn-blocks|input-elements|text-objects)\.ts";/gm;

/** Whether a file imports more of blocks and their elements than their types. */
const buildsBlocks = (text: string): boolean =>
  [...text.matchAll(importOfBlocks)].some(([, names = ""]) =>
    names.split(",").some((name) => name.trim() !== "" && !name.trim().startsWith("type ")),
  );

it("no file but those that are named builds blocks: the others say parts, of which a renderer makes blocks", () => {
  const builders = [...sources].flatMap(([path, text]) =>
    !path.startsWith("src/messages/") && buildsBlocks(text) ? [path] : [],
  );
  expect(builders).toEqual(Object.keys(buildBlocks));
});

it("what tells facts and events reads neither Redis nor the journal, and builds no blocks", () => {
  const problems = telling.flatMap((path) => {
    const text = sources.get(path) ?? "";
    const reads = importsOf(path, text).filter(
      (file) => file.startsWith("src/redis/") || file === "src/core/request/journal.ts",
    );
    // Home is a tab of blocks, and no card.
    const isCard = !path.startsWith("src/features/home/");
    return [...reads, ...(isCard && buildsBlocks(text) ? ["blocks"] : [])].map(
      (file) => `${path}: ${file}`,
    );
  });
  expect(problems).toEqual([]);
});

it("an import of a builder is told from one of types", () => {
  const from = 'from "../../messages/blocks.ts";';
  expect(buildsBlocks(`import { type Message, section } ${from}`)).toBe(true);
  expect(buildsBlocks(`import { type Block, type Message } ${from}`)).toBe(false);
});
