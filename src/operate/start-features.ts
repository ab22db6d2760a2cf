import type { Behind, OpenApiPaths } from "../api/api-context.ts";
import type {
  Feature,
  FeatureHooks,
  Happenings,
  Layers,
  RunningFeature,
} from "../features/define-feature.ts";
import { createEvents, eventsOf } from "../core/events/read-events.ts";
import { addServices } from "../registry/service-key.ts";
import type { Schedule } from "../queue/schedules.ts";
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
  addServices(services, [eventsOf.providedBy(events)]);
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

  return {
    services,
    emit,
    contributed: {
      ...pressesOf(running),
      forms: merged(running.map(({ forms = {} }) => forms)),
      pickers: merged(running.map(({ pickers = {} }) => pickers)),
      requestMade: (request) => emit("requestMade", request),
    } satisfies Contributions,
    facts: all(({ facts }) => facts && [facts]),
    messages: all(({ messages }) => messages),
    work: {
      inProcesses: all(({ work }) => work?.inProcesses),
      inWorkers: all(({ work }) => work?.inWorkers),
    },
    async schedules(): Promise<readonly Schedule[]> {
      const each = running.map(async ({ schedules = [] }) =>
        typeof schedules === "function" ? schedules() : schedules,
      );
      return (await Promise.all(each)).flat();
    },
    api: {
      routes: (behind: Behind) => all(({ api }) => api?.routes?.(behind)),
      paths: Object.assign({}, ...running.map(({ api }) => api?.paths ?? {})) as OpenApiPaths,
      tools: all(({ api }) => api?.tools),
    },
  };
}

function pressesOf(
  running: readonly RunningFeature[],
): Pick<Contributions, "presses" | "answeredForAll"> {
  const presses = Object.entries(merged(running.map(({ presses: own = {} }) => own)));
  return {
    presses: Object.fromEntries(
      presses.map(([action, press]) => [
        action,
        typeof press === "function" ? press : press.handle,
      ]),
    ),
    answeredForAll: presses.flatMap(([action, press]) =>
      typeof press === "function" ? [] : [action],
    ),
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
