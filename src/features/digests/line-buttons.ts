import { hash } from "node:crypto";
import { type ButtonSpec, fitsMenu } from "../../messages/buttons.ts";

const button = (label: string, action: string, input: Record<string, unknown>): ButtonSpec => ({
  label,
  action,
  value: JSON.stringify(input),
});

const snoozeAction = "digest:snooze";
const unsnoozeAction = "digest:unsnooze";

export const unsnoozeAll = button("Un-snooze all", unsnoozeAction, {});
export const unsnooze = (line: string) => button("Un-snooze", unsnoozeAction, { line });

/** A short ID of a line, whatever the line is about. */
export function lineOf({ kind, key }: { kind: string; key: string }): string {
  return `${kind}:${hash("sha256", key).slice(0, 16)}`;
}

const hoursOffered = [4, 24, 7 * 24];

/**
 * The control beside a line: a menu with its button and the times for which the channel can snooze
 * the line, or only the button if the menu doesn't fit.
 */
export function besideLine(line: string, shown?: ButtonSpec) {
  const snoozes = hoursOffered.map((hours) => {
    const time = hours < 48 ? `${hours} h` : `${hours / 24} d`;
    return button(`Snooze ${time} for everyone here`, snoozeAction, { line, hours });
  });
  const choices = [...(shown ? [shown] : []), ...snoozes];
  return fitsMenu(choices) ? choices : shown;
}
