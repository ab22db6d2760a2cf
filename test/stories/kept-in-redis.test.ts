import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { createEvidenceRegister } from "../../src/attestation/appraiser.ts";
import { createKeys } from "../../src/redis/redis.ts";
import { matchesGlob } from "../../src/text/glob.ts";
import { readSources, root } from "../structure/sources.ts";
import { alertmanagerBody, send, sources, startAlertWorld } from "../features/alerts/sending.ts";
import { rollouts } from "../features/rollouts/rollout-world.ts";
import { testPolicy } from "../support/start-world.ts";
import { hears } from "./words.ts";
import { isOffered } from "../support/is-offered.ts";

interface Row {
  what: string;
  globs: readonly string[];
  /** Undefined: its keys stay, or go with what they are about. */
  mostMs: number | undefined;
}

const unitMs: Readonly<Record<string, number>> = { minute: 60_000, day: 24 * 3600_000 };

/** The table of docs/operate.md: where what is kept begins with a time, Redis deletes its keys. */
const rows: readonly Row[] = (() => {
  const text = readFileSync(path.join(root, "docs/operate.md"), "utf8");
  const [, chapter = ""] = /\n## What is in Redis\n([^]*?)\n## /.exec(text) ?? [];
  const lines = chapter.split("\n").filter((line) => line.startsWith("| ") && line.includes("`"));
  return lines.map((line) => {
    const [what = "", keys = "", kept = ""] = line
      .split("|")
      .slice(1)
      .map((cell) => cell.trim());
    const [, count, unit = ""] = /^(\d+) (minute|day)s?\b/.exec(kept) ?? [];
    const mostMs = count === undefined ? undefined : Number(count) * (unitMs[unit] ?? 0);
    return { what, globs: [...keys.matchAll(/`([^`]+)`/g)].map(([, one = ""]) => one), mostMs };
  });
})();

/** The first that fits counts. */
const rowOf = (name: string) =>
  rows.find(({ globs }) => globs.some((glob) => matchesGlob(glob, name)));

describe("what is in Redis", () => {
  it("is in docs/operate.md, every key that the sources name", () => {
    const key = createKeys();
    const named = /\bkey\(\s*"([a-z-]+)"(?:,\s*"([a-z-]+)")?(,)?/g;
    const names = [...readSources(["src"]).values()].flatMap((text) =>
      [...text.matchAll(named)].map(([, one = "", two, more]) =>
        key(...[one, two, more && "x"].flatMap((part) => part ?? [])).slice(key.prefix.length + 1),
      ),
    );
    expect(names.length).toBeGreaterThan(50);
    expect(
      names.filter((name) => rowOf(name.replace(/:x$/, "")) === undefined && !rowOf(name)),
    ).toEqual([]);
  });

  it("has the time that docs/operate.md gives it, after a night's work", async () => {
    await using world = await startAlertWorld({
      policy: `${testPolicy}${sources}approvals: [{ operations: ["vm.stop"], required: 1 }]\n`,
    });
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    // The sandbox has no genuine evidence
    const register = createEvidenceRegister(world.client, world.key);
    await register.seen("vm-payments-web-1", { digest: "a".repeat(64) }, undefined);
    await register.verified("vm-payments-web-1", 1);
    await world.olivia.types("ops", "/vm stop web-2");
    const card = await hears(world.olivia, "ops", /Stop web-2[^]*Waiting for approval/);
    await world.amir.presses("Approve", { in: card.ts });
    await world.ended("vm stop");
    await world.olivia.types("ops", "/gatehouse subscribe");
    await rollouts(world.olivia, "/vm restart payments/web-1 db-1");
    await hears(world.olivia, "ops", /Restarted 2 VMs/);
    if (isOffered("gatehouse digest")) {
      await world.olivia.types("ops", "/gatehouse digest now");
      await hears(world.vera, "ops", /train-7 in ml (?:is|has been) in ERROR/);
    }
    await send(world, "prometheus", alertmanagerBody([{}]));
    const alert = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await world.olivia.presses("Start", { in: alert.ts });
    await world.ended("vm start");
    await world.ada.types("ops", "/gatehouse freeze for the night");
    await hears(world.olivia, "ops", /ada froze all changes/);

    const { prefix } = world.key;
    const wrong = new Set<string>();
    const seen = new Set<string>();
    for (const full of await world.client.keys(world.key("*"))) {
      const name = full.slice(prefix.length + 1);
      const row = rowOf(name);
      const leftMs = await world.client.pttl(full);
      if (row) seen.add(row.what);
      // It may have gone since it was listed
      if (leftMs === -2) continue;
      if (row === undefined) wrong.add(`${name} is in no row`);
      else if (row.mostMs !== undefined && (leftMs === -1 || leftMs > row.mostMs))
        wrong.add(
          `${name}: ${leftMs === -1 ? "no expiry" : `${leftMs} ms`}, in the row “${row.what}”`,
        );
    }
    expect([...wrong]).toEqual([]);
    for (const what of [
      "requests with their history",
      "rollouts",
      "notices, and posts to subscribed channels",
      "the same words again",
      "alerts",
      "what was done about alerts, and if it helped",
      "audit trail",
      "evidence of VMs",
      "the queues",
    ])
      expect(seen, what).toContain(what);
  });
});
