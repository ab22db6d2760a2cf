import type { Policy } from "../../config/policy-file.ts";
import { ConfigError } from "../../config/config.ts";
import { UserError } from "../../errors.ts";
import { everyoneNamed } from "../../policy/access.ts";
import type { Person } from "../../registry/invocation.ts";
import { at, textAt, textsAt, listAt, type Web, type WebAnswer, type WebData } from "../web.ts";
import type { SharedAnswer } from "./shared-answer.ts";
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../log/log.ts";
import { firstFew, type Message, notice, md, name as quoted } from "../../messages/message.ts";

/** The person can't be verified right now, so the answer is no. */
export class CannotTell extends UserError {
  constructor(why: string, hint = "Try again in a minute.") {
    super(`Can't verify who you are right now: ${why}. Nothing was done.`, hint);
  }
}

export type People = ReturnType<typeof createPeople>;

interface PeopleOptions {
  web: Web;
  /** Throws CannotTell while Slack hasn't said it. */
  home(): Home;
  /** The user groups that policy names, which may change. */
  groupIds(): readonly string[];
  /** At most 60 s. */
  cacheMs?: number;
  now?: () => number;
  /** What other processes were told of the user groups; without it this process asks for itself. */
  shared?: SharedAnswer;
}

/** Every user group that the policy names. */
export function groupsNamedIn(policy: Policy): string[] {
  return everyoneNamed(policy).filter((id) => id.startsWith("S"));
}

const longestCacheMs = 60_000;
/** Fifty votes in a second must not be fifty calls: Slack allows 20 a minute about user groups, of all processes together. */
const freshMs = 2_000;

export function createPeople(options: PeopleOptions) {
  const { web, now = Date.now } = options;
  const cacheMs = Math.min(options.cacheMs ?? longestCacheMs, longestCacheMs);

  const lookups = { now, limitedMs: cacheMs };
  const users = createLookups<unknown>(lookups, async (userId) => {
    const answer = await web.call("users.info", { user: userId });
    if (answer.ok && at(answer.data, "user", "id") === userId)
      return { is: at(answer.data, "user") };
    // No such user visible: someone of another workspace.
    if (!answer.ok && answer.kind === "refused" && /^user_not_(found|visible)$/.test(answer.error))
      return { is: undefined };
    throw new Unanswered(answer, "you");
  });

  /** All groups in one call, by the IDs of those whose members count. */
  const groups = createLookups<Groups>(lookups, async (ids, atMostMs) => {
    const { teamId, enterpriseId } = options.home();
    const args = enterpriseId === undefined ? {} : { team_id: teamId };
    const ask = () => listGroups(web, { ...args, include_users: true }, ids.split(","));
    const id = hash("sha256", ids).slice(0, 16);
    const { answer, ageMs } = options.shared
      ? await options.shared.get({ id, atMostMs, limitedMs: cacheMs }, ask)
      : { answer: await ask(), ageMs: 0 };
    if (!answer.ok) throw new Unanswered(answer, "the user groups");
    return { is: groupsIn(answer.data), ageMs };
  });

  const groupsNow = (atMostMs: number) =>
    groups.get([...new Set(options.groupIds())].toSorted().join(","), atMostMs);

  /** Throws CannotTell for a group that is disabled, unknown, or listed without its members. */
  function membersIn(all: Groups, groupId: string): readonly string[] {
    const group = all.get(groupId);
    if (group === undefined)
      throw new CannotTell(`Slack lists no active user group ${groupId}`, groupsHint);
    if (group.members) return group.members;
    throw new CannotTell(`Slack doesn't say who is in the user group ${groupId}`, groupsHint);
  }

  return {
    /** At most `cacheMs` old, `fresh` (for votes) two seconds. `teamId` is from the delivery. Throws CannotTell. */
    async person(
      userId: string,
      teamId: string,
      { fresh = false }: { fresh?: boolean } = {},
    ): Promise<Person> {
      const groupIds = options.groupIds();
      const atMostMs = fresh ? Math.min(freshMs, cacheMs) : cacheMs;
      if (!/^[UW][A-Z0-9]{1,30}$/.test(userId))
        throw new CannotTell("Slack named no one", "Try again in Slack.");
      const [user, known] = await Promise.all([
        users.get(userId, atMostMs),
        groupIds.length === 0 ? undefined : groupsNow(atMostMs),
      ]);
      const isIn = (groupId: string) => known && membersIn(known, groupId).includes(userId);
      const home = options.home();
      const outline = {
        id: userId,
        // On Enterprise Grid a delivery names a person's first workspace, which may not be ours
        teamId: isOfHome(user, teamId, home) ? home.teamId : teamId || textAt(user, "team_id"),
        groups: groupIds.map((groupId) => (isIn(groupId) ? groupId : "")).filter(Boolean),
      };
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
    members: async (groupId: string): Promise<readonly string[]> =>
      membersIn(await groupsNow(cacheMs), groupId),
    /** What every group is called, for messages only. Throws CannotTell. */
    groupNames: async (atMostMs: number): Promise<ReadonlyMap<string, string>> =>
      new Map([...(await groupsNow(atMostMs))].map(([id, { called }]) => [id, called])),
    /** Clears the cache of this person, or of everyone and every group. */
    forget(userId?: string): void {
      users.forget(userId);
      if (userId === undefined) groups.forget();
    },
  };
}

const groupsHint =
  "Report to the team that runs Gatehouse: check the groups in gatehouse.yml and the app in Slack.";

/** An active user group; its members only where they are asked for and Slack says them. */
interface Group {
  called: string;
  members?: readonly string[];
}
type Groups = ReadonlyMap<string, Group>;

/**
 * Slack's answer to `usergroups.list`, cut down to the names of active groups and the members of those that count
 * (https://docs.slack.dev/reference/methods/usergroups.list).
 */
async function listGroups(
  web: Web,
  args: WebData,
  counting: readonly string[],
): Promise<WebAnswer> {
  const answer = await web.call("usergroups.list", args);
  if (!answer.ok) return answer;
  const all = listAt(answer.data, "usergroups").filter((group) => !at(group, "date_delete"));
  const groups = all.map((group) => {
    const id = textAt(group, "id");
    const users = counting.includes(id) && at(group, "users");
    const members = Array.isArray(users) ? { members: textsAt(group, "users") } : {};
    return { id, called: `@${textAt(group, "handle") || textAt(group, "name")}`, ...members };
  });
  return { ok: true, data: { groups } };
}

const groupsIn = (data: WebData): Groups =>
  new Map(
    listAt(data, "groups").map((group): [string, Group] => {
      const called = textAt(group, "called");
      const members = Array.isArray(at(group, "members"))
        ? { members: textsAt(group, "members") }
        : {};
      return [textAt(group, "id"), { called, ...members }];
    }),
  );

class Unanswered extends CannotTell {
  readonly isLimited: boolean;

  constructor(answer: WebAnswer, what: string) {
    const isScope = !answer.ok && answer.kind === "refused" && answer.error === "missing_scope";
    const hint = isScope
      ? "The app lacks a scope in Slack: reinstall it from manifest.yml."
      : groupsHint;
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
  /** `ageMs`: how old the answer is already, where it isn't new. */
  ask: (name: string, atMostMs: number) => Promise<{ is: T; ageMs?: number }>,
) {
  const known = new Map<string, { at: number; is: T }>();
  const asking = new Map<
    string,
    { at: number; atMostMs: number; answer: ReturnType<typeof ask> }
  >();

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
      const inFlight = recent(asking.get(name), atMostMs);
      // An answer that may be older is none for whoever needs a newer one
      let asked = inFlight && inFlight.atMostMs <= atMostMs ? inFlight : undefined;
      if (!asked) asking.set(name, (asked = { at: now(), atMostMs, answer: ask(name, atMostMs) }));
      try {
        const { is, ageMs = 0 } = await asked.answer;
        if (asking.get(name) === asked) remember(name, { at: asked.at - ageMs, is });
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

type Home = Pick<BotIdentity, "teamId" | "enterpriseId">;

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

/**
 * Whether users.info says that the person belongs to our workspace. On Enterprise Grid people have a workspace of their own
 * and belong to several (`enterprise_user.teams`), and any of them may be the one that a delivery names.
 */
function isOfHome(user: unknown, saidTeamId: string, home: Home): boolean {
  const enterpriseId = textAt(user, "enterprise_user", "enterprise_id");
  const isSameEnterprise =
    enterpriseId !== "" && enterpriseId === (home.enterpriseId ?? enterpriseId);
  const isOnGrid =
    isSameEnterprise && listAt(user, "enterprise_user", "teams").includes(home.teamId);
  const teamId = textAt(user, "team_id") || saidTeamId;
  if (saidTeamId === "" || saidTeamId === home.teamId) return teamId === home.teamId || isOnGrid;
  return isOnGrid;
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

/** The bot's own identity, from `auth.test`: every delivery is checked against it. */
export interface BotIdentity {
  botId: string;
  botUserId: string;
  teamId: string;
  /** On Enterprise Grid only. */
  enterpriseId?: string;
  /** Where known: from `bots.info` or an app-level token (`xapp-1-A…-`). */
  appId?: string;
}

export async function readIdentity(
  web: Web,
  options: { appToken?: string | undefined } = {},
): Promise<BotIdentity | { problem: string; retry: boolean }> {
  const answer = await web.call("auth.test");
  if (!answer.ok) {
    if (answer.kind === "refused")
      return { problem: `Slack rejected the bot token (${answer.error})`, retry: false };
    const isLimited = answer.kind === "limited";
    const problem = isLimited ? "Slack limits calls" : `Slack can't be reached: ${answer.reason}`;
    return { problem, retry: true };
  }
  const [botId, botUserId] = [textAt(answer.data, "bot_id"), textAt(answer.data, "user_id")];
  const teamId = textAt(answer.data, "team_id");
  const enterpriseId = textAt(answer.data, "enterprise_id");
  if (botUserId === "" || teamId === "")
    return { problem: "auth.test named no user or no team", retry: false };
  if (botId === "")
    return { problem: "this token is not a bot's (auth.test names no bot_id)", retry: false };
  const appId =
    /^xapp-\d+-(A[A-Z0-9]+)-/.exec(options.appToken ?? "")?.[1] ?? (await appOf(botId, web));
  return {
    botId,
    botUserId,
    teamId,
    ...(enterpriseId === "" ? {} : { enterpriseId }),
    ...(appId === undefined ? {} : { appId }),
  };
}

/** Over HTTP no token names the app. Where Slack doesn't either, only the signing secret keeps other apps out. */
async function appOf(botId: string, web: Web): Promise<string | undefined> {
  const answer = await web.call("bots.info", { bot: botId });
  return (answer.ok && textAt(answer.data, "bot", "app_id")) || undefined;
}

const firstWaitMs = 250;
const longestWaitMs = 5_000;

/** Learns in the background, for as long as it takes, who the bot is in Slack. */
export function learnIdentity(web: Web, options: { appToken?: string | undefined }) {
  const closing = new AbortController();
  let known: BotIdentity | undefined;
  let why = "Slack hasn't answered yet";

  async function learn(): Promise<BotIdentity> {
    for (let tries = 0; ; tries += 1) {
      const answer = await readIdentity(web, options);
      if (!("problem" in answer)) return (known = answer);
      if (!answer.retry)
        throw new ConfigError([
          `SLACK_BOT_TOKEN: ${answer.problem}; check SLACK_BOT_TOKEN and SLACK_API_URL`,
        ]);
      why = answer.problem;
      const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** tries);
      await sleep(waitMs, undefined, { signal: closing.signal });
    }
  }

  const learned = learn();
  learned.catch(() => undefined); // whoever needs it awaits it
  return {
    /** Throws CannotTell until Slack has said it. */
    known(): BotIdentity {
      if (known === undefined) throw new CannotTell(why);
      return known;
    },
    /** Rejects with a ConfigError when Slack refuses the token: that needs a person. */
    learned,
    close: async () => closing.abort(),
  };
}

/**
 * Why a delivery isn't for this bot: another app's, or of another workspace. Undefined when it is. For an event in a
 * shared channel `team_id` may be the other side's; `authorizations` names the installation.
 * https://docs.slack.dev/apis/events-api/#authorizations
 */
export function foreignness(body: unknown, identity: BotIdentity): "app" | "team" | undefined {
  const appId = textAt(body, "api_app_id");
  if (identity.appId !== undefined && appId !== "" && appId !== identity.appId) return "app";
  const grants = listAt(body, "authorizations");
  const named = (field: string, ...ofBody: readonly (readonly string[])[]) =>
    grants.length > 0
      ? grants.map((grant) => textAt(grant, field))
      : [[field], ...ofBody].map((path) => textAt(body, ...path));
  const teams = named("team_id", ["team", "id"], ["view", "app_installed_team_id"]);
  if (teams.includes(identity.teamId)) return undefined;
  const enterprises = named("enterprise_id", ["enterprise", "id"], ["team", "enterprise_id"]);
  return identity.enterpriseId && enterprises.includes(identity.enterpriseId) ? undefined : "team";
}

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
  /** Without it `web` is asked. */
  groupNames?: People["groupNames"];
  /** Read at each use: the policy may change. */
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
    return { is: undefined };
  });
  const groupsAgain = () => lists.get("groups", againAfterMs);

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
  by: Pick<Parameters<typeof createNames>[0], "web" | "person" | "log" | "groupNames">,
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
    firstFew(
      ids.map((id) => nameOf(id) ?? id),
      maxNamed,
    );
  const moves = [
    came.length > 0 && `${named(came)} joined`,
    left.length > 0 && `${named(left)} left`,
  ].filter((one) => one !== false);
  const group = nameOf(groupId);
  const called = group === undefined ? quoted(groupId) : md`${group} (${quoted(groupId)})`;
  return notice(
    md`👥 The user group ${called}, which the policy names, changed: ${moves.join("; ")}. It counts at once.`,
  );
}
