// npm run faults: each row under its fault, then the campaign, all judged by the independent checker. --help tells the flags.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import path from "node:path";
import { runCampaign } from "./campaign/campaign.ts";
import { rows } from "./rows/index.ts";
import { root } from "./stage/child.ts";
import { documentFile, explainRows, replacePart, withoutGoneRows } from "./suite/document.ts";
import { type Done, notRun, runRows } from "./suite/jobs.ts";
import { help, readOptions } from "./suite/options.ts";
import {
  campaignLine,
  complaintsOf,
  type Line,
  recoveryLine,
  renderRun,
  renderTable,
  rowLine,
  tellCampaign,
} from "./suite/report.ts";

const say = (text: string) => void process.stdout.write(`${text}\n`);
const options = (() => {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${help}`);
    return process.exit(2);
  }
})();
const { seed, times, cases, operations, jobs, budgetMs } = options;

if (options.help) say(help);
else if (options.list) await explain();
else process.exit(await runAll());

async function explain(): Promise<void> {
  if (options.write) await publish("the rows", explainRows());
  else say(explainRows());
}

/** Resolves with the exit code. */
async function runAll(): Promise<number> {
  const began = performance.now();
  const lines: Line[] = [];
  const recoveries: number[] = [];
  say(`seed ${seed}, ${times} kills per point, ${jobs} at a time`);
  const tell = (done: Done) => {
    const line = rowLine(done);
    lines.push(line);
    recoveries.push(...(done.outcome.recoveries ?? []));
    say(
      `${line.id} ${line.result} (${line.seconds.toFixed(1)} s, seed ${seed}): ${done.row.fault}: ${line.seen}`,
    );
    for (const note of done.outcome.notes.filter((one) => one !== line.seen))
      say(`    ${note.slice(0, 600)}`);
  };
  const isNamed = (id: string) => options.flags.split(/[\s,=]+/).includes(id);
  const [later, now] = [
    options.rows.filter((row) => row.onlyNamed !== undefined && !isNamed(row.id)),
    options.rows.filter((row) => row.onlyNamed === undefined || isNamed(row.id)),
  ];
  await runRows(now, { seed, times, cases }, { jobs, budgetMs }, tell);
  for (const row of later) tell({ row, outcome: notRun(row.onlyNamed ?? ""), seconds: 0 });
  const order = rows.map(({ id }) => id);
  const table = lines.toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
  if (recoveries.length > 0) {
    table.push(recoveryLine(recoveries));
    say(`recovery ${table.at(-1)?.result}: ${table.at(-1)?.seen}`);
  }
  const campaign = options.hasCampaign ? await runWholeCampaign(began) : undefined;
  if (campaign) table.push(campaign);

  const count = (result: string) => table.filter((line) => line.result === result).length;
  const minutes = Math.round((performance.now() - began) / 60_000);
  const sum = `${count("holds")} hold, ${count("BROKEN")} broken, ${count("not run")} not run (seed ${seed}, ${minutes} min)`;
  say(`\n${renderTable(table)}\n\n${sum}`);
  if (options.write) await publish("the last run", published(table, sum));
  return count("BROKEN") > 0 || count("holds") === 0 ? 1 : 0;
}

async function runWholeCampaign(began: number): Promise<Line> {
  if (performance.now() - began > budgetMs) {
    return { id: "campaign", result: "not run", seen: "the time was over", seconds: 0 };
  }
  const from = performance.now();
  // What broke it must not take the rows' results along
  const campaign = await runCampaign({ operations, seed, say }).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (campaign instanceof Error) {
    const seconds = (performance.now() - from) / 1000;
    say(`campaign BROKEN (${seconds.toFixed(0)} s, seed ${seed}): ${campaign.stack}`);
    return { id: "campaign", result: "BROKEN", seen: campaign.message, seconds };
  }
  const line = campaignLine(campaign);
  say(`campaign ${line.result} (${line.seconds.toFixed(0)} s, seed ${seed}): ${line.seen}`);
  for (const note of [...tellCampaign(campaign), ...complaintsOf(campaign)])
    say(`    ${note.slice(0, 600)}`);
  return line;
}

async function publish(part: Parameters<typeof replacePart>[1], text: string): Promise<void> {
  const file = path.join(root, documentFile);
  const document = replacePart(await readFile(file, "utf8"), part, text);
  await writeFile(file, withoutGoneRows(document));
}

/** The table with what it takes to make it again. */
function published(table: readonly Line[], sum: string): string {
  const day = new Date().toISOString().slice(0, 10);
  const command = ["npm run faults", ...(options.flags ? [options.flags] : [])].join(" -- ");
  return `\`${command}\` on ${day}: ${sum}. ${times} kills at each point, ${cases} made-up inputs, ${operations} requests of the campaign.
Node ${process.version}, BullMQ ${versionOf("bullmq")}, Bolt ${versionOf("@slack/bolt")}, Redis ${redisVersion()}, ${cpus().length} cores.

${renderRun(table)}`;
}

function versionOf(dependency: string): string {
  const text = readFileSync(path.join(root, "node_modules", dependency, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

function redisVersion(): string {
  return /v=(\S+)/.exec(execFileSync("redis-server", ["--version"]).toString())?.[1] ?? "?";
}
