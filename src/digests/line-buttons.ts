import type { ButtonSpec } from "../messages/message.ts";

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

export const snoozeLine = (line: string): ButtonSpec => ({
  label: "Snooze",
  action: snoozeAction,
  value: JSON.stringify({ line }),
});
