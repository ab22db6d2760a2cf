import { commands } from "../../src/features/index.ts";
import { type Command, argumentsOf } from "../../src/registry/define.ts";
import { checkInput, type Parsed, parseCommand } from "../../src/registry/parse.ts";
import {
  createTally,
  type Fuzzed,
  type FuzzOptions,
  isPrototypeClean,
  sampled,
  type Tally,
} from "./fuzzed.ts";
import { anyCase, type Case } from "./parser-cases.ts";

const maxMs = 50;

/** Words of people, of runbooks and of those who try to break something: read as a command, or refused in a sentence. */
export function fuzzParser({ cases, seed, atAnySpeed = false }: FuzzOptions): Fuzzed {
  const tally = createTally();
  let roundTrips = 0;
  for (const one of sampled(anyCase, { cases, seed })) {
    tally.count();
    try {
      if (one.is === "input") checkAnyInput(one.command, one.input, tally);
      else {
        const parsed = atAnySpeed ? parseCommand(one.text, commands) : readInTime(one.text, tally);
        checkParsed(one.text, parsed, tally);
        if (one.is === "written") {
          if (checkSame(one, parsed, tally)) roundTrips += 1;
        }
      }
    } catch (error) {
      tally.crash(`${show(one)}: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
    }
    if (!isPrototypeClean()) tally.wrong(`a prototype was changed by ${show(one)}`);
  }
  checkLinear(tally);
  return tally.result(`${roundTrips} were written from right arguments, and read back as the same`);
}

/** A pause of the whole process is no slowness of the parser: what was slow is measured twice more. */
function readInTime(text: string, tally: Tally): Parsed {
  const began = performance.now();
  const parsed = parseCommand(text, commands);
  let ms = performance.now() - began;
  for (let again = 0; again < 2 && ms > maxMs; again += 1) {
    const from = performance.now();
    parseCommand(text, commands);
    ms = Math.min(ms, performance.now() - from);
  }
  tally.took(ms);
  if (ms > maxMs) tally.wrong(`${ms.toFixed(0)} ms for ${JSON.stringify(text.slice(0, 200))}`);
  return parsed;
}

function checkParsed(text: string, parsed: Parsed, tally: Tally): void {
  const about = JSON.stringify(text.slice(0, 200));
  if ("refusal" in parsed) {
    const { text: why, hint } = parsed.refusal;
    if (!/^[A-Z/\p{L}-][^]*[.?!:…]/u.test(why)) tally.wrong(`no sentence for ${about}: ${why}`);
    if (why.length > 1000 || (hint ?? "").length > 1000)
      tally.wrong(`a refusal without end for ${about}`);
    return;
  }
  tally.accept();
  const { command, input, args, breakGlass } = parsed;
  const known = new Set(argumentsOf(command).map(({ key }) => key));
  for (const key of Object.keys(input)) if (!known.has(key)) tally.wrong(`${key} came of ${about}`);
  if (Object.getPrototypeOf(input) !== Object.prototype)
    tally.wrong(`another prototype came of ${about}`);
  if (args !== undefined) {
    const again = command.args.safeParse(input);
    if (!again.success || JSON.stringify(again.data) !== JSON.stringify(args))
      tally.wrong(`arguments that don't fit ${command.name} came of ${about}`);
    checkValues(args, about, tally);
  } else if (
    command.kind !== "change" ||
    (command.dialog === undefined && command.class !== "destroy")
  ) {
    tally.wrong(`${command.name} has no form that could ask for what is missing in ${about}`);
  }
  if (breakGlass !== undefined && (breakGlass.length < 3 || breakGlass.length > 300))
    tally.wrong(`a reason that is none in ${about}`);
  if (breakGlass !== undefined && command.class !== "disrupt" && command.class !== "destroy")
    tally.wrong(`${command.name} has no emergency: ${about}`);
}

/** What every argument must be, whatever its schema says: whole numbers in digits, text that isn't endless. */
function checkValues(args: unknown, about: string, tally: Tally): void {
  for (const value of Object.values(args as Record<string, unknown>).flat()) {
    if (typeof value === "number" && !(Number.isInteger(value) && value >= 1 && value <= 1_000_000))
      tally.wrong(`the number ${value} came of ${about}`);
    if (typeof value === "string" && value.length > 4000)
      tally.wrong(`${value.length} characters came of ${about}`);
    if (typeof value === "string" && /[\u202a-\u202e\u2066-\u2069\u200b]/.test(value))
      tally.wrong(`an invisible character came of ${about}`);
  }
}

/** Arguments that were written down may be anything by the time they come back. */
function checkAnyInput(command: Command, input: Record<string, unknown>, tally: Tally): void {
  const began = performance.now();
  const checked = checkInput(command, input);
  tally.took(performance.now() - began);
  const about = `${command.name} ${JSON.stringify(input).slice(0, 200)}`;
  if ("problems" in checked) {
    if (checked.problems.length === 0) tally.wrong(`refused without a word: ${about}`);
    for (const { text } of checked.problems)
      if (!text.endsWith(".")) tally.wrong(`no sentence for ${about}: ${text}`);
    return;
  }
  tally.accept();
  if (!command.args.safeParse(input).success) tally.wrong(`doesn't fit: ${about}`);
  const known = new Set(Object.keys(command.args.shape));
  for (const key of Object.keys({ ...input, ...(checked.args as object) }))
    if (!known.has(key)) tally.wrong(`${key} came of ${about}`);
}

/** Whether right arguments were read back. */
function checkSame(
  { command, input, text }: Case & { is: "written" },
  parsed: Parsed,
  tally: Tally,
): boolean {
  const right = checkInput(command, input);
  const found = "refusal" in parsed ? undefined : parsed.args;
  if ("problems" in right) {
    // What isn't allowed is refused in words as it is from a form
    if (found !== undefined) tally.wrong(`${text} was read although a form refuses it`);
    return false;
  }
  const isSame =
    "command" in parsed &&
    parsed.command === command &&
    JSON.stringify(found) === JSON.stringify(right.args);
  if (!isSame) tally.wrong(`${text} was read as ${JSON.stringify(found ?? parsed).slice(0, 200)}`);
  return isSame;
}

/**
 * Eight times the text may take eight times as long, and not 64 times: with what makes a bad pattern slow. In time of
 * this thread, which other processes don't lengthen.
 */
function checkLinear(tally: Tally): void {
  const usedBy = (text: string) => {
    const times = Array.from({ length: 5 }, () => {
      const began = process.threadCpuUsage();
      for (let n = 0; n < 10; n += 1) parseCommand(text, commands);
      const { user, system } = process.threadCpuUsage(began);
      return (user + system) / 1000;
    });
    return Math.min(...times);
  };
  for (const piece of ["<a|", '"', "-", "`", "&amp;", "<@U1|x", '--a="', '--a"', "a "]) {
    const [short = 0, long = 0] = [490, 3900].map((length) =>
      usedBy(`vm show ${piece.repeat(length).slice(0, length)}`),
    );
    if (long > 24 * short + 30)
      tally.wrong(
        `${piece} takes ${short.toFixed(1)} ms for 500 characters and ${long.toFixed(1)} ms for 3,900`,
      );
  }
}

const show = (one: Case): string =>
  JSON.stringify(one.is === "input" ? [one.command.name, one.input] : one.text).slice(0, 300);
