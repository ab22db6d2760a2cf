import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { whyClosed } from "../../slack/find-channel.ts";
import { policyWarnings } from "../../config/policy-warnings.ts";
import { couldApprove } from "../../config/seats.ts";
import { silentLog } from "../../log/log.ts";
import { firstFew } from "../../messages/markdown.ts";
import { placesSeen, whoAre } from "../../core/permit/access.ts";
import { at, listAt, textAt, textsAt } from "../../slack/json.ts";
import { kindOfUser } from "../../slack/people/kind-of-user.ts";
import { createWeb } from "../../slack/web.ts";
import { type Finding, ill, note, well } from "../../messages/finding.ts";
import { wordOf } from "./slack.ts";
import { channelsNamed, everyoneNamed } from "../../config/named-in-policy.ts";
import { mentionedIn } from "../../config/policy-section.ts";

/** The most people that are looked up one by one. Slack allows about fifty such calls a minute. */
const mostPeople = 40;

export type PolicyFacts = Awaited<ReturnType<typeof lookAtPolicy>>;

/** Looks up each ID of the policy in Slack, using reads only. */
export async function lookAtPolicy({
  slack,
  policy,
}: {
  slack: Pick<Config["slack"], "apiUrl" | "botToken">;
  policy: Policy;
}) {
  const web = createWeb({ token: slack.botToken, apiUrl: slack.apiUrl, log: silentLog() });
  const ask = async (method: string, args: Readonly<Record<string, string>> = {}) => {
    const answer = await web.call(method, args);
    return { word: wordOf(answer), data: answer.ok ? answer.data : undefined };
  };
  const us = await ask("auth.test");
  const isAsked = us.word === "ok";
  const lookUp = async <T>(ids: readonly string[], lookUpId: (id: string) => Promise<T>) =>
    new Map(
      await Promise.all((isAsked ? ids : []).map(async (id) => [id, await lookUpId(id)] as const)),
    );
  const entries = everyoneLookedUp(policy);
  const named = entries.filter(isGroup);
  // One call covers all groups, because Slack allows 20 a minute about user groups.
  const list =
    named.length > 0 ? await ask("usergroups.list", { include_users: "true" }) : undefined;
  const listed = listAt(list?.data, "usergroups").filter((group) => !at(group, "date_delete"));
  const groups = await lookUp(named, async (id) => {
    if (list?.word !== "ok") return list?.word;
    const group = listed.find((candidate) => textAt(candidate, "id") === id);
    return group === undefined ? "no_such_subteam" : textsAt(group, "users");
  });
  const approvers = votersNamed(policy).flatMap((id) => groups.get(id) ?? []);
  const people = [...new Set([...entries, ...approvers])].filter((id) =>
    /^[UW][A-Z0-9]+$/.test(id),
  );
  const { channel: audit } = policy.audit ?? {};
  const alarmed = audit !== undefined && withoutChannel(policy).length > 0 ? [audit] : [];
  const readers = await lookUp(alarmed, async (channel) => {
    const { data } = await ask("conversations.members", { channel, limit: "999" });
    return textsAt(data, "members").filter((id) => id !== textAt(us.data, "user_id"));
  });
  return {
    policy,
    /** Whether Slack accepts the bot token. Otherwise the rest is empty. */
    isAsked,
    /**
     * The members of each group by its ID, or Slack's error. Undefined when Slack didn't answer.
     */
    groups,
    /** The kind of each person by user ID, or Slack's error. Undefined when Slack didn't answer. */
    people: await lookUp(people.slice(0, mostPeople), async (user): Promise<string | undefined> => {
      const { word, data } = await ask("users.info", { user });
      const enterpriseId = textAt(us.data, "enterprise_id");
      const home = { teamId: textAt(us.data, "team_id"), ...(enterpriseId && { enterpriseId }) };
      return word === "ok" ? kindOfUser(at(data, "user"), "", home) : word;
    }),
    /**
     * The state of each channel by its ID: `ok`, `shared` when nothing is posted because another
     * company shares it, or Slack's error. Undefined when Slack didn't answer.
     */
    channels: await lookUp(channelsNamed(policy), async (channel) => {
      const { word, data } = await ask("conversations.info", { channel });
      return word === "ok" ? (whyClosed(data, channel, policy.sharedChannels) ?? "ok") : word;
    }),
    /** The readers of the audit channel except Gatehouse, if alarms of teams go there. */
    auditReaders: [...readers.values()].flat(),
  };
}

/** Everyone with rights, and everyone whom messages mention. */
const everyoneLookedUp = (policy: Policy): readonly string[] => {
  const byServices = Object.values(policy.services).flatMap(({ notify }) => notify);
  return [...new Set([...everyoneNamed(policy), ...byServices, ...mentionedIn(policy)])];
};

const isGroup = (id: string) => id.startsWith("S");

/** The teams whose alarms have no channel of their own. */
const withoutChannel = ({ teams }: Policy) =>
  Object.entries(teams)
    .filter(([, { channel }]) => channel === undefined)
    .map(([team]) => team);

/** `missingAt` is where the file should be. Undefined when it exists. */
export function judgePolicy(facts: PolicyFacts, missingAt?: string): readonly Finding[] {
  if (missingAt !== undefined)
    return [
      ill(
        `${missingAt} is missing: everyone can view and no one can change anything`,
        "Copy gatehouse.example.yml there and fill it in, or set GATEHOUSE_CONFIG to its path. If other processes have a policy, one without the file doesn't start.",
      ),
    ];
  const { operate } = facts.policy.access;
  const operators =
    operate.length === 0
      ? ill(
          "access.operate names no one: nobody can change anything",
          "Add user groups or people to gatehouse.yml.",
        )
      : well(`access.operate: ${operate.join(", ")}`);
  return [operators, ...judgeNames(facts)];
}

/** Judges what the policy alone says, without Slack. */
export const judgeRules = (policy: Policy): readonly Finding[] =>
  policyWarnings(policy).map(({ path, text: problem, mend }) => note(problem, mend, path));

/**
 * Judges whether what the policy names exists in Slack, and whether enough people could approve.
 */
export function judgeNames(facts: PolicyFacts): readonly Finding[] {
  const { policy, isAsked, groups, people, channels } = facts;
  if (!isAsked) {
    const mend = "Gatehouse looks them up in Slack: fix the bot token first.";
    return [note("groups, people, and channels: not checked", mend)];
  }
  const entries = new Set(everyoneLookedUp(policy));
  const named = [...people].filter(([id]) => entries.has(id));
  const allGroups = `groups: all ${groups.size} exist and have members`;
  const allPeople = `people: all ${named.length} named are members`;
  const allChannels = `channels: Gatehouse is in all ${channels.size}`;
  return [
    ...idFindings("group ", [...groups], allGroups),
    ...idFindings("", named, allPeople),
    ...idFindings("channel ", [...channels], allChannels),
    ...alarmFindings(facts),
    approverFinding(facts),
    ...seatFindings(facts),
  ];
}

const seeSlack = "Fix the Slack problems above first.";
const correctId = "Correct the ID in gatehouse.yml";
const correctPerson = "Correct or remove the ID in gatehouse.yml.";

/**
 * The meaning of Slack's answer about an ID, and what helps. Any other answer is a problem of
 * Slack, not of the policy.
 */
const meanings: Readonly<Record<string, readonly [what: string, mend: string]>> = {
  "group no_such_subteam": [
    ": isn't in this workspace, or is disabled",
    `${correctId}: a group that Slack doesn't know lets nobody in.`,
  ],
  "group empty": [": has no members", "Add people to it in Slack."],
  user_not_found: [" isn't in this workspace", correctPerson],
  user_not_visible: [" isn't in this workspace", correctPerson],
  deactivated: [" has been deactivated", correctPerson],
  bot: [" is a bot", correctPerson],
  guest: [" is a guest, who may only view", correctPerson],
  external: [" is of another workspace", correctPerson],
  "channel not_in_channel": [": Gatehouse isn't in it", "Type /invite @gatehouse there."],
  "channel channel_not_found": [
    ": isn't there, or is private and Gatehouse isn't in it",
    `${correctId}, or type /invite @gatehouse there.`,
  ],
  "channel shared": [
    ": another company shares it, so Gatehouse posts nothing there",
    "Name another channel, or this one under sharedChannels in gatehouse.yml as well.",
  ],
};

/** The problems, or one line when there are none. */
function idFindings(
  kind: "group " | "channel " | "",
  answers: readonly (readonly [id: string, said: string | readonly string[] | undefined])[],
  allWell: string,
): readonly Finding[] {
  const wrong = answers.flatMap(([id, answer]) => {
    if (answer === "ok" || answer === "member" || (typeof answer === "object" && answer.length > 0))
      return [];
    const word = typeof answer === "object" ? "empty" : answer;
    const meaning = meanings[`${kind}${word}`];
    if (!meaning) return note(`${kind}${id}: Slack says ${word ?? "nothing"}`, seeSlack, id);
    return ill(`${kind}${id}${meaning[0]}`, meaning[1], id);
  });
  return wrong.length > 0 || answers.length === 0 ? wrong : [well(allWell)];
}

/**
 * Reports alarms of teams that nobody gets, or that people read who may not see what the team has.
 */
function alarmFindings({ policy, groups, auditReaders }: PolicyFacts): readonly Finding[] {
  const ours = "T";
  return withoutChannel(policy).flatMap((team) => {
    const start = `team ${team}: has no channel, so its alarms`;
    const mend = `Add \`channel\` to teams.${team} in gatehouse.yml.`;
    const about = ["teams", team];
    if (policy.audit === undefined) return note(`${start} are told nowhere`, mend, about);
    const others = auditReaders.filter((id) => {
      const memberships = [...groups].filter(([, all]) => Array.isArray(all) && all.includes(id));
      const ids = memberships.map(([group]) => group);
      const person = { id, teamId: ours, name: id, kind: "member", groups: ids } as const;
      return !placesSeen(policy, person, ours).includes(`teams.${team}`);
    });
    if (others.length === 0) return [];
    const problem = `${start} go to the audit channel, which ${others.length} read who can't see what it has: ${firstFew(others, 5)}`;
    return note(problem, mend, about);
  });
}

/** The most approvals that a rule without seats requires. */
const mostRequired = (rules: Policy["approvals"]) =>
  Math.max(1, ...rules.filter(({ votes }) => votes === undefined).map((rule) => rule.required));

/**
 * Judges whether the most approvals that a rule requires can come together without the requester.
 */
function approverFinding(facts: PolicyFacts): Finding {
  const { everyone, users, groups } = whoAre(facts.policy.access.approve);
  if (everyone) return well("approvers: every member but the requester");
  if (!groups.every((id) => isTold(id, facts)))
    return note("approvers: can't be counted", seeSlack);
  const able = ableAmong([...users, ...groups], facts);
  const most = mostRequired(facts.policy.approvals);
  const summary = `approvers: ${able.length} (${firstFew(able, 5)})`;
  if (able.length < most)
    return ill(
      `${able.length === 0 ? "approvers: nobody" : summary}, and a rule needs ${most}`,
      "Add people or groups to access.approve, or destructive commands can't run.",
    );
  if (able.length > most) return well(summary);
  const mend =
    "No one can approve their own request: with one away, some requests can't be approved.";
  return note(summary, mend);
}

/** Everyone whose approval some rule or team requires. */
const votersNamed = ({ access, teams, approvals }: Policy): readonly string[] => [
  ...access.approve,
  ...Object.values(teams).flatMap(({ approve }) => approve),
  ...approvals.flatMap(({ votes = [] }) => votes.flatMap(({ from }) => from)),
];

/** Whether Slack said who is in the group. */
const isTold = (group: string, { groups }: PolicyFacts) =>
  Array.isArray(groups.get(group)) || groups.get(group) === "no_such_subteam";

/**
 * The people among these entries, including members of groups, who can vote. A person who wasn't
 * looked up counts as a member.
 */
function ableAmong(entries: readonly string[], { people, groups }: PolicyFacts): readonly string[] {
  const all = entries.flatMap((id) => (isGroup(id) ? (groups.get(id) ?? []) : id));
  return [...new Set(all)].filter(
    (id) => /^[UW]/.test(id) && (people.has(id) ? people.get(id) === "member" : true),
  );
}

/**
 * Reports seats of a rule or a team for which too few named people can vote. Nothing is reported
 * when everyone may vote, or Slack didn't answer.
 */
function seatFindings(facts: PolicyFacts): readonly Finding[] {
  const { approvals, teams } = facts.policy;
  const most = mostRequired(approvals.filter(({ targets }) => targets === undefined));
  const places = [
    ...approvals.map(({ votes = [] }, index) => ({
      place: `approvals[${index + 1}].votes`,
      about: ["approvals", index, "votes"],
      needs: votes,
    })),
    ...Object.entries(teams).map(([team, { approve }]) => ({
      place: `teams.${team}.approve`,
      about: ["teams", team, "approve"],
      needs: approve.length === 0 ? [] : [{ from: approve, required: most }],
    })),
  ];
  return places.flatMap(({ place, about, needs }) => {
    const isCounted = (id: string) => (isGroup(id) ? isTold(id, facts) : id !== "*");
    const {
      able,
      required: wanted,
      isEnough,
    } = couldApprove(needs, ({ from }) =>
      from.every(isCounted) ? ableAmong(from, facts) : undefined,
    );
    if (isEnough) return [];
    const who =
      able.length === 0
        ? "nobody named there can vote"
        : `of those named only ${able.join(", ")} can vote`;
    return ill(
      `${place}: ${wanted} must approve, and ${who}`,
      "Name full members of this workspace, one for each seat, or what needs their approval can't run.",
      about,
    );
  });
}
