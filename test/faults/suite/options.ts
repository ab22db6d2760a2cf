import { parseArgs } from "node:util";
import { familyOf, rows } from "../rows/index.ts";
import type { How, Row } from "../rows/row.ts";

export const help = `npm run faults -- [flags]     (node test/faults/run.ts [flags])

Puts whole Gatehouse processes under faults and lets a checker count that imports nothing of Gatehouse. Ends with 1 when a
row is broken. docs/faults.md explains each row.

  --only A2,P1*      these rows alone; "campaign" is one of them. A row that takes long runs only when it is named: R8c
  --family S,R       the rows of these families alone, by their letters
  --jobs 2           so many rows at a time (1); those that measure time run afterwards, one by one
  --budget 25        minutes: what has not begun by then counts as not run
  --times 50         kills at each point
  --cases 10000      inputs made up by each row that fuzzes
  --operations 1000  requests of the campaign
  --seed 20261121    for weather, inputs, and who is struck
  --list             prints what the rows mean and runs none
  --write            with --list: writes that into docs/faults.md; else what this run saw
  --help             prints this
`;

export interface SuiteOptions extends How {
  rows: readonly Row[];
  hasCampaign: boolean;
  operations: number;
  jobs: number;
  /** How long rows may begin (ms). */
  budgetMs: number;
  write: boolean;
  list: boolean;
  help: boolean;
  /** As they were typed. */
  flags: string;
}

/** Reads the command line; throws with a sentence for what it can't mean. */
export function readOptions(args: readonly string[]): SuiteOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: "*" },
      family: { type: "string" },
      jobs: { type: "string", default: "1" },
      budget: { type: "string" },
      times: { type: "string", default: "50" },
      cases: { type: "string", default: "10000" },
      operations: { type: "string", default: "1000" },
      seed: { type: "string", default: "20261121" },
      list: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const names = values.only.split(",").map((name) => name.trim());
  const families = values.family?.split(",").map((letter) => letter.trim().toUpperCase());
  const isWanted = (id: string) =>
    names.some((name) => globOf(name).test(id)) &&
    (families === undefined || families.includes(familyOf(id)));
  for (const name of names)
    if (!["campaign", ...rows.map(({ id }) => id)].some((id) => globOf(name).test(id)))
      throw new Error(`there is no row ${name}`);
  for (const letter of families ?? [])
    if (!rows.some(({ id }) => familyOf(id) === letter))
      throw new Error(`there is no family ${letter}`);
  return {
    rows: rows.filter(({ id }) => isWanted(id)),
    hasCampaign: families === undefined && isWanted("campaign"),
    jobs: numberOf("jobs", values.jobs),
    budgetMs:
      values.budget === undefined
        ? Number.POSITIVE_INFINITY
        : numberOf("budget", values.budget) * 60_000,
    times: numberOf("times", values.times),
    cases: numberOf("cases", values.cases),
    operations: numberOf("operations", values.operations),
    seed: numberOf("seed", values.seed),
    write: values.write,
    list: values.list,
    help: values.help,
    flags: args.filter((arg) => arg !== "--write").join(" "),
  };
}

/** `*` stands for anything; capitals or not. */
function globOf(name: string): RegExp {
  const escaped = name.replaceAll(/[.+?^$()|[\]\\{}]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll("*", ".*")}$`, "i");
}

function numberOf(flag: string, text: string): number {
  const number = Number(text);
  if (!Number.isFinite(number) || number <= 0)
    throw new Error(`--${flag} is a number above zero, not ${text}`);
  return number;
}
