import { commands } from "../commands/index.ts";
import { type Markdown, md, name, when } from "../messages/text.ts";
import type { Facts, RequestFact } from "./facts.ts";
import type { Item } from "./items.ts";
import { showRequest } from "./line-buttons.ts";

/** Names in one line; the rest is counted. */
const mostNames = 6;

/** What changed: what failed one by one, what was done together by command and person, the newest first. */
export function changeItems(facts: Facts): Item[] {
  const ended = facts.ended ?? [];
  const failed = ended.filter(({ state }) => state === "failed");
  const groups = new Map<string, RequestFact[]>();
  for (const request of ended) {
    if (request.state !== "done") continue;
    const key = `${request.command} ${request.requester}`;
    groups.set(key, [...(groups.get(key) ?? []), request]);
  }
  return [...failed.map(failedItem), ...[...groups.values()].map(doneItem)];
}

function failedItem(request: RequestFact): Item {
  const { id, command, target, requester, changedAt, why } = request;
  return {
    kind: "change",
    key: `change:${id}`,
    draw: () => ({
      text: md`✖️ *${command}* ${name(target.name)} failed at ${atTime(changedAt)}, asked by ${requester}${why ? md`: ${why}` : ""}.`,
      button: showRequest(id),
    }),
  };
}

function doneItem(requests: readonly RequestFact[]): Item {
  const [newest] = requests;
  if (!newest) throw new Error("a group has at least one");
  const times =
    requests.length === 1 ? "" : requests.length === 2 ? ", twice" : `, ${requests.length} times`;
  const names = [...new Set(requests.map(({ target }) => target.name))];
  return {
    kind: "change",
    key: `change:${newest.id}`,
    draw: () => ({
      text: md`✏️ ${doneWord(newest.command)} ${listed(names)} · ${newest.requester}${names.length === requests.length ? "" : times}, ${requests.length === 1 ? "" : "last "}${atTime(newest.changedAt)}`,
      button: showRequest(newest.id),
    }),
  };
}

const atTime = (at: number) => when(at, "{date_short_pretty} {time}");

/** "Restarted", as the command itself says it. */
function doneWord(command: string): string {
  const found = commands.find((one) => one.name === command);
  return found?.kind === "change" ? found.say.done : `Done: ${command} of`;
}

/** `a`, `b` and 3 more. */
export function listed(names: readonly string[], most = mostNames): Markdown {
  const shown = names.slice(0, most).map((one) => name(one));
  const [first = md``, ...rest] = shown;
  const together = rest.reduce((all, one) => md`${all}, ${one}`, first);
  const more = names.length - shown.length;
  return more > 0 ? md`${together} and ${more.toLocaleString("en-US")} more` : together;
}
