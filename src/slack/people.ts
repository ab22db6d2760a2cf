import { UserError } from "../errors.ts";
import type { Person } from "../registry/person.ts";
import { kindOfUser, nameOfUser } from "./kind-of-user.ts";
import { createLookups, type Lookups } from "./lookups.ts";
import { at, textAt, textsAt } from "./payload.ts";
import type { Web, WebAnswer } from "./web.ts";

/** We don't know who this is right now, so the answer is no. */
export class CannotTell extends UserError {
  constructor(why: string, hint = "Try again in a minute.") {
    super(`I can't check who you are right now: ${why}. So nothing was done.`, hint);
  }
}

export interface LookOptions {
  /** For votes: asks Slack again unless it was asked in the last two seconds. */
  fresh?: boolean;
  /** Only these groups need to be known; default: all of `groupIds`. */
  groupIds?: readonly string[];
}

export interface People {
  /** Who that is, as Slack says (at most `cacheMs` ago). Throws CannotTell. `teamId` is what the delivery said. */
  person(userId: string, teamId: string, options?: LookOptions): Promise<Person>;
  /** Throws CannotTell, also for groups that Slack doesn't know. */
  inGroup(userId: string, groupId: string, options?: LookOptions): Promise<boolean>;
  /** Throws CannotTell. */
  members(groupId: string): Promise<readonly string[]>;
  /** The next look asks Slack: of this person, or of everybody and every group. */
  forget(userId?: string): void;
}

export interface PeopleOptions {
  web: Web;
  ourTeamId: string;
  ourEnterpriseId?: string | undefined;
  /** The user groups that policy names. */
  groupIds: readonly string[];
  /** At most 60 s. */
  cacheMs?: number;
  now?: () => number;
}

const longestCacheMs = 60_000;
/** Fifty votes in a second must not be fifty calls: usergroups.users.list takes 20 a minute. */
const freshMs = 2_000;

export function createPeople(options: PeopleOptions): People {
  const { web, now = Date.now } = options;
  const cacheMs = Math.min(options.cacheMs ?? longestCacheMs, longestCacheMs);
  const home = { teamId: options.ourTeamId, enterpriseId: options.ourEnterpriseId };

  const users = createLookups<unknown>(async (userId) => {
    const answer = await web.call("users.info", { user: userId });
    if (answer.ok && at(answer.data, "user", "id") === userId) return at(answer.data, "user");
    // Slack shows us nobody by that id: a stranger of another workspace.
    if (!answer.ok && answer.kind === "refused" && /^user_not_(found|visible)$/.test(answer.error))
      return undefined;
    throw new Unanswered(answer);
  }, now);

  const groups = createLookups<ReadonlySet<string>>(async (groupId) => {
    const args = options.ourEnterpriseId === undefined ? {} : { team_id: options.ourTeamId };
    const answer = await web.call("usergroups.users.list", { usergroup: groupId, ...args });
    if (answer.ok && Array.isArray(answer.data["users"]))
      return new Set(textsAt(answer.data, "users"));
    throw new Unanswered(answer);
  }, now);

  /** Fresh where asked for. Limited by Slack: what was known within the cache time still counts. */
  async function look<T>(
    lookups: Lookups<T>,
    name: string,
    fresh: boolean,
    what: string,
  ): Promise<T> {
    try {
      return await lookups.get(name, fresh ? Math.min(freshMs, cacheMs) : cacheMs);
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      const known = error.isLimited ? lookups.known(name, cacheMs) : undefined;
      if (known !== undefined) return known;
      throw new CannotTell(error.reason(what), error.hint);
    }
  }

  const membersOf = (groupId: string, fresh: boolean) =>
    look(groups, groupId, fresh, `the user group ${groupId}`);

  return {
    async person(userId, teamId, { fresh = false, groupIds = options.groupIds } = {}) {
      if (!/^[UW][A-Z0-9]{1,30}$/.test(userId))
        throw new CannotTell("Slack named nobody", "Try again in Slack.");
      const [user, members] = await Promise.all([
        look(users, userId, fresh, "you"),
        Promise.all(groupIds.map((groupId) => membersOf(groupId, fresh))),
      ]);
      const outline = {
        id: userId,
        teamId: teamId || textAt(user, "team_id"),
        groups: groupIds.filter((_, index) => members[index]?.has(userId)),
      };
      if (user === undefined) return { ...outline, name: userId, kind: "external" };
      return { ...outline, name: nameOfUser(user), kind: kindOfUser(user, teamId, home) };
    },
    async inGroup(userId, groupId, { fresh = false } = {}) {
      return (await membersOf(groupId, fresh)).has(userId);
    },
    members: async (groupId) => [...(await membersOf(groupId, false))],
    forget(userId) {
      users.forget(userId);
      if (userId === undefined) groups.forget();
    },
  };
}

/** Slack gave no usable answer; becomes CannotTell. */
class Unanswered extends Error {
  readonly #answer: WebAnswer;

  constructor(answer: WebAnswer) {
    super("no usable answer");
    this.#answer = answer;
  }

  get isLimited(): boolean {
    return !this.#answer.ok && this.#answer.kind === "limited";
  }

  get hint(): string | undefined {
    const answer = this.#answer;
    if (answer.ok || answer.kind !== "refused") return undefined;
    if (answer.error === "missing_scope")
      return "The app lacks a scope in Slack: install it again from manifest.yml.";
    return "Somebody has to look at the groups in gatehouse.yml, or at the app in Slack.";
  }

  reason(what: string): string {
    const answer = this.#answer;
    if (answer.ok) return `Slack's answer about ${what} makes no sense`;
    if (answer.kind === "refused") return `Slack refuses to tell about ${what} (${answer.error})`;
    return answer.kind === "limited" ? "Slack limits how often we may ask" : "Slack doesn't answer";
  }
}
