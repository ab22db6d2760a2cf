// Asks Slack whether it takes every message, modal, and Home tab of the stories. Slack answers anybody who can reach it, without a
// token; nothing is posted.
//
//     node run.mjs scripts/validate-blocks.ts [--api URL] [FILE…]
//
// A FILE has one of them in each line, as the tests write them where RENDERED_MESSAGES names a file; without one the stories run.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Rendered, validateBlocks } from "../src/slack/validate-blocks.ts";

const words = process.argv.slice(2);
const api = words.indexOf("--api");
const apiUrl = api < 0 ? "https://slack.com/api/" : (words[api + 1] ?? "");
const files = words.filter((_, n) => api < 0 || (n !== api && n !== api + 1));
const mostTries = 10;

/** The same again, but for times and IDs, needs no question. */
const alike = (line: string) => line.replaceAll(/\b[ra]-[\w-]{8,}|[0-9a-f]{16,}|\d+/g, "0");

function renderedByStories(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "rendered-"));
  const file = path.join(folder, "stories.jsonl");
  try {
    const env = { ...process.env, RENDERED_MESSAGES: file };
    const args = ["node_modules/vitest/vitest.mjs", "run", "test/stories"];
    const { status } = spawnSync(process.execPath, args, { env, stdio: "inherit" });
    if (status !== 0)
      process.stderr.write("Some stories failed: what they rendered is asked about.\n");
    return readFileSync(file, "utf8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const texts =
  files.length > 0 ? files.map((file) => readFileSync(file, "utf8")) : [renderedByStories()];
const lines = texts.flatMap((text) => text.split("\n").filter((line) => line !== ""));
const different = [...new Map(lines.map((line) => [alike(line), line])).values()];
let refused = 0;
for (const line of different) {
  const rendered = JSON.parse(line) as Rendered;
  let said = await validateBlocks(apiUrl, rendered);
  for (let tries = 1; said.kind === "limited" && tries < mostTries; tries += 1) {
    await sleep(said.retryAfterMs);
    said = await validateBlocks(apiUrl, rendered);
  }
  if (said.kind === "valid") continue;
  if (said.kind !== "invalid") {
    const why = said.kind === "limited" ? "it limits these questions" : said.reason;
    process.stderr.write(`Slack doesn't answer: ${why}\n`);
    process.exit(2);
  }
  refused += 1;
  process.stdout.write(`✗ ${said.complaints.join("; ")}\n  ${line}\n`);
}
process.stdout.write(
  `${different.length} different of ${lines.length} asked about, ${refused} refused\n`,
);
process.exitCode = refused > 0 ? 1 : 0;
