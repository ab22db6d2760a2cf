import { hash } from "node:crypto";
import { type ButtonSpec, fitsMenu, type Markdown, md, menu, name } from "../messages/message.ts";

const button = (label: string, action: string, input: Record<string, unknown>): ButtonSpec => ({
  label,
  action,
  value: JSON.stringify(input),
});

const snoozeAction = "digest:snooze";
export const unsnoozeAction = "digest:unsnooze";
export const changesAction = "digest:changes";

// Those that run a command do so as if it had been typed
export const showVm = (vm: string) => button("Show", "run:vm.show", { vm });
/** Opens any VM of a list. */
export const showOneOf = (vms: readonly { id: string; name: string; projectName?: string }[]) =>
  menu({
    label: "Show a VM…",
    action: "run:vm.show",
    options: vms.map(({ id, name: called, projectName }) => [
      projectName === undefined ? called : `${called} in ${projectName}`,
      JSON.stringify({ vm: id }),
    ]),
  });
export const attestVm = (vm: string) => button("Attest", "run:vm.attest", { vm });
export const showRequest = (request: string, label = "Details") =>
  button(label, "run:gatehouse.why", { request });
const signAction = "review:sign";
export const signReviewButton = (request: string) => button("Sign review", signAction, { request });
/** Stands beside the button, and goes with it. */
export const asksForReview = "Another administrator or approver must sign the review.";
export const asksToSign = ({ blocks }: { blocks: readonly object[] }) =>
  JSON.stringify(blocks).includes(`"action_id":"${signAction}"`);
export const showChanges = (since: number) => button("Details", changesAction, { since });
export const unsnoozeAll = button("Un-snooze all", unsnoozeAction, {});

/** Which line it is, in a few characters, whatever the line is about. */
export function lineOf({ kind, key }: { kind: string; key: string }): string {
  return `${kind}:${hash("sha256", key).slice(0, 16)}`;
}

const hoursOffered = [4, 24, 7 * 24];

/** What stands beside a line: its button, and in a menu with it for how long the channel can snooze the line. */
export function besideLine(line: string, shown?: ButtonSpec) {
  const snoozes = hoursOffered.map((hours) => {
    const time = hours < 48 ? `${hours} h` : `${hours / 24} d`;
    return button(`Snooze ${time} for everyone here`, snoozeAction, { line, hours });
  });
  const choices = [...(shown ? [shown] : []), ...snoozes];
  return fitsMenu(choices) ? choices : shown;
}

/** `a`, `b` and 3 more. */
export function listed(names: readonly string[], most = 6): Markdown {
  const [first = md``, ...rest] = names.slice(0, most).map((one) => name(one));
  const together = rest.reduce((all, one) => md`${all}, ${one}`, first);
  const more = names.length - most;
  return more > 0 ? md`${together} and ${more.toLocaleString("en-US")} more` : together;
}
