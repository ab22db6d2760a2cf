import { context, menu, message, type Message, news, section } from "../../messages/message.ts";
import { duration, lines, Markdown, md, mention, name, when } from "../../messages/text.ts";
import { type ChangeCommand, calledName } from "../../registry/define.ts";
import { stateWords, type StoredRequest } from "../journal/record.ts";
import { sharedCardOf } from "../journal/shared-cards.ts";
import { cardViewOf } from "./card-view.ts";
import { targetName } from "./render-card.ts";
import { headline, renderResult, symbolOf } from "./render-result.ts";

/** A request of a shared card, with its command. */
export interface Member {
  request: StoredRequest;
  command: ChangeCommand;
  /** Whether its VM is attested again, once it ended. */
  note?: Markdown | undefined;
}

/** So many lines fit into one block. */
const linesPerBlock = 20;
/** In a result, those that were not done. */
const mostNamed = 20;
/** Notes, and the names before each. */
const mostNotes = 10;
const mostNoted = 5;

/**
 * One card for several requests: a line for each, in the order in which they joined, and a menu that opens one with its
 * details and buttons. `told` are those whose result it tells too.
 */
export function renderSharedCard(
  members: readonly Member[],
  told: readonly (readonly Member[])[] = [],
): Message {
  const counts = lines(md`*${members.length} requests*: ${countsOf(members)}`);
  const title = told.length > 0 ? lines(...told.map((theirs) => sumOf(theirs))) : counts;
  const rows = members.map(lineOf);
  const notes = noteLines(told.flat());
  const blocks = [];
  for (let from = 0; from < rows.length; from += linesPerBlock)
    blocks.push(section(lines(...rows.slice(from, from + linesPerBlock))));
  const choices = members.map(({ request, command }): [string, string] => [
    `${symbolOf(request, command)} ${command.say.verb} ${request.record.target.name} (${request.record.requester.name})`,
    JSON.stringify({ request: request.record.id }),
  ]);
  return message(
    news(title),
    section(title),
    ...blocks,
    notes.length > 0 ? section(lines(...notes)) : undefined,
    menu({ label: "Details of one…", action: "request:show", options: choices }),
  );
}

/** Tells a requester how theirs ended: in the words of a single result where there is one. */
export function renderSharedResult(theirs: readonly Member[]): Message {
  const [only] = theirs;
  if (only && theirs.length === 1) return renderResult(only.request, only.command, only.note);
  const sum = sumOf(theirs);
  const notDone = theirs.filter(({ request }) => request.state !== "done");
  const more = notDone.length - mostNamed;
  return message(
    news(sum),
    section(
      lines(
        sum,
        ...notDone.slice(0, mostNamed).map(lineOf),
        more > 0 && md`… and ${more} more, in the message above`,
      ),
    ),
    ...noteLines(theirs).map((note) => context(note)),
  );
}

/** "✅ @olivia All 12 are done." */
function sumOf(theirs: readonly Member[]): Markdown {
  const [first] = theirs;
  if (!first) return md``;
  const who = mention(first.request.record.requester.id);
  const done = theirs.filter(({ request }) => request.state === "done").length;
  const worst = theirs.find(({ request }) => request.state !== "done") ?? first;
  const symbol = symbolOf(worst.request, worst.command);
  if (theirs.length === 1) return md`${symbol} ${who} ${headline(first.request, first.command)}`;
  if (done === theirs.length) return md`${symbol} ${who} All ${done} are done.`;
  if (done === 0) return md`${symbol} ${who} None of ${theirs.length} is done.`;
  return md`${symbol} ${who} ${done} of ${theirs.length} done, ${theirs.length - done} not.`;
}

function countsOf(members: readonly Member[]): Markdown {
  const counts = new Map<string, number>();
  for (const { request } of members) {
    const words = stateWords(request.state);
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return [...counts]
    .map(([words, count]) => md`${count} ${words}`)
    .reduce((all, one) => md`${all}, ${one}`);
}

function lineOf({ request, command }: Member): Markdown {
  const { record, state, progress } = request;
  const who = record.requester.name;
  const symbol = symbolOf(request, command);
  const { sentAt, already, decidedBy } = progress;
  // Short enough for a line on a phone
  if (symbol === "✅" && sentAt !== undefined && !already && !decidedBy)
    return md`${symbol} ${command.say.done} ${name(calledName(record.target))} in ${duration(request.changedAt - sentAt)} (${who})`;
  if (cardViewOf(request) === "ended") return md`${symbol} ${headline(request, command)} (${who})`;
  const what = md`${symbol} *${command.say.verb}* ${targetName(request)}`;
  if (sharedCardOf(request) === undefined && state === "unknown")
    return md`${what}: outcome unknown, see its own message (${who})`;
  const since = when(progress.sentAt ?? record.createdAt, "{time}");
  const why = state === "authorized" && progress.why ? md`: ${progress.why}` : md``;
  return md`${what}: ${stateWords(state)} since ${since}${why} (${who})`;
}

/** A note that holds for several is said once. */
function noteLines(members: readonly Member[]): Markdown[] {
  const noted = members.filter(({ note }) => note !== undefined);
  const byNote = Map.groupBy(noted, ({ note }) => note?.value);
  return [...byNote.values()].slice(0, mostNotes).map((same) => {
    const names = same
      .slice(0, mostNoted)
      .map(({ request }) => name(calledName(request.record.target)))
      .reduce((all, one) => md`${all}, ${one}`);
    const more = same.length > mostNoted ? ` and ${same.length - mostNoted} more` : "";
    return md`${names}${more}: ${same[0]?.note ?? ""}`;
  });
}
