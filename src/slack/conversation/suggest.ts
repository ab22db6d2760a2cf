import type { KnownSnapshot } from "../../inventory/snapshots.ts";
import { duration, plain } from "../../messages/text.ts";
import type { SuggestRequest, Suggestion } from "../receive/interaction.ts";
import { parseJson, textAt } from "../web.ts";
import { maySeeNames } from "./authorize.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { regionsKnown } from "./submit-change.ts";

const maxOptions = 50;

/** Options of a select that loads while someone types. */
export async function suggest(
  request: SuggestRequest,
  gateway: GatewayContext,
): Promise<readonly Suggestion[]> {
  const person = await gateway.person(request.userId, request.teamId);
  if (!maySeeNames(person, gateway)) return [];
  const { typed } = request;
  switch (request.action.split(":")[1]) {
    case "vm": {
      const vms =
        typed === ""
          ? (await gateway.inventory.vms()).slice(0, maxOptions)
          : await gateway.inventory.suggestVms(typed, maxOptions);
      return vms.map(({ id, name, projectName, status }) => ({
        label: plain(`${name} in ${projectName}`, 70),
        value: id.slice(0, 75),
        description: plain(status, 70),
      }));
    }
    case "project": {
      const projects =
        typed === ""
          ? (await gateway.inventory.projects()).slice(0, maxOptions)
          : await gateway.inventory.suggestProjects(typed, maxOptions);
      return projects.map(({ id, name, type, status }) => ({
        label: plain(name, 70),
        value: id.slice(0, 75),
        description: plain(`${type}, ${status}`, 70),
      }));
    }
    case "snapshot":
      return snapshotsFor(request, gateway);
    case "region":
      return regionsFor(typed.trim(), gateway);
    default:
      return [];
  }
}

async function snapshotsFor(
  request: SuggestRequest,
  gateway: GatewayContext,
): Promise<Suggestion[]> {
  const targetId = textAt(parseJson(request.privateMetadata), "targetId");
  const typed = request.typed.trim();
  const known = await gateway.snapshots.of(targetId);
  const wanted = known.filter(
    ({ id, name }) =>
      id !== "" && (typed === "" || `${name} ${id}`.toLowerCase().includes(typed.toLowerCase())),
  );
  const options = wanted.slice(0, maxOptions).map((snapshot) => ({
    label: plain(snapshot.name || snapshot.id, 70),
    value: snapshot.id.slice(0, 75),
    description: describe(snapshot, gateway.now()),
  }));
  // An unknown id may be valid: the compute service can't list snapshots
  const isNew = typed.length > 2 && typed.length <= 75 && !wanted.some(({ id }) => id === typed);
  return isNew ? [...options, { label: plain(`Use the ID ${typed}`, 70), value: typed }] : options;
}

/** Those in use, and what was typed: a region may be new. */
async function regionsFor(typed: string, gateway: GatewayContext): Promise<Suggestion[]> {
  const known = await regionsKnown(gateway);
  const fitting = known.filter((one) => one.toLowerCase().includes(typed.toLowerCase()));
  const options = fitting
    .slice(0, maxOptions)
    .map((one) => ({ label: plain(one, 70), value: one.slice(0, 75) }));
  const isNew = typed !== "" && typed.length <= 60 && !known.includes(typed);
  if (!isNew) return options;
  const description = "Nothing that Gatehouse knows is there";
  return [...options, { label: plain(typed, 70), value: typed, description }];
}

function describe({ at, id, isSafety }: KnownSnapshot, now: number): string {
  const age = duration(Math.max(1000, now - at));
  return plain(`${isSafety ? "safety snapshot, " : ""}${age} old, ${id}`, 70);
}
