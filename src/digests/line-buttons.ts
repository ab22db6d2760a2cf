import { hash } from "node:crypto";
import type { KnownBlock } from "@slack/types";
import { type ButtonSpec, menu } from "../messages/message.ts";

/** Runs a command as if it had been typed. */
function runs(label: string, command: string, input: Record<string, string>): ButtonSpec {
  return { label, action: `run:${command}`, value: JSON.stringify(input) };
}

export const showVm = (vm: string) => runs("Show", "vm.show", { vm });
export const attestVm = (vm: string) => runs("Attest", "vm.attest", { vm });
export const showSnapshots = (vm: string) => runs("Snapshots", "vm.snapshots", { vm });
export const showRequest = (request: string, label = "Details") =>
  runs(label, "gatehouse.why", { request });

export const signReview = (request: string): ButtonSpec => ({
  label: "Sign review",
  action: "review:sign",
  value: JSON.stringify({ request }),
});

export const snoozeAction = "digest:snooze";
export const unsnoozeAction = "digest:unsnooze";
export const changesAction = "digest:changes";

export const showChanges = (since: number): ButtonSpec => ({
  label: "Details",
  action: changesAction,
  value: JSON.stringify({ since }),
});

/** Short enough for the option of a menu, whatever the line is about. */
export function snoozeKeyOf({ kind, key }: { kind: string; key: string }): string {
  return `${kind}:${hash("sha256", key).slice(0, 16)}`;
}

/** Which line; how long and for whom is asked next. */
export function snoozeMenu(
  lines: readonly { kind: string; key: string; words: string }[],
): KnownBlock[] {
  if (lines.length === 0) return [];
  const options = lines.map((line): [string, string] => [
    line.words,
    JSON.stringify({ line: snoozeKeyOf(line) }),
  ]);
  return [menu({ label: "Snooze a line…", action: snoozeAction, options })];
}

export const unsnoozeAll: ButtonSpec = {
  label: "Un-snooze all",
  action: unsnoozeAction,
  value: "{}",
};

const hoursOffered = [4, 24, 7 * 24];

/** How long, for everyone who reads the channel's digests. */
export function snoozeButtons(line: string): ButtonSpec[] {
  return hoursOffered.map((hours) => ({
    label: hours < 48 ? `${hours} h` : `${hours / 24} d`,
    action: `${snoozeAction}:${hours}`,
    value: JSON.stringify({ line, hours }),
  }));
}
