import type { KnownSnapshot } from "../inventory/snapshots.ts";
import { duration, plain } from "../messages/text.ts";
import type { SuggestRequest, Suggestion } from "./handlers.ts";
import { parseJson, textAt } from "./payload.ts";
import { maySeeNames } from "./refuse.ts";
import type { Talk } from "./talk.ts";

const most = 50;

/** Options for a select that loads while somebody types. What comes back later is checked again, whatever was offered. */
export async function suggest(request: SuggestRequest, talk: Talk): Promise<readonly Suggestion[]> {
  const person = await talk.person(request.userId, request.teamId);
  if (!maySeeNames(person, talk)) return [];
  const { typed } = request;
  switch (request.action.split(":")[1]) {
    case "vm": {
      const vms =
        typed === ""
          ? (await talk.inventory.vms()).slice(0, most)
          : await talk.inventory.suggestVms(typed, most);
      return vms.map(({ id, name, projectName, status }) => ({
        label: plain(`${name} in ${projectName}`, 70),
        value: id.slice(0, 75),
        description: plain(status, 70),
      }));
    }
    case "project": {
      const projects =
        typed === ""
          ? (await talk.inventory.projects()).slice(0, most)
          : await talk.inventory.suggestProjects(typed, most);
      return projects.map(({ id, name, type, status }) => ({
        label: plain(name, 70),
        value: id.slice(0, 75),
        description: plain(`${type}, ${status}`, 70),
      }));
    }
    case "snapshot":
      return snapshotsFor(request, talk);
    default:
      return [];
  }
}

async function snapshotsFor(request: SuggestRequest, talk: Talk): Promise<Suggestion[]> {
  const targetId = textAt(parseJson(request.privateMetadata), "targetId");
  const typed = request.typed.trim();
  const known = await talk.snapshots.of(targetId);
  const wanted = known.filter(
    ({ id, name }) =>
      id !== "" && (typed === "" || `${name} ${id}`.toLowerCase().includes(typed.toLowerCase())),
  );
  const options = wanted.slice(0, most).map((snapshot) => ({
    label: plain(snapshot.name || snapshot.id, 70),
    value: snapshot.id.slice(0, 75),
    description: describe(snapshot, talk.now()),
  }));
  // An id that we never saw may be right all the same: the service can't list them
  const isNew = typed.length > 2 && typed.length <= 75 && !wanted.some(({ id }) => id === typed);
  return isNew ? [...options, { label: plain(`Use the id ${typed}`, 70), value: typed }] : options;
}

function describe({ at, id, isSafety }: KnownSnapshot, now: number): string {
  return plain(
    `${isSafety ? "safety copy, " : ""}${duration(Math.max(1000, now - at))} old, ${id}`,
    70,
  );
}
