import type { KnownSnapshot } from "../../inventory/snapshots.ts";
import { duration, plain } from "../../messages/text.ts";
import type { SuggestRequest, Suggestion } from "../receive/interaction.ts";
import { parseJson, textAt } from "../web.ts";
import { maySeeNames } from "./authorize.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { regionsKnown } from "./plan.ts";

const maxOptions = 50;

/** Options of a select that loads while someone types. */
export async function suggest(
  request: SuggestRequest,
  gateway: GatewayContext,
): Promise<readonly Suggestion[]> {
  const person = await gateway.person(request.userId, request.teamId);
  if (!maySeeNames(person, gateway)) return [];
  const { inventory } = gateway;
  const { typed } = request;
  switch (request.action.split(":")[1]) {
    case "vm": {
      const vms = typed === "" ? inventory.vms() : inventory.suggestVms(typed, maxOptions);
      return (await vms)
        .slice(0, maxOptions)
        .map(({ id, name, projectName, status }) =>
          option(id, `${name} in ${projectName}`, plain(status, 70)),
        );
    }
    case "project": {
      const projects =
        typed === "" ? inventory.projects() : inventory.suggestProjects(typed, maxOptions);
      return (await projects)
        .slice(0, maxOptions)
        .map(({ id, name, type, status }) => option(id, name, plain(`${type}, ${status}`, 70)));
    }
    case "snapshot":
      return snapshotsFor(request, gateway);
    case "region":
      return regionsFor(typed.trim(), gateway);
    default:
      return [];
  }
}

function option(value: string, label: string, description?: string): Suggestion {
  const one = { label: plain(label, 70), value: value.slice(0, 75) };
  return description === undefined ? one : { ...one, description };
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
  const options = wanted
    .slice(0, maxOptions)
    .map((one) => option(one.id, one.name || one.id, describe(one, gateway.now())));
  // An unknown id may be valid: the compute service can't list snapshots
  const isNew = typed.length > 2 && typed.length <= 75 && !wanted.some(({ id }) => id === typed);
  return isNew ? [...options, option(typed, `Use the ID ${typed}`)] : options;
}

/** Those in use, and what was typed: a region may be new. */
async function regionsFor(typed: string, gateway: GatewayContext): Promise<Suggestion[]> {
  const known = await regionsKnown(gateway);
  const fitting = known.filter((one) => one.toLowerCase().includes(typed.toLowerCase()));
  const options = fitting.slice(0, maxOptions).map((one) => option(one, one));
  const isNew = typed !== "" && typed.length <= 60 && !known.includes(typed);
  return isNew
    ? [...options, option(typed, typed, "Nothing that Gatehouse knows is there")]
    : options;
}

function describe({ at, id, isSafety }: KnownSnapshot, now: number): string {
  const age = duration(Math.max(1000, now - at));
  return plain(`${isSafety ? "safety snapshot, " : ""}${age} old, ${id}`, 70);
}
