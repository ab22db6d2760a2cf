import { fold } from "../text/fold.ts";
import { plain } from "../messages/markdown.ts";
import type { SuggestRequest, Suggestion } from "../slack/receive/interaction.ts";
import { maySeeNames } from "./authorize.ts";
import { regionsKnown } from "./dialog-facts.ts";
import type { GatewayContext } from "./gateway-context.ts";

const maxOptions = 50;

/** Loads the options of a select while a person types. Empty for a person who may see no names. */
export async function suggest(
  request: SuggestRequest,
  gateway: GatewayContext,
): Promise<readonly Suggestion[]> {
  const person = await gateway.person(request.userId, request.teamId);
  if (!maySeeNames(person, gateway)) return [];
  const { inventory } = gateway;
  const typed = request.typed.trim();
  const [, picker = ""] = request.action.split(":");
  switch (picker) {
    case "vm": {
      const vms = await (typed === "" ? inventory.vms() : inventory.suggestVms(typed, maxOptions));
      return vms
        .slice(0, maxOptions)
        .map((vm) => option(vm.id, `${vm.name} in ${vm.projectName}`, vm.status));
    }
    case "project": {
      const projects = await (typed === ""
        ? inventory.projects()
        : inventory.suggestProjects(typed, maxOptions));
      return projects
        .slice(0, maxOptions)
        .map(({ id, name, type, status }) => option(id, name, `${type}, ${status}`));
    }
    case "region": {
      const options = (await regionsKnown(gateway)).map((region) => option(region, region));
      const unknown = option(typed, typed, "Nothing that Gatehouse knows is there");
      return fitting(typed, options, unknown);
    }
    default: {
      const { pickers } = gateway.contributed;
      return Object.hasOwn(pickers, picker)
        ? ((await pickers[picker]?.(request, gateway)) ?? [])
        : [];
    }
  }
}

export function option(value: string, label: string, description?: string): Suggestion {
  const suggestion = { label: plain(label, 70), value: value.slice(0, 75) };
  return description === undefined
    ? suggestion
    : { ...suggestion, description: plain(description, 70) };
}

/** The options that contain the typed text, then the typed text itself, because it may be new. */
export function fitting(typed: string, options: readonly Suggestion[], asTyped: Suggestion) {
  const matching = options
    .filter(({ label, value }) => fold(`${label} ${value}`).includes(fold(typed)))
    .slice(0, maxOptions);
  const isNew =
    typed !== "" && typed.length <= 60 && !matching.some(({ value }) => value === typed);
  return isNew ? [...matching, asTyped] : matching;
}
