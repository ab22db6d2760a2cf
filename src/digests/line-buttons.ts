import { hash } from "node:crypto";
import { type ButtonSpec, fitsMenu } from "../messages/message.ts";
import { type Markdown, md, name } from "../messages/text.ts";

/** Runs a command as if it had been typed. */
function runs(label: string, command: string, input: Record<string, string>): ButtonSpec {
  return { label, action: `run:${command}`, value: JSON.stringify(input) };
}

export const showVm = (vm: string) => runs("Show", "vm.show", { vm });
export const attestVm = (vm: string) => runs("Attest", "vm.attest", { vm });
export const showSnapshots = (vm: { id: string; name: string }) =>
  runs(`Snapshots of ${vm.name}`, "vm.snapshots", { vm: vm.id });
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

/** Which line it is, in a few characters, whatever the line is about. */
export function lineOf({ kind, key }: { kind: string; key: string }): string {
  return `${kind}:${hash("sha256", key).slice(0, 16)}`;
}

const hoursOffered = [4, 24, 7 * 24];

/** What stands beside a line: its button, and in a menu with it for how long the channel can snooze the line. */
export function besideLine(line: string, button: ButtonSpec): ButtonSpec | ButtonSpec[] {
  const choices = [button, ...hoursOffered.map((hours) => snooze(line, hours))];
  return fitsMenu(choices) ? choices : button;
}

function snooze(line: string, hours: number): ButtonSpec {
  const time = hours < 48 ? `${hours} h` : `${hours / 24} d`;
  const label = `Snooze ${time} for everyone here`;
  return { label, action: snoozeAction, value: JSON.stringify({ line, hours }) };
}

export const unsnoozeAll: ButtonSpec = {
  label: "Un-snooze all",
  action: unsnoozeAction,
  value: "{}",
};

/** `a`, `b` and 3 more. */
export function listed(names: readonly string[], most = 6): Markdown {
  const [first = md``, ...rest] = names.slice(0, most).map((one) => name(one));
  const together = rest.reduce((all, one) => md`${all}, ${one}`, first);
  const more = names.length - most;
  return more > 0 ? md`${together} and ${more.toLocaleString("en-US")} more` : together;
}
