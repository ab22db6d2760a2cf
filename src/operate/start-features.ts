import type { Behind, OpenApiPaths } from "../api/api-context.ts";
import type {
  Feature,
  FeatureHooks,
  Happenings,
  Layers,
  RunningFeature,
  Untold,
} from "../features/define-feature.ts";
import { createEvents } from "../core/events/read-events.ts";
import type { Contributions } from "../talk/gateway-context.ts";

export type RunningFeatures = ReturnType<typeof startFeatures>;

/** Starts each feature, and combines their contributions. */
export function startFeatures(
  features: readonly Feature[],
  layers: Omit<Layers, "running" | "events">,
) {
  const running: RunningFeature[] = [];
  const events = createEvents({
    ...layers,
    sources: () => running.flatMap((feature) => feature.events ?? []),
  });
  const on = { ...layers, events, running: () => running };
  for (const feature of features) running.push(feature.start?.(on) ?? {});
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

  const [homeTab, ...otherTabs] = all((feature) => feature.homeTab && [feature.homeTab]);
  if (otherTabs.length > 0) throw new Error("two features have a Home tab");
  const [several, another] = all((feature) => feature.several && [feature.several]);
  if (another) throw new Error("two features handle commands that name several VMs");
  const [rehearsal, second] = all((feature) => feature.rehearsal && [feature.rehearsal]);
  if (second) throw new Error("two features rehearse changes");
  const [emergency, other] = all((feature) => feature.emergency && [feature.emergency]);
  if (other) throw new Error("two features let changes skip approvals");
  const contributed: Contributions = {
    pickers: merged(running.map(({ pickers = {} }) => pickers)),
    presses: merged(running.map(({ presses = {} }) => presses)),
    forms: merged(running.map(({ forms = {} }) => forms)),
    answeredForAll: all(({ answeredForAll }) => answeredForAll),
    several,
    rehearsal,
    homeTab,
    async beforeRequest(permit, origin, gateway) {
      for (const feature of running) await feature.beforeRequest?.(permit, origin, gateway);
    },
    requestMade: (request) => emit("requestMade", request),
    offersAtRefusal: (lacked, gateway) =>
      all((feature) => feature.offersAtRefusal?.(lacked, gateway)),
  };
  return {
    contributed,
    emergency,
    services: all(({ services }) => services),
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
    status: all(({ status }) => status),
    emit,
    untold: async (): Promise<readonly Untold[]> =>
      (await Promise.all(running.map(async (feature) => (await feature.untold?.()) ?? []))).flat(),
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
