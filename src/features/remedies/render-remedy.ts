import {
  buttons,
  duration,
  firstFew,
  md,
  mention,
  message,
  type Message,
  news,
  section,
} from "../../messages/message.ts";
import { type ChangeCommand, nounOf } from "../../registry/define.ts";
import type { Advice, AlertsOnVm } from "../alert-part.ts";
import type { sumUp } from "./judge-remedy.ts";
import { lowerFirst } from "../../text/letter-case.ts";

/** `A restart`, `An update`. */
function aNounOf(command: ChangeCommand): string {
  const noun = nounOf(command);
  return `${/^[aeiou]/.test(noun) ? "An" : "A"} ${noun}`;
}

/** `the last time`, `the last 2 times` */
const lastTimes = (count: number) => (count === 1 ? "the last time" : `the last ${count} times`);

/** What people read of a command on the next alert of the kind. */
export function adviceOn(
  { failures, helpedAt }: ReturnType<typeof sumUp>[number],
  command: ChangeCommand,
): Advice {
  if (helpedAt === undefined)
    return {
      command: command.name,
      text: `${aNounOf(command)} didn't help ${lastTimes(failures)}`,
    };
  const noun = aNounOf(command);
  const text = `Last time ${lowerFirst(noun)} ended it`;
  return { command: command.name, text, at: helpedAt };
}

/** The alerts that a change didn't end, and how often the change had failed before. */
export interface StillFiring {
  names: readonly string[];
  alerts: AlertsOnVm;
  /** User ID. */
  requester: string;
  command: ChangeCommand;
  /** How long after the change that was seen (ms). */
  afterMs: number;
  /** Whether one of them ended meanwhile and fires anew. */
  isAgain: boolean;
  /** How many attempts right before this one had failed, too. */
  failedBefore: number;
}

/** The message in the alert's thread, some minutes after a change that didn't end the alert. */
export function renderStillFiring(still: StillFiring): Message {
  const { names, alerts, requester, command, afterMs, isAgain, failedBefore } = still;
  const what = `${firstFew(names, 3)} on ${alerts.vm}`;
  const before = failedBefore === 0 ? "" : `; it didn't ${lastTimes(failedBefore)} either`;
  const fires = `${names.length > 1 ? "fire" : "fires"}${isAgain ? " again" : ""}`;
  const said = md`${what} ${isAgain ? "" : "still "}${fires}, ${wholeMinutes(afterMs)} after the ${nounOf(command)}.`;
  const so = `${aNounOf(command)} didn't help${before}.`;
  return message(
    news(md`🔥 ${said} ${so}`),
    section(md`🔥 ${mention(requester)} *${said}* ${so}`),
    buttons(alerts.links),
  );
}

/** To the minute, as long as it is one: the look isn't more exact. */
const wholeMinutes = (ms: number) => duration(ms < 60_000 ? ms : Math.round(ms / 60_000) * 60_000);
