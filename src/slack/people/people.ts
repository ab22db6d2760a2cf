import { hash } from "node:crypto";
import type { Person } from "../../registry/invocation.ts";
import { at, textAt } from "../json.ts";
import type { Web } from "../web.ts";
import { CannotTell, Unanswered } from "./cannot-tell.ts";
import {
  type Home,
  emailOfUser,
  isOfHome,
  kindOfUser,
  nameOfUser,
  zoneOfUser,
} from "./kind-of-user.ts";
import { createLookups } from "./look-ups.ts";
import type { SharedAnswer } from "./shared-answer.ts";
import { type Groups, groupsHint, groupsIn, listGroups } from "./user-groups.ts";

export type People = ReturnType<typeof createPeople>;

interface PeopleOptions {
  web: Web;
  /** Throws CannotTell until Slack has answered. */
  home(): Home;
  /** The user groups that the policy names, which may change. */
  groupIds(): readonly string[];
  /** At most 60 s. */
  cacheMs?: number;
  now?: () => number;
  /**
   * The answer about user groups that all processes share. Without it, this process asks for
   * itself.
   */
  shared?: SharedAnswer;
}

const longestCacheMs = 60_000;
/**
 * Even a fresh answer may be this old (ms), so that fifty votes in a second aren't fifty calls.
 * Slack allows 20 a minute about user groups, for all processes together.
 */
const freshMs = 2_000;

export function createPeople(options: PeopleOptions) {
  const { web, now = Date.now } = options;
  const cacheMs = Math.min(options.cacheMs ?? longestCacheMs, longestCacheMs);
  const mostFreshMs = Math.min(freshMs, cacheMs);

  const lookups = { now, limitedMs: cacheMs };
  const users = createLookups<unknown>(lookups, async (userId) => {
    const answer = await web.call("users.info", { user: userId });
    if (answer.ok && at(answer.data, "user", "id") === userId)
      return { value: at(answer.data, "user") };
    // No such user is visible, so it is someone of another workspace.
    if (!answer.ok && answer.kind === "refused" && /^user_not_(found|visible)$/.test(answer.error))
      return { value: undefined };
    throw new Unanswered(answer, "you");
  });

  /** Reads all groups in one call. The key lists the IDs of the groups whose members count. */
  const groups = createLookups<Groups>(lookups, async (ids, atMostMs) => {
    const { teamId, enterpriseId } = options.home();
    const args = enterpriseId === undefined ? {} : { team_id: teamId };
    const ask = () => listGroups(web, { ...args, include_users: true }, ids.split(","));
    const id = hash("sha256", ids).slice(0, 16);
    // A change of a group ends the shared answer, so even `fresh` may use one that is as old as a
    // fresh answer may be.
    const sharedAtMostMs = Math.max(atMostMs, mostFreshMs);
    const { answer, ageMs } = options.shared
      ? await options.shared.get({ id, atMostMs: sharedAtMostMs, limitedMs: cacheMs }, ask)
      : { answer: await ask(), ageMs: 0 };
    if (!answer.ok) throw new Unanswered(answer, "the user groups");
    return { value: groupsIn(answer.data), ageMs };
  });

  const groupsNow = (atMostMs: number) =>
    groups.get([...new Set(options.groupIds())].toSorted().join(","), atMostMs);
  /**
   * Ignores what this process remembers, which may be from before a group changed. The shared
   * answer ends with that change.
   */
  const freshGroups = () => groupsNow(options.shared ? 0 : mostFreshMs);

  /** Throws CannotTell for a group that is disabled, unknown, or listed without its members. */
  function membersIn(all: Groups, groupId: string): readonly string[] {
    const group = all.get(groupId);
    if (group === undefined)
      throw new CannotTell(`Slack lists no active user group ${groupId}`, groupsHint);
    if (group.members) return group.members;
    throw new CannotTell(`Slack doesn't say who is in the user group ${groupId}`, groupsHint);
  }

  return {
    /**
     * Resolves with the person's details in Slack, as read at most `cacheMs` ago. With `fresh` (for
     * votes, and before a refusal) they were read at most two seconds ago, and after the last
     * change of a group. `teamId` is from the delivery. Throws CannotTell.
     */
    async person(
      userId: string,
      teamId: string,
      { fresh = false }: { fresh?: boolean } = {},
    ): Promise<Person> {
      const groupIds = options.groupIds();
      const atMostMs = fresh ? mostFreshMs : cacheMs;
      if (!/^[UW][A-Z0-9]{1,30}$/.test(userId))
        throw new CannotTell("Slack named no one", "Try again in Slack.");
      const [user, known] = await Promise.all([
        users.get(userId, atMostMs),
        groupIds.length === 0 ? undefined : fresh ? freshGroups() : groupsNow(atMostMs),
      ]);
      const isIn = (groupId: string) => known && membersIn(known, groupId).includes(userId);
      const home = options.home();
      const outline = {
        id: userId,
        // On Enterprise Grid, a delivery names a person's first workspace, which may not be ours.
        teamId: isOfHome(user, teamId, home) ? home.teamId : teamId || textAt(user, "team_id"),
        groups: groupIds.map((groupId) => (isIn(groupId) ? groupId : "")).filter(Boolean),
      };
      if (user === undefined) return { ...outline, name: userId, kind: "external" };
      const email = emailOfUser(user);
      const timeZone = zoneOfUser(user);
      return {
        ...outline,
        name: nameOfUser(user),
        kind: kindOfUser(user, teamId, home),
        ...(email === "" ? {} : { email }),
        ...(timeZone === undefined ? {} : { timeZone }),
      };
    },
    /** Throws CannotTell. */
    members: async (groupId: string): Promise<readonly string[]> =>
      membersIn(await groupsNow(cacheMs), groupId),
    /** The names of all groups, for messages only. Throws CannotTell. */
    groupNames: async (atMostMs: number): Promise<ReadonlyMap<string, string>> =>
      new Map([...(await groupsNow(atMostMs))].map(([id, { called }]) => [id, called])),
    /** Clears the cache of this person, or of everyone and every group. */
    forget(userId?: string): void {
      users.forget(userId);
      if (userId === undefined) groups.forget();
    },
  };
}
