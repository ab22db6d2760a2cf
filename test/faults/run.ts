// npm run faults: the matrix of reliability.md section 7 and the campaign, each row judged by the independent checker.
//   --only A2,P*   these rows alone ("campaign" is one of them)      --times 50   kills per point
//   --seed 7       for weather and for who is struck                --operations 1000
import { parseArgs } from "node:util";
import { runCampaign } from "./campaign.ts";
import { isKept, lineOf } from "./checker.ts";
import { faultyShare } from "./weather.ts";
import { isRun, type Outcome } from "./row.ts";
import { rows } from "./rows/index.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "*" },
    times: { type: "string", default: "50" },
    seed: { type: "string", default: "20261120" },
    operations: { type: "string", default: "1000" },
  },
});
const wanted = values.only.split(",").map(
  (glob) =>
    new RegExp(
      `^${glob
        .trim()
        .replaceAll(/[.+?^$()|[\]\\{}]/g, String.raw`\$&`)
        .replaceAll("*", ".*")}$`,
      "i",
    ),
);
const isWanted = (id: string) => wanted.some((pattern) => pattern.test(id));
const seed = Number(values.seed);
const say = (line: string) => process.stdout.write(`${line}\n`);

const table: {
  id: string;
  result: "holds" | "BROKEN" | "not run";
  what: string;
  note: string;
  seconds: number;
}[] = [];
say(`seed ${seed}, ${values.times} kills per point`);
for (const row of rows.filter(({ id }) => isWanted(id))) {
  if (!isRun(row)) {
    say(`${row.id} not run: ${row.notRun}`);
    table.push({ id: row.id, result: "not run", what: row.what, note: row.notRun, seconds: 0 });
    continue;
  }
  const began = performance.now();
  const outcome = await row
    .run({ seed, times: Number(values.times) })
    .catch((error: unknown): Outcome => ({
      holds: false,
      notes: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
    }));
  const seconds = (performance.now() - began) / 1000;
  const result = outcome.holds ? "holds" : "BROKEN";
  say(
    `${row.id} ${result} (${seconds.toFixed(1)} s, seed ${seed}): ${row.what}${outcome.verdict ? `: ${lineOf(outcome.verdict)}` : ""}`,
  );
  for (const note of outcome.notes) say(`    ${note.slice(0, 600)}`);
  table.push({
    id: row.id,
    result,
    what: row.what,
    note: outcome.verdict ? lineOf(outcome.verdict) : (outcome.notes[0] ?? ""),
    seconds,
  });
}
if (isWanted("campaign")) {
  const campaign = await runCampaign({ operations: Number(values.operations), seed, say });
  const { verdict, calls } = campaign;
  const unknownElsewhere = Object.entries(verdict.ends).filter(
    ([end]) => end.endsWith(" unknown") && !mayBeUnknown(end),
  );
  const holds =
    isKept(verdict, { mayBeUnknown: true }) &&
    campaign.crashes.length === 0 &&
    campaign.frozen === undefined &&
    unknownElsewhere.length === 0;
  say(
    `campaign ${holds ? "holds" : "BROKEN"} (${campaign.seconds.toFixed(0)} s, seed ${seed}): ${lineOf(verdict)}`,
  );
  say(
    `    ${campaign.kills} kills, ${campaign.freezes} freezes; ${calls.struck} of ${calls.changes} changing calls struck (${Math.round((100 * calls.struck) / Math.max(1, calls.changes))} %)`,
  );
  for (const [end, count] of Object.entries(verdict.ends).toSorted(([a], [b]) =>
    a.localeCompare(b),
  ))
    say(`    ${end}: ${count}`);
  for (const why of [
    ...unknownElsewhere.map(([end, n]) => `${n} times ${end}`),
    ...campaign.crashes,
    ...(campaign.frozen ? [campaign.frozen] : []),
  ])
    say(`    ${why.slice(0, 600)}`);
  for (const finding of verdict.findings.slice(0, 20)) say(`    ${finding}`);
  table.push({
    id: "campaign",
    result: holds ? "holds" : "BROKEN",
    what: `${verdict.operations} requests, ${Math.round(faultyShare() * 100)} % of calls faulty`,
    note: lineOf(verdict),
    seconds: campaign.seconds,
  });
}

say("");
for (const { id, result, what, note, seconds } of table)
  say(
    `| ${id} | ${what} | ${result} | ${note.replaceAll("|", "·").slice(0, 160)} | ${seconds.toFixed(0)} s |`,
  );
const count = (result: string) => table.filter((row) => row.result === result).length;
say(
  `\n${count("holds")} hold, ${count("BROKEN")} broken, ${count("not run")} not run (seed ${seed})`,
);
process.exit(count("BROKEN") > 0 || table.length === 0 ? 1 : 0);

/** Only what leaves no trace may stay unknown (reliability.md section 2). */
function mayBeUnknown(end: string): boolean {
  return /^(vm restart|vm snapshot|vm restore|project create|project delete) /.test(end);
}
