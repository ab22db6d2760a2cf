import type { Asked, Verdict } from "./checker.ts";
import { isKept } from "./checker.ts";
import { type Stage, type StageOptions, startStage } from "./stage.ts";

/** One row of the matrix in reliability.md section 7. */
export interface Row {
  id: string;
  /** The fault, in a few words. */
  what: string;
  /** Runs only when its id is named: why. */
  onlyNamed?: string;
  run(how: How): Promise<Outcome>;
}

/** A row that can't be had here doesn't count as passed. */
export interface RowNotRun {
  id: string;
  what: string;
  notRun: string;
}

export interface How {
  seed: number;
  /** How often a fault is repeated where the row counts. */
  times: number;
  /** How many inputs are made up where the row fuzzes. */
  cases: number;
}

export interface Outcome {
  holds: boolean;
  verdict?: Verdict;
  /** What was wrong, or what was seen. */
  notes: string[];
  /** What this machine lacks for it, found out when it was to run. It doesn't count as passed. */
  notRun?: string;
  /** How long requests stood still that a killed process had in hand (ms). */
  recoveries?: number[];
}

export function isRun(row: Row | RowNotRun): row is Row {
  return "run" in row;
}

/** What a row expects beyond the verdict; each is a sentence that is true when the row holds. */
export type Expectation = readonly [sentence: string, isTrue: boolean];

/** Holds when the promise was kept and every expectation is true. */
export function judged(
  verdict: Verdict,
  expectations: readonly Expectation[],
  how: { mayBeUnknown?: boolean; notes?: readonly string[] } = {},
): Outcome {
  const wrong = expectations
    .filter(([, isTrue]) => !isTrue)
    .map(([sentence]) => `not so: ${sentence}`);
  const kept = isKept(verdict, { mayBeUnknown: how.mayBeUnknown ?? false });
  return {
    holds: kept && wrong.length === 0,
    verdict,
    notes: [...wrong, ...(kept ? [] : verdict.findings.slice(0, 6)), ...(how.notes ?? [])],
  };
}

/** A row that needs no sandboxes: only expectations. */
export function expected(
  expectations: readonly Expectation[],
  notes: readonly string[] = [],
): Outcome {
  const wrong = expectations
    .filter(([, isTrue]) => !isTrue)
    .map(([sentence]) => `not so: ${sentence}`);
  const seen = expectations.map(([sentence]) => sentence).join("; ");
  return { holds: wrong.length === 0, notes: [...(wrong.length > 0 ? wrong : [seen]), ...notes] };
}

/** Runs `story` on a stage of its own and closes it whatever happens. */
export async function onStage(
  options: StageOptions,
  story: (stage: Stage) => Promise<Outcome>,
): Promise<Outcome> {
  await using stage = await startStage(options);
  try {
    return await story(stage);
  } catch (error) {
    const words = stage.bots
      .filter((bot) => bot.isGone())
      .map((bot) => `${bot.role}: ${bot.lastWords().slice(-400)}`);
    return {
      holds: false,
      notes: [
        error instanceof Error ? error.message : String(error),
        ...words.filter((w) => w.length > 12),
      ],
    };
  }
}

export const kinds = ["vm start", "vm stop", "vm restart"] as const;
/** The state a VM must be in for a command. */
export const before: Record<string, string> = {
  "vm start": "STOPPED",
  "vm stop": "RUNNING",
  "vm restart": "RUNNING",
};

/** Kinds that this build has. */
export function kindsOf(stage: Stage): string[] {
  const known = stage.bots[0]?.commands ?? [];
  return kinds.filter((kind) => known.includes(kind));
}

/** VMs nobody has asked about yet, prepared for the command, one after the other. */
export function fresh(stage: Stage) {
  let used = 0;
  const all = stage.service.vms();
  return async (command: string): Promise<string> => {
    const vm = (await all)[used++];
    if (!vm) throw new Error("the stage has too few VMs for this row");
    const status = before[command] ?? "RUNNING";
    if (vm.status !== status) await stage.service.edit("setStatus", { vm: vm.id, status });
    return vm.id;
  };
}

/** Asks for one command of each kind, or of those named, each on a fresh VM. */
export async function askEach(
  stage: Stage,
  take: (command: string) => Promise<string>,
  commands: readonly string[] = kindsOf(stage),
  how: { who?: string; channel?: string } = {},
): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (const command of commands) asked.push(await stage.ask(command, await take(command), how));
  return asked;
}
