import type { ViewLimit } from "../../commands/view-limit.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph, small, waysRow } from "../../messages/parts.ts";
import { List, sentence, card } from "../../messages/card.ts";
import { type Markdown, counted, dayAndTime, lines, md, name } from "../../messages/markdown.ts";
import { runButton } from "../../registry/define.ts";
import type { EventsSince } from "../../core/events/read-events.ts";

/** A button that shows the night to whoever presses it. */
export const nightButton = (label: string, since: number, more: object = {}) =>
  runButton(label, "gatehouse.night", { since: new Date(since).toISOString(), ...more });

/** More rows don't fit into a message, and a phone. */
const perMessage = 20;

/** What the night leaves out. */
const missingWords = ({ unread, isCut }: Pick<EventsSince, "unread" | "isCut">): Markdown =>
  lines(
    unread.length > 0 && md`⚠️ *Could not be read:* ${unread.join(", ")}.`,
    isCut && md`⚠️ Only the newest 10,000 audit records of that time are told.`,
  );

/** The acts, oldest first, without the first `skip`: a line for each, with its proof. */
export function renderNight(
  night: EventsSince,
  { skip, limit }: { skip: number; limit: ViewLimit | undefined },
): Message {
  const { events: acts, since } = night;
  const missing = lines(missingWords(night), limit?.rest);
  const below = missing.value === "" ? undefined : paragraph(missing);
  const within = limit?.within ?? "";
  if (acts.length === 0) {
    const isSure = night.unread.length === 0 && !night.isCut;
    const nothing = isSure
      ? md`☀️ Nothing${within} happened since ${dayAndTime(since)}.`
      : md`Nothing${within} is told since ${dayAndTime(since)}.`;
    return sentence(nothing, below);
  }
  const rest = acts.slice(skip, skip + perMessage);
  const rows = rest.map(({ at, text, proof, button }) =>
    paragraph(lines(md`${dayAndTime(at)} ${text}`, proof), button),
  );
  const many = counted(acts.length, "act");
  const head = md`*The night* since ${dayAndTime(since)}: ${many}${within}, oldest first.`;
  const list = new List(rows.length, (shown) => {
    const lastShown = skip + shown;
    const left = acts.length - lastShown;
    const next = nightButton(`Next ${Math.min(left, perMessage)}`, since, {
      skip: String(lastShown),
    });
    const file = nightButton("As a file", since, { file: true });
    return [
      paragraph(head),
      ...rows.slice(0, shown),
      below,
      shown < acts.length
        ? small(md`${skip + 1} to ${lastShown} of ${acts.length} are shown.`)
        : undefined,
      waysRow([...(left > 0 ? [next] : []), file]),
    ];
  });
  return card({ push: head, body: [list] });
}

/** Says what to do with the file, and what isn't in it. */
export function fileMessage(
  acts: number,
  night: Pick<EventsSince, "unread" | "isCut"> & { left: number; limit: ViewLimit | undefined },
): Message {
  const { left, limit } = night;
  return sentence(
    lines(
      md`The night is a file in your direct messages: ${counted(acts, "act")}${limit?.within ?? ""}, each with its audit records. ${name("node gatehouse.mjs audit verify FILE")} proves them against the whole trail.`,
      left > 0 &&
        md`${counted(left, "act is", "acts are")} left out: the records tell of VMs that you can't see, too.`,
      missingWords(night),
      limit?.rest,
    ),
  );
}
