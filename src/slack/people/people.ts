import type { Policy } from "../../config/policy-file.ts";
import { UserError } from "../../errors.ts";
import { everyoneNamed } from "../../policy/teams.ts";
import type { Person } from "../../registry/invocation.ts";
import { at, textAt, textsAt, listAt, type Web, type WebAnswer } from "../web.ts";

/** The person can't be verified right now, so the answer is no. */
export class CannotTell extends UserError {
  constructor(why: string, hint = "Try again in a minute.") {
    super(`Can't verify who you are right now: ${why}. Nothing was done.`, hint);
  }
}

export type People = ReturnType<typeof createPeople>;

interface PeopleOptions {
  web: Web;
  /** Read at each use: a process may start before Slack can say it, and then this throws CannotTell. */
  ourTeamId: string;
  ourEnterpriseId?: string | undefined;
  /** The user groups that policy names, read at each use: it may change. */
  readonly groupIds: readonly string[];
  /** At most 60 s. */
  cacheMs?: number;
  now?: () => number;
}

/** Every user group that the policy names. */
export function groupsNamedIn(policy: Policy): string[] {
  return everyoneNamed(policy).filter((id) => id.startsWith("S"));
}

const longestCacheMs = 60_000;
/** Fifty votes in a second must not be fifty calls: usergroups.users.list allows 20 a minute. */
const freshMs = 2_000;

export function createPeople(options: PeopleOptions) {
  const { web, now = Date.now } = options;
  const cacheMs = Math.min(options.cacheMs ?? longestCacheMs, longestCacheMs);

  const lookups = { now, limitedMs: cacheMs };
  const users = createLookups<unknown>(lookups, async (userId) => {
    const answer = await web.call("users.info", { user: userId });
    if (answer.ok && at(answer.data, "user", "id") === userId) return at(answer.data, "user");
    // No such user visible: someone of another workspace.
    if (!answer.ok && answer.kind === "refused" && /^user_not_(found|visible)$/.test(answer.error))
      return undefined;
    throw new Unanswered(answer, "you");
  });

  const groups = createLookups<ReadonlySet<string>>(lookups, async (groupId) => {
    const args = options.ourEnterpriseId === undefined ? {} : { team_id: options.ourTeamId };
    const answer = await web.call("usergroups.users.list", { usergroup: groupId, ...args });
    if (answer.ok && Array.isArray(answer.data["users"]))
      return new Set(textsAt(answer.data, "users"));
    throw new Unanswered(answer, `the user group ${groupId}`);
  });

  return {
    /** At most `cacheMs` old, `fresh` (for votes) two seconds. `teamId` is from the delivery. Throws CannotTell. */
    async person(
      userId: string,
      teamId: string,
      { fresh = false }: { fresh?: boolean } = {},
    ): Promise<Person> {
      const { groupIds } = options;
      const atMostMs = fresh ? Math.min(freshMs, cacheMs) : cacheMs;
      if (!/^[UW][A-Z0-9]{1,30}$/.test(userId))
        throw new CannotTell("Slack named no one", "Try again in Slack.");
      const [user, members] = await Promise.all([
        users.get(userId, atMostMs),
        Promise.all(groupIds.map((groupId) => groups.get(groupId, atMostMs))),
      ]);
      const outline = {
        id: userId,
        teamId: teamId || textAt(user, "team_id"),
        groups: groupIds.filter((_, index) => members[index]?.has(userId)),
      };
      const home = { teamId: options.ourTeamId, enterpriseId: options.ourEnterpriseId };
      if (user === undefined) return { ...outline, name: userId, kind: "external" };
      const email = emailOfUser(user);
      return {
        ...outline,
        name: nameOfUser(user),
        kind: kindOfUser(user, teamId, home),
        ...(email === "" ? {} : { email }),
      };
    },
    /** Throws CannotTell. */
    members: async (groupId: string): Promise<readonly string[]> => [
      ...(await groups.get(groupId, cacheMs)),
    ],
    /** Clears the cache of this person, or of everyone and every group. */
    forget(userId?: string): void {
      users.forget(userId);
      if (userId === undefined) groups.forget();
    },
  };
}

class Unanswered extends CannotTell {
  readonly isLimited: boolean;

  constructor(answer: WebAnswer, what: string) {
    const isScope = !answer.ok && answer.kind === "refused" && answer.error === "missing_scope";
    const hint = isScope
      ? "The app lacks a scope in Slack: reinstall it from manifest.yml."
      : "Report to the team that runs Gatehouse: check the groups in gatehouse.yml and the app in Slack.";
    super(whyUnanswered(answer, what), !answer.ok && answer.kind === "refused" ? hint : undefined);
    this.isLimited = !answer.ok && answer.kind === "limited";
  }
}

function whyUnanswered(answer: WebAnswer, what: string): string {
  if (answer.ok) return `Slack's answer about ${what} is invalid`;
  if (answer.kind === "limited") return "Slack limits calls";
  if (answer.kind !== "refused") return "Slack isn't answering";
  return `Slack refused information about ${what} (${answer.error})`;
}

const maxRemembered = 10_000;

/**
 * Caches answers, and shares concurrent calls. Failures are never cached; when Slack limits, what it said at most `limitedMs`
 * ago still counts.
 */
function createLookups<T>(
  { now, limitedMs }: { now: () => number; limitedMs: number },
  ask: (name: string) => Promise<T>,
) {
  const known = new Map<string, { at: number; is: T }>();
  const asking = new Map<string, { at: number; answer: Promise<T> }>();

  const recent = <A extends { at: number }>(one: A | undefined, atMostMs: number) =>
    one !== undefined && now() - one.at <= atMostMs ? one : undefined;

  function remember(name: string, answer: { at: number; is: T }): void {
    const oldest = known.size >= maxRemembered ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(name, answer);
  }

  return {
    /** An answer requested at most `atMostMs` ago, else a new one. */
    async get(name: string, atMostMs: number): Promise<T> {
      const found = recent(known.get(name), atMostMs);
      if (found) return found.is;
      let asked = recent(asking.get(name), atMostMs);
      if (!asked) asking.set(name, (asked = { at: now(), answer: ask(name) }));
      try {
        const is = await asked.answer;
        if (asking.get(name) === asked) remember(name, { at: asked.at, is });
        return is;
      } catch (error) {
        const last = recent(known.get(name), limitedMs);
        if (last && error instanceof Unanswered && error.isLimited) return last.is;
        throw error;
      } finally {
        if (asking.get(name) === asked) asking.delete(name);
      }
    },
    /** Everything without a name; answers in flight are not cached either. */
    forget(name?: string): void {
      for (const all of [known, asking]) {
        if (name === undefined) all.clear();
        else all.delete(name);
      }
    },
  };
}

interface Home {
  teamId: string;
  enterpriseId?: string | undefined;
}

/**
 * The kind of person by Slack's user object (https://docs.slack.dev/reference/objects/user-object). Only who passes every
 * line is a member. `saidTeamId`, the team of the delivery, must not contradict it. `is_app_user` is no sign of a bot: it
 * says that a human authorized the app.
 */
export function kindOfUser(user: unknown, saidTeamId: string, home: Home): Person["kind"] {
  const is = (name: string) => at(user, name) === true;
  if (is("deleted") || is("is_forgotten")) return "deactivated";
  if (textAt(user, "id") === "USLACKBOT") return "bot";
  if (["is_bot", "is_workflow_bot", "is_connector_bot"].some(is)) return "bot";
  if (textAt(user, "profile", "bot_id") !== "" || textAt(user, "profile", "api_app_id") !== "")
    return "bot";
  if (is("is_stranger") || is("is_external") || !isOfHome(user, saidTeamId, home))
    return "external";
  // Invited but never signed in: no one to hold responsible yet.
  if (is("is_restricted") || is("is_ultra_restricted") || is("is_invited_user")) return "guest";
  return "member";
}

function isOfHome(user: unknown, saidTeamId: string, home: Home): boolean {
  const teamId = textAt(user, "team_id") || saidTeamId;
  const sameEnterprise =
    home.enterpriseId !== undefined &&
    textAt(user, "enterprise_user", "enterprise_id") === home.enterpriseId;
  // On Enterprise Grid people have a team of their own and belong to several.
  const belongs =
    teamId === home.teamId ||
    (sameEnterprise && listAt(user, "enterprise_user", "teams").includes(home.teamId));
  const agrees = saidTeamId === "" || saidTeamId === home.teamId || sameEnterprise;
  return belongs && agrees;
}

/** For display only. */
function nameOfUser(user: unknown): string {
  return (
    textAt(user, "profile", "display_name") ||
    textAt(user, "profile", "real_name") ||
    textAt(user, "real_name") ||
    textAt(user, "name") ||
    textAt(user, "id")
  );
}

/** As one mailbox receives it: case and `+tag` don't matter. */
function emailOfUser(user: unknown): string {
  return textAt(user, "profile", "email")
    .trim()
    .toLowerCase()
    .replace(/\+[^@]*@/, "@");
}
