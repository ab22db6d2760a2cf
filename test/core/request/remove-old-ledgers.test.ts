import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { openLedger } from "../../../src/core/request/ledger.ts";
import { removeOldLedgers } from "../../../src/core/request/ledger.ts";

const dayMs = 24 * 3_600_000;

it("ledgers of workers that are long gone are removed, and none that is younger than what Redis keeps", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-ledgers-"));
  try {
    const now = Date.now();
    for (const [name, days] of [
      ["sends-w-old.jsonl", 91],
      ["sends-w-torn.jsonl", 200],
      ["sends-w-younger.jsonl", 89],
      ["something-else", 400],
    ] as const) {
      const file = path.join(folder, name);
      await writeFile(file, name.includes("torn") ? '{"request' : "");
      await utimes(file, new Date(now - days * dayMs), new Date(now - days * dayMs));
    }
    const ledger = await openLedger(folder, "w-now");
    // No ledger is old by a clock that is behind.
    expect(await removeOldLedgers(folder, now - 30 * dayMs)).toEqual([]);
    const removed = await removeOldLedgers(folder, now);
    // The torn line was ended when the folder was opened, so that ledger counts as younger now.
    expect(removed).toEqual(["sends-w-old.jsonl"]);
    expect((await readdir(folder)).toSorted()).toEqual([
      "sends-w-now.jsonl",
      "sends-w-torn.jsonl",
      "sends-w-younger.jsonl",
      "something-else",
    ]);
    await ledger.close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
