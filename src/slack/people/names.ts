import type { Log } from "../../log/log.ts";
import { type Message, notice } from "../../messages/message.ts";
import { type Markdown, md, name } from "../../messages/text.ts";
import { listAt, textAt, textsAt, type Web } from "../web.ts";
import type { People } from "./people.ts";

const goodForMs = 600_000;
/** A group that isn't known may be new: Slack is asked again, this often at most. */
const againAfterMs = 10_000;
const maxKept = 10_000;

/**
 * Names of people and handles of groups, for messages only, never for decisions. Groups, and the people that policy lists
 * (`usual`), are read in the background, at most every ten minutes.
 */
export function createNames(options: {
  web: Web;
  log: Log;
  person: (id: string) => ReturnType<People["person"]>;
  /** Read at each use: the policy may change. */
  usual(): readonly string[];
}) {
  const { web, log, person } = options;
  let groups = new Map<string, string>();
  const people = new Map<string, string>();
  let askedAt = -Infinity;
  let readAt = -Infinity;
  let reading: Promise<void> | undefined;

  /** Undefined when they were just read. */
  function groupsAgain(): Promise<void> | undefined {
    if (performance.now() - readAt < againAfterMs) return reading;
    return (reading ??= readGroups().finally(() => {
      readAt = performance.now();
      reading = undefined;
    }));
  }

  async function readGroups(): Promise<void> {
    const answer = await web.call("usergroups.list");
    if (!answer.ok) return log.debug("slack.groups-unnamed", {});
    groups = new Map(
      listAt(answer.data, "usergroups").map((group) => [
        textAt(group, "id"),
        `@${textAt(group, "handle") || textAt(group, "name")}`,
      ]),
    );
  }

  async function learn(id: string): Promise<void> {
    const found = await person(id).catch(() => undefined);
    if (!found || found.name === id) return;
    if (people.size >= maxKept) people.clear();
    people.set(id, found.name);
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
    /** `@oncall` for a group, `olivia` for a person; undefined while it isn't known. */
    nameOf(id: string): string | undefined {
      refresh();
      return groups.get(id) ?? people.get(id);
    },
    learnNames,
  };
}

/** What these IDs are called, read now; what Slack doesn't say stays without a name. */
export async function readNames(
  ids: readonly string[],
  by: Pick<Parameters<typeof createNames>[0], "web" | "person" | "log">,
): Promise<(id: string) => string | undefined> {
  const { learnNames, nameOf } = createNames({ ...by, usual: () => [] });
  await learnNames(ids);
  return nameOf;
}

/**
 * Who came into a user group and who left it, by user ID. Reads `subteam_members_changed` and `subteam_updated` (https://docs.slack.dev/reference/events/subteam_members_changed).
 * Only the first says who; the other, and any unknown one, names the group alone.
 */
export function readGroupChange(event: unknown) {
  return {
    groupId: textAt(event, "subteam_id") || textAt(event, "subteam", "id"),
    came: textsAt(event, "added_users"),
    left: textsAt(event, "removed_users"),
  };
}

const maxNamed = 20;

/** For the audit channel: by name, without a mention of anyone. */
export function groupNews(
  { groupId, came, left }: ReturnType<typeof readGroupChange>,
  nameOf: (id: string) => string | undefined,
): Message {
  const named = (ids: readonly string[]) =>
    md`${ids
      .slice(0, maxNamed)
      .map((id) => nameOf(id) ?? id)
      .join(", ")}${ids.length > maxNamed ? ` and ${ids.length - maxNamed} more` : ""}`;
  const group = nameOf(groupId);
  const called = group === undefined ? name(groupId) : md`${group} (${name(groupId)})`;
  return notice(
    md`👥 The user group ${called}, which the policy names, changed: ${sentence(named(came), came.length, named(left), left.length)}. It counts at once.`,
  );
}

function sentence(came: Markdown, cameCount: number, left: Markdown, leftCount: number): Markdown {
  if (leftCount === 0) return md`${came} joined`;
  return cameCount === 0 ? md`${left} left` : md`${came} joined; ${left} left`;
}
