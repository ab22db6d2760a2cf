// npm run faults: the matrix of reliability.md section 7 and the campaign, each row judged by the independent checker.
//   --only A2,P*   these rows alone ("campaign" is one of them; R8c runs only when it is named: --only '*,R8c')
//   --times 50     kills per point
//   --seed 7       for weather and for who is struck                --operations 1000   of the campaign
//   --cases 10000  inputs made up by each row that fuzzes           --write docs/faults.md   publishes the table there
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { runCampaign } from "./campaign.ts";
import { lineOf } from "./checker.ts";
import { root } from "./child.ts";
import {
  campaignLine,
  complaintsOf,
  type Line,
  recoveryLine,
  renderTable,
  resultOf,
  tellCampaign,
} from "./report.ts";
import { type How, isRun, type Outcome, type Row } from "./row.ts";
import { rows } from "./rows/index.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "*" },
    times: { type: "string", default: "50" },
    seed: { type: "string", default: "20261121" },
    operations: { type: "string", default: "1000" },
    cases: { type: "string", default: "10000" },
    write: { type: "string" },
  },
});
const patterns = values.only.split(",").map((glob) => {
  const escaped = glob.trim().replaceAll(/[.+?^$()|[\]\\{}]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll("*", ".*")}$`, "i");
});
const isWanted = (id: string) => patterns.some((pattern) => pattern.test(id));
const how: How = {
  seed: Number(values.seed),
  times: Number(values.times),
  cases: Number(values.cases),
};
const say = (line: string) => process.stdout.write(`${line}\n`);
const sayMore = (lines: readonly string[]) => {
  for (const line of lines) say(`    ${line.slice(0, 600)}`);
};

const table: Line[] = [];
const recoveries: number[] = [];
const campaignTold: string[] = [];
const began = performance.now();
say(`seed ${how.seed}, ${how.times} kills per point`);
const isNamed = (id: string) => values.only.split(",").includes(id);
for (const row of rows.filter(({ id }) => isWanted(id))) {
  if (!isRun(row)) pass(row, row.notRun);
  else if (row.onlyNamed !== undefined && !isNamed(row.id)) pass(row, row.onlyNamed);
  else table.push(await runRow(row));
}
if (recoveries.length > 0) {
  const line = recoveryLine(recoveries);
  say(`recovery ${line.result}: ${line.note}`);
  table.push(line);
}
if (isWanted("campaign")) {
  const campaign = await runCampaign({
    operations: Number(values.operations),
    seed: how.seed,
    say,
  });
  const line = campaignLine(campaign);
  say(`campaign ${line.result} (${line.seconds.toFixed(0)} s, seed ${how.seed}): ${line.note}`);
  campaignTold.push(...tellCampaign(campaign));
  sayMore([...campaignTold, ...complaintsOf(campaign)]);
  table.push(line);
}

const count = (result: string) => table.filter((line) => line.result === result).length;
const minutes = Math.round((performance.now() - began) / 60_000);
const sum = `${count("holds")} hold, ${count("BROKEN")} broken, ${count("not run")} not run (seed ${how.seed}, ${minutes} min)`;
say(`\n${renderTable(table)}\n\n${sum}`);
if (values.write) await writeFile(values.write, published());
process.exit(count("BROKEN") > 0 || table.length === 0 ? 1 : 0);

function pass({ id, what }: { id: string; what: string }, note: string): void {
  say(`${id} not run: ${note}`);
  table.push({ id, what, result: "not run", note, seconds: 0 });
}

async function runRow(row: Row): Promise<Line> {
  const since = performance.now();
  const outcome = await row.run(how).catch((error: unknown): Outcome => ({
    holds: false,
    notes: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  }));
  const seconds = (performance.now() - since) / 1000;
  const result = resultOf(outcome);
  const note = outcome.verdict
    ? lineOf(outcome.verdict)
    : (outcome.notRun ?? outcome.notes[0] ?? "");
  recoveries.push(...(outcome.recoveries ?? []));
  say(`${row.id} ${result} (${seconds.toFixed(1)} s, seed ${how.seed}): ${row.what}: ${note}`);
  sayMore(outcome.notes);
  return { id: row.id, what: row.what, result, note, seconds };
}

/** The table with what it takes to make it again. */
function published(): string {
  const day = new Date().toISOString().slice(0, 10);
  const only = values.only === "*" ? "" : ` --only '${values.only}'`;
  const command = `npm run faults --${only} --seed ${how.seed} --times ${how.times} --operations ${values.operations} --cases ${how.cases}`;
  return `# What the fault suite saw

\`${command}\` on ${day}: ${sum}.
Node ${process.version}, BullMQ ${versionOf("bullmq")}, Bolt ${versionOf("@slack/bolt")}, Redis ${redisVersion()}, ${cpus().length} cores.

Each row is a fault of its own against real processes, judged by a checker that imports nothing of Gatehouse. It counts effects
that happened twice, requests lost, reports of success or failure that were not so, requests that ended in silence, and moves
without an audit record: all must be zero. "Unknown" is what was left to a person, allowed only where the service leaves no trace.

${renderTable(table)}

${campaignTold.length === 0 ? "" : `## The campaign, one by one\n\n${campaignTold.map((line) => `- ${line}`).join("\n")}\n`}`;
}

function versionOf(dependency: string): string {
  const text = readFileSync(path.join(root, "node_modules", dependency, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

function redisVersion(): string {
  return /v=(\S+)/.exec(execFileSync("redis-server", ["--version"]).toString())?.[1] ?? "?";
}
