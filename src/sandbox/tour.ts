import { messageOf } from "../errors.ts";
import { describeMessage } from "./slack/describe-seen.ts";
import type { PersonActions } from "./slack/actions.ts";
import type { SeenMessage } from "./slack/seen.ts";
import { steps } from "./tour-steps.ts";
import { startWorld, type World } from "./world.ts";

/**
 * `npm run tour`: the demo's world without a browser. Plays an on-call story, prints each step as a person would see it,
 * and ends with 0 only when every step held.
 */
export interface Tour {
  world: World;
  /** Says what happens next. */
  scene(text: string): void;
  /** What somebody types, shown and done. */
  types(who: PersonActions, channel: string, text: string): Promise<void>;
  presses(who: PersonActions, label: string): Promise<void>;
  /** Waits until this person sees a message with these words in a channel or its threads, and prints it. */
  sees(
    who: PersonActions,
    channel: string,
    words: RegExp,
    timeoutMs?: number,
  ): Promise<SeenMessage>;
  /** Says that something must hold. */
  holds(what: string, isSo: boolean): void;
}

/** A message as one reads it: without the signs that style it. */
export function readable(message: SeenMessage): string {
  return describeMessage(message)
    .join("\n")
    .replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1")
    .replaceAll(/<@U0([A-Z]+)>/g, (_whole, id: string) => `@${id.toLowerCase()}`)
    .replaceAll(/[*`]/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

const dim = (text: string) => (process.stdout.isTTY ? `\u001b[2m${text}\u001b[0m` : text);
const bold = (text: string) => (process.stdout.isTTY ? `\u001b[1m${text}\u001b[0m` : text);

const began = performance.now();
const errors: string[] = [];
const world = await startWorld({
  compute: { transitionMs: [400, 900] },
  slack: { rateLimits: "off" },
  onLog: (line) => {
    if (/"level":"error"/.test(line)) errors.push(line);
  },
});
const print = (text: string) => void process.stdout.write(`${text}\n`);
const indent = (text: string) =>
  text
    .split("\n")
    .map((row) => `      ${row}`)
    .join("\n");

const tour: Tour = {
  world,
  scene: (text) => print(`\n${bold(text)}`),
  async types(who, channel, text) {
    print(`  ${who.name} in #${channel}: ${text}`);
    const { acked, ackMs, error } = await who.types(channel, text);
    print(dim(`    (acknowledged in ${ackMs.toFixed(0)} ms)`));
    if (!acked && text.startsWith("/"))
      throw new Error(`not acknowledged: ${error ?? "no reason"}`);
  },
  async presses(who, label) {
    print(`  ${who.name} presses [${label}]`);
    const { acked, error } = await who.presses(label);
    if (!acked) throw new Error(`[${label}] was not acknowledged: ${error ?? "no reason"}`);
  },
  async sees(who, channel, words, timeoutMs = 20_000) {
    const find = () =>
      who.seesChannel(channel).messages.findLast((message) => words.test(readable(message)));
    await who.until(() => find() !== undefined, timeoutMs);
    const found = find();
    if (!found) throw new Error(`nobody saw ${String(words)}`);
    print(indent(readable(found)));
    return found;
  },
  holds(what, isSo) {
    print(`    ${isSo ? "✓" : "✗"} ${what}`);
    if (!isSo) throw new Error(`does not hold: ${what}`);
  },
};

let failure: unknown;
try {
  for (const step of steps) await step(tour);
} catch (error) {
  failure = error;
}
await world.close();
if (failure) {
  print(`\nThe tour stopped: ${messageOf(failure)}`);
  for (const line of errors.slice(-5)) process.stderr.write(line);
  process.exit(1);
}
print(`\nEvery step held, in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
process.exit(0);
