import type { Behind, OpenApiPaths } from "../api/api-context.ts";
import type {
  Feature,
  FeatureHooks,
  Happenings,
  Layers,
  RunningFeature,
} from "../features/define-feature.ts";
import { createEvents } from "../core/events/read-events.ts";
import { addServices } from "../registry/service-key.ts";
import type { Contributions } from "../talk/gateway-context.ts";

export type RunningFeatures = ReturnType<typeof startFeatures>;

/** Starts each feature, and combines their contributions. */
export function startFeatures(
  features: readonly Feature[],
  layers: Omit<Layers, "events" | "services">,
) {
  const services = new Map<symbol, unknown>();
  const running: RunningFeature[] = [];
  const events = createEvents({
    ...layers,
    sources: () => running.flatMap((feature) => feature.events ?? []),
  });
  const on = { ...layers, events, services };
  for (const feature of features) running.push(feature.start?.(on) ?? {});
  addServices(
    services,
    running.flatMap((feature) => feature.provides ?? []),
  );
  const all = <Part>(part: (feature: RunningFeature) => readonly Part[] | undefined) =>
    running.flatMap((feature) => part(feature) ?? []);

  /** Tells all features at once what happened. Rejects when one of them couldn't take it in. */
  async function emit<Name extends keyof Happenings>(
    name: Name,
    ...happened: Happenings[Name]
  ): Promise<void> {
    const hooks = running.flatMap(({ on: hooksOf }): FeatureHooks[Name][] => {
      const hook = hooksOf?.[name];
      return hook ? [hook] : [];
    });
    await Promise.all(hooks.map(async (hook) => hook(...happened)));
  }

  const contributed: Contributions = {
    pickers: merged(running.map(({ pickers = {} }) => pickers)),
    presses: merged(running.map(({ presses = {} }) => presses)),
    forms: merged(running.map(({ forms = {} }) => forms)),
    answeredForAll: all(({ answeredForAll }) => answeredForAll),
    requestMade: (request) => emit("requestMade", request),
  };
  return {
    contributed,
    services,
    messages: all(({ messages }) => messages),
    pending: all(({ pending }) => pending),
    steps: all(({ steps }) => steps),
    schedules: async () =>
      (
        await Promise.all(
          running.map(async ({ schedules = [] }) =>
            typeof schedules === "function" ? schedules() : schedules,
          ),
        )
      ).flat(),
    facts: running.flatMap(({ facts = [] }) => facts),
    emit,
    routes: (behind: Behind) => all(({ routes }) => routes?.(behind)),
    paths: Object.assign({}, ...running.map(({ paths }) => paths ?? {})) as OpenApiPaths,
    tools: all(({ tools }) => tools),
  };
}

/** Throws when two features have a button or a form with the same name. */
function merged<Handler>(
  tables: readonly Readonly<Record<string, Handler>>[],
): Readonly<Record<string, Handler>> {
  const entries = tables.flatMap((table) => Object.entries(table));
  const names = entries.map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two features handle ${twice}`);
  return Object.fromEntries(entries);
}
