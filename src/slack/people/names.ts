import type { Log } from "../../log/log.ts";
import type { Web } from "../web.ts";
import { Unanswered } from "./cannot-tell.ts";
import { createLookups } from "./look-ups.ts";
import type { People } from "./people.ts";
import { groupsIn, listGroups } from "./user-groups.ts";

const goodForMs = 600_000;
/** A group that isn't known may be new, so Slack is asked again, at most this often (ms). */
const againAfterMs = 10_000;
const maxKept = 10_000;

/**
 * Names of people and handles of groups, for messages only, never for decisions. Groups, and the
 * people that the policy lists (`usual`), are read in the background, at most every ten minutes.
 */
export function createPeopleNames(options: {
  web: Web;
  log: Log;
  person: (id: string) => ReturnType<People["person"]>;
  /** Without it, `web` is asked. */
  groupNames?: People["groupNames"];
  /** Read at each use, because the policy may change. */
  usual(): readonly string[];
}) {
  const { web, log, person } = options;
  let groups: ReadonlyMap<string, string> = new Map();
  const people = new Map<string, string>();
  let askedAt = -Infinity;

  const lookups = { now: () => performance.now(), limitedMs: againAfterMs };
  const readGroups =
    options.groupNames ??
    (async () => {
      const answer = await listGroups(web, {}, []);
      if (!answer.ok) throw new Unanswered(answer, "the user groups");
      return new Map([...groupsIn(answer.data)].map(([id, { called }]) => [id, called]));
    });
  const lists = createLookups<void>(lookups, async () => {
    try {
      groups = await readGroups(againAfterMs);
    } catch {
      log.debug("slack.groups-unnamed", {});
    }
    return { value: undefined };
  });
  const groupsAgain = () => lists.get("groups", againAfterMs);

  async function learn(id: string): Promise<void> {
    const user = await person(id).catch(() => undefined);
    if (!user || user.name === id) return;
    if (people.size >= maxKept) people.clear();
    people.set(id, user.name);
  }

  /** Resolves once the people and groups among these IDs are known, or Slack didn't say. */
  async function learnNames(ids: readonly string[]): Promise<void> {
    const unknown = new Set(ids.filter((id) => /^[UW][A-Z0-9]+$/.test(id) && !people.has(id)));
    const isNew = ids.some((id) => id.startsWith("S") && !groups.has(id));
    await Promise.all([...[...unknown].map(learn), isNew ? groupsAgain() : undefined]);
  }

  function refresh(): void {
    if (performance.now() - askedAt < goodForMs) return;
    askedAt = performance.now();
    void groupsAgain();
    void learnNames(options.usual());
  }
  refresh();
  return {
    /** `@oncall` for a group, `olivia` for a person. Undefined while it isn't known. */
    nameOf(id: string): string | undefined {
      refresh();
      return groups.get(id) ?? people.get(id);
    },
    learnNames,
  };
}

/** Reads the names of these IDs now. An ID that Slack doesn't know stays without a name. */
export async function readNames(
  ids: readonly string[],
  context: Pick<Parameters<typeof createPeopleNames>[0], "web" | "person" | "log" | "groupNames">,
): Promise<(id: string) => string | undefined> {
  const { learnNames, nameOf } = createPeopleNames({ ...context, usual: () => [] });
  await learnNames(ids);
  return nameOf;
}
