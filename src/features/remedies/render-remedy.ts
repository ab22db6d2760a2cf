import { type Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { atTime, duration, firstFew, md, mention, type Markdown } from "../../messages/markdown.ts";
import { type ChangeCommand, nounOf } from "../../registry/define.ts";
import type { Advice, AlertsOnVm } from "../alert-part.ts";
import type { sumUp } from "./judge-remedy.ts";
import type { Judgment } from "./remedies.ts";
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

/** Alerts about which an attempt has something to tell. */
interface Told {
  names: readonly string[];
  alerts: AlertsOnVm;
  /** User ID. */
  requester: string;
  command: ChangeCommand;
  judgment: Pick<Judgment, "verdicts" | "changedAt" | "judgedAt">;
}

/** The alerts that a change didn't end, and how often the change had failed before. */
export interface StillFiring extends Told {
  /** Whether they ended meanwhile and fire anew. */
  isAgain: boolean;
  /** How many attempts right before this one had failed, too. */
  failedBefore: number;
}

const placeOf = ({ names, alerts }: Pick<Told, "names" | "alerts">) =>
  `${firstFew(names, 3)} on ${alerts.vm}`;

/** What the source last said of these alerts: `it last spoke at 3:10 AM`. */
function spokeWords(facts: Told): Markdown {
  const { names, alerts, command, judgment } = facts;
  const firing = alerts.alerts.filter(
    ({ name, state }) => state === "firing" && names.includes(name),
  );
  const heardAt = Math.min(...firing.map((alert) => alert.heardAt));
  const isLeftOut = firing.some((alert) => alert.isLeftOut);
  if (heardAt < judgment.changedAt)
    return md`hasn't ${isLeftOut ? "reported this" : "spoken"} since the ${nounOf(command)}`;
  return md`last ${isLeftOut ? "reported this" : "spoke"} ${atTime(heardAt, judgment.judgedAt)}`;
}

/**
 * The message in the alert's thread, some minutes after a change that didn't end the alert as far as
 * its source told. Whether the change helped is said only if the source has spoken since.
 */
export function renderStillFiring(still: StillFiring): Message {
  const { names, alerts, requester, command, judgment, isAgain, failedBefore } = still;
  const { verdicts, changedAt, judgedAt } = judgment;
  const isHeard = names.every((alertName) => verdicts[alertName] === "failed");
  const before = failedBefore === 0 ? "" : `; it didn't ${lastTimes(failedBefore)} either`;
  const fires = `${names.length > 1 ? "fire" : "fires"}${isAgain ? " again" : ""}`;
  const after = `${wholeMinutes(judgedAt - changedAt)} after the ${nounOf(command)}`;
  const { source } = alerts;
  const unheard =
    isHeard || isAgain ? "" : md`, as far as ${source} has told: it ${spokeWords(still)}`;
  const words = md`${placeOf(still)} ${isAgain ? "" : "still "}${fires}, ${after}${unheard}.`;
  const so = isHeard ? ` ${aNounOf(command)} didn't help${before}.` : "";
  return card({ sign: "🔥", title: md`${mention(requester)} *${words}*${so}`, ways: alerts.links });
}

/** Takes back that alerts still fired: their source told later that they had ended in time. */
export function renderCorrection(facts: Told): Message {
  const { names, alerts, requester, command, judgment } = facts;
  const isEarly = (name: string) => judgment.verdicts[name] === "early";
  const times = [
    ["before", names.filter(isEarly)],
    ["after", names.filter((name) => !isEarly(name))],
  ] as const;
  const ends = times.flatMap(([time, ended]) => {
    const place = placeOf({ names: ended, alerts });
    return ended.length > 0 ? [`${place} had ended ${time} the ${nounOf(command)}`] : [];
  });
  const words = md`${ends.join(", ")}; ${alerts.source} told it only later.`;
  return card({ sign: "✅", title: md`${mention(requester)} ${words}` });
}

/** To the minute, as long as it is one: the look isn't more exact. */
export const wholeMinutes = (ms: number) =>
  duration(ms < 60_000 ? ms : Math.round(ms / 60_000) * 60_000);
