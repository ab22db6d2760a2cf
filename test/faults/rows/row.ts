import { type Asked, isKept, tooUnknown, type Unknown, type Verdict } from "../check/checker.ts";
import { type Stage, type StageOptions, CannotBeDone, startStage } from "../stage/stage.ts";

/** One fault against whole processes, and what must hold all the same. */
export interface Row {
  id: string;
  /** The fault, in a few words. */
  fault: string;
  /** What must hold beyond the promise that the checker counts. With the fault it is the row's line in docs/faults.md. */
  must: string;
  /** Which outcomes may be left to a person. "not judged": the checker doesn't count; `must` is looked at alone. */
  unknown: Unknown | "not judged";
  /** Nobody asks for a request that the checker could count: the fault is all that happens. */
  asksNothing?: true;
  /** Runs while no other row does, since it measures time: what. */
  alone?: string;
  /** Runs only when its id is named: why. */
  onlyNamed?: string;
  run(how: How): Promise<Story>;
}

export interface How {
  seed: number;
  /** How often a fault is repeated where the row counts. */
  times: number;
  /** How many inputs are made up where the row fuzzes. */
  cases: number;
}

/** What a row saw. */
export interface Story {
  /** What the checker counted. */
  verdict?: Verdict;
  /** Counts of the checker that this row replaces: it says why where it does. */
  instead?: Partial<Verdict>;
  /** Sentences that had to be true and are not. */
  wrong: readonly string[];
  notes: readonly string[];
  /** What this machine lacks for it, found out when it was to run. It doesn't count as passed. */
  notRun?: string;
  /** How long requests stood still that a killed process had in hand (ms). */
  recoveries?: readonly number[];
}

export interface Outcome extends Story {
  holds: boolean;
}

/** What a row expects beyond the verdict; each is a sentence that is true when the row holds. */
export type Expectation = readonly [sentence: string, isTrue: boolean];

/** Runs a row and weighs what it saw. It never throws. */
export async function runRow(row: Row, how: How): Promise<Outcome> {
  try {
    const story = await row.run(how);
    if (story.notRun !== undefined) return { ...story, holds: false };
    const wrong = [...story.wrong, ...complaintsOf(row, story)];
    return { ...story, holds: wrong.length === 0, notes: [...wrong, ...story.notes] };
  } catch (error) {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { holds: false, wrong: [why], notes: [why] };
  }
}

function complaintsOf(row: Row, { verdict, instead }: Story): string[] {
  if (row.unknown === "not judged")
    return verdict === undefined ? [] : ["the checker counted for a row that is not judged by it"];
  if (verdict === undefined) return ["the checker did not count"];
  const counted = { ...verdict, ...instead };
  return [
    // Where nothing happened everything holds
    ...(counted.faults === 0 ? ["no fault was done"] : []),
    ...((counted.operations === 0) === (row.asksNothing ?? false)
      ? []
      : [`${counted.operations} requests were asked for`]),
    ...tooUnknown(counted, row.unknown).map((end) => `outcome unknown: ${end}`),
    ...(isKept(counted, row.unknown) ? [] : verdict.findings.slice(0, 6)),
  ];
}

const untrue = (expectations: readonly Expectation[]) =>
  expectations.filter(([, isTrue]) => !isTrue).map(([sentence]) => `not so: ${sentence}`);

/** What the checker counted, and what the row expects beyond that. */
export function judged(
  verdict: Verdict,
  expectations: readonly Expectation[],
  more: { notes?: readonly string[]; instead?: Partial<Verdict> } = {},
): Story {
  return { verdict, wrong: untrue(expectations), notes: [], ...more };
}

/** What a row expects where the checker can't count. */
export function expected(
  expectations: readonly Expectation[],
  notes: readonly string[] = [],
): Story {
  const wrong = untrue(expectations);
  const seen = expectations.map(([sentence]) => sentence).join("; ");
  return { wrong, notes: [...(wrong.length > 0 ? [] : [seen]), ...notes] };
}

/** Runs `story` on a stage of its own and closes it whatever happens. */
export async function onStage(
  options: StageOptions,
  story: (stage: Stage) => Promise<Story>,
): Promise<Story> {
  const started = await startStage(options).catch((error: unknown) => {
    if (error instanceof CannotBeDone) return error;
    throw error;
  });
  if (started instanceof CannotBeDone) return { wrong: [], notes: [], notRun: started.message };
  await using stage = started;
  try {
    return await story(stage);
  } catch (error) {
    const words = stage.bots
      .filter((bot) => bot.isGone() && bot.lastWords().length > 0)
      .map((bot) => `${bot.role}: ${bot.lastWords().slice(-400)}`);
    return { wrong: [error instanceof Error ? error.message : String(error), ...words], notes: [] };
  }
}

export const kinds = ["vm start", "vm stop", "vm restart"] as const;
/** The state a VM must be in for a command. */
export const before: Record<string, string> = {
  "vm start": "STOPPED",
  "vm stop": "RUNNING",
  "vm restart": "RUNNING",
};

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
  commands: readonly string[] = kinds,
  how: { who?: string; channel?: string } = {},
): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (const command of commands)
    asked.push(await stage.request(command, await take(command), how));
  return asked;
}
