import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { metBy } from "../../config/seats.ts";
import { placesSeen, whoMay } from "../../policy/access.ts";
import { channelsNamed, everyoneNamed } from "../../policy/teams.ts";
import { kindOfUser } from "../../slack/people/people.ts";
import { at, listAt, textAt, textsAt } from "../../slack/web.ts";
import { type Finding, ill, note, well } from "./finding.ts";
import { askSlack, type SlackAnswer, wordOf } from "./slack.ts";

/** Most people that are looked at one by one: Slack allows some fifty such calls a minute. */
const mostPeople = 40;

export type PolicyFacts = Awaited<ReturnType<typeof lookAtPolicy>>;

/** Each ID of the policy is looked up in Slack, with reads alone. */
export async function lookAtPolicy({
  slack,
  policy,
  policyFile,
}: {
  slack: Pick<Config["slack"], "apiUrl" | "botToken">;
  policy: Policy;
  policyFile?: Pick<Config["policyFile"], "missingAt">;
}) {
  const ask = (method: string, args: Readonly<Record<string, string>> = {}) =>
    askSlack({ apiUrl: slack.apiUrl, token: slack.botToken }, method, args);
  const us = await ask("auth.test");
  const isAsked = wordOf(us) === "ok";
  const home = { teamId: textIn(us, "team_id") };
  const lookUp = async <T>(ids: readonly string[], one: (id: string) => Promise<T>) =>
    new Map(
      await Promise.all((isAsked ? ids : []).map(async (id) => [id, await one(id)] as const)),
    );
  const entries = everyoneNamed(policy);
  const groups = await lookUp(
    entries.filter((id) => id.startsWith("S")),
    async (id) => membersIn(await ask("usergroups.users.list", { usergroup: id })),
  );
  const approvers = votersNamed(policy).flatMap((id) => groups.get(id) ?? []);
  const people = [...new Set([...entries, ...approvers])].filter((id) =>
    /^[UW][A-Z0-9]+$/.test(id),
  );
  const alarmed = withoutChannel(policy).length === 0 ? undefined : policy.audit?.channel;
  const audit = await lookUp(alarmed === undefined ? [] : [alarmed], async (channel) => {
    const answer = await ask("conversations.members", { channel, limit: "999" });
    return "data" in answer ? textsAt(answer.data, "members") : [];
  });
  return {
    policy,
    /** Where the file should be; undefined where it is. */
    missingAt: policyFile?.missingAt,
    /** Whether Slack takes the bot token; without it the rest is empty. */
    isAsked,
    /** By group ID: its members, or Slack's error; undefined for silence. */
    groups,
    /** By user ID: the kind of person, Slack's error, or undefined for silence. */
    people: await lookUp(people.slice(0, mostPeople), async (id): Promise<string | undefined> => {
      const answer = await ask("users.info", { user: id });
      if (wordOf(answer) !== "ok" || !("data" in answer)) return wordOf(answer);
      return kindOfUser(at(answer.data, "user"), "", home);
    }),
    /** By channel ID: `ok`, Slack's error, or undefined for silence. */
    channels: await lookUp(channelsNamed(policy), async (channel) =>
      wordOf(await ask("conversations.history", { channel, limit: "1" })),
    ),
    /** By channel ID: whether another company shares it, as far as Slack says. */
    shared: await lookUp(channelsNamed(policy), async (channel) => {
      const answer = await ask("conversations.info", { channel });
      return "data" in answer && at(answer.data, "channel", "is_ext_shared") === true;
    }),
    /** Who reads the audit channel, besides Gatehouse, where alarms of teams go there. */
    auditReaders: [...audit.values()].flat().filter((id) => id !== textIn(us, "user_id")),
  };
}

const textIn = (answer: SlackAnswer, name: string) =>
  "data" in answer ? textAt(answer.data, name) : "";

/** Teams whose alarms have no channel of their own. */
const withoutChannel = ({ teams }: Policy) =>
  Object.entries(teams)
    .filter(([, { channel }]) => channel === undefined)
    .map(([team]) => team);

function membersIn(answer: SlackAnswer): readonly string[] | string | undefined {
  const word = wordOf(answer);
  if (word !== "ok" || !("data" in answer)) return word;
  return listAt(answer.data, "users").length === 0 ? [] : textsAt(answer.data, "users");
}

export function judgePolicy(facts: PolicyFacts): readonly Finding[] {
  const { missingAt } = facts;
  if (missingAt !== undefined)
    return [
      ill(
        `${missingAt} is missing: everyone can view and no one can change anything`,
        "Copy gatehouse.example.yml there and fill it in, or name the file in GATEHOUSE_CONFIG. Beside processes that have a policy, one without its file doesn't start.",
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

/** Whether what the policy names is in Slack, and whether enough people could approve. */
export function judgeNames(facts: PolicyFacts): readonly Finding[] {
  if (!facts.isAsked) {
    const mend = "They are looked up in Slack, which must take the bot token first.";
    return [note("groups, people, and channels: not checked", mend)];
  }
  return [
    ...groupFindings(facts),
    ...peopleFindings(facts),
    ...channelFindings(facts),
    ...alarmFindings(facts),
    approverFinding(facts),
    ...seatFindings(facts),
  ];
}

const seeSlack = "Fix the Slack problems above first.";
const correctId = "Correct the ID in gatehouse.yml";
const unclear = (id: string, said: string | undefined) =>
  note(`${id}: Slack says ${said ?? "nothing"}`, seeSlack, id.split(" ").at(-1));

/** What is wrong, or one line for all of them. */
const wrongOr = (wrong: readonly Finding[], checked: number, allWell: string): readonly Finding[] =>
  wrong.length > 0 || checked === 0 ? wrong : [well(allWell)];

function groupFindings({ groups }: PolicyFacts): readonly Finding[] {
  const wrong = [...groups].flatMap(([id, members]) => {
    if (members === "no_such_subteam")
      return ill(
        `group ${id}: isn't in this workspace, or is disabled`,
        `${correctId}: a group that Slack doesn't know lets nobody in.`,
        id,
      );
    if (members === undefined || typeof members === "string")
      return unclear(`group ${id}`, members);
    if (members.length > 0) return [];
    return ill(`group ${id}: has no members`, "Add people to it in Slack.", id);
  });
  return wrongOr(wrong, groups.size, `groups: all ${groups.size} exist and have members`);
}

const kinds: Readonly<Record<string, string>> = {
  user_not_found: "isn't in this workspace",
  user_not_visible: "isn't in this workspace",
  deactivated: "has been deactivated",
  bot: "is a bot",
  guest: "is a guest, who may only view",
  external: "is of another workspace",
};

function peopleFindings({ policy, people }: PolicyFacts): readonly Finding[] {
  const named = new Set(everyoneNamed(policy));
  const checked = [...people].filter(([id]) => named.has(id));
  const wrong = checked
    .filter(([, kind]) => kind !== "member")
    .map(([id, kind]) => {
      const words = kinds[kind ?? ""];
      if (words === undefined) return unclear(id, kind);
      return ill(`${id} ${words}`, "Correct or remove the ID in gatehouse.yml.", id);
    });
  return wrongOr(wrong, checked.length, `people: all ${checked.length} named are members`);
}

function channelFindings({ policy, channels, shared }: PolicyFacts): readonly Finding[] {
  const wrong = [...channels].flatMap(([id, word]) => {
    if (word === "ok") return [];
    if (word === "not_in_channel")
      return ill(`channel ${id}: Gatehouse isn't in it`, "Type /invite @gatehouse there.", id);
    if (word === "channel_not_found")
      return ill(
        `channel ${id}: isn't there, or is private and Gatehouse isn't in it`,
        `${correctId}, or type /invite @gatehouse there.`,
        id,
      );
    return unclear(`channel ${id}`, word);
  });
  const foreign = [...shared]
    .filter(([id, isShared]) => isShared && !policy.sharedChannels.includes(id))
    .map(([id]) =>
      ill(
        `channel ${id}: another company shares it, so Gatehouse posts nothing there`,
        "Name another channel, or this one under sharedChannels in gatehouse.yml as well.",
        id,
      ),
    );
  const all = `channels: Gatehouse is in all ${channels.size}`;
  return [...wrongOr(wrong, channels.size, all), ...foreign];
}

const fewOf = (ids: readonly string[]) =>
  `${ids.slice(0, 5).join(", ")}${ids.length > 5 ? ", …" : ""}`;

/** Alarms of teams that go where people read them who don't see what the team has, or nowhere. */
function alarmFindings({ policy, groups, auditReaders }: PolicyFacts): readonly Finding[] {
  const ours = "T";
  return withoutChannel(policy).flatMap((team) => {
    const start = `team ${team}: has no channel, so its alarms`;
    const mend = `Add \`channel\` to teams.${team} in gatehouse.yml.`;
    const about = ["teams", team];
    if (policy.audit === undefined) return note(`${start} are told nowhere`, mend, about);
    const others = auditReaders.filter((id) => {
      const theirs = [...groups].filter(([, all]) => Array.isArray(all) && all.includes(id));
      const ids = theirs.map(([group]) => group);
      const person = { id, teamId: ours, name: id, kind: "member", groups: ids } as const;
      return !placesSeen(policy, person, ours).includes(`teams.${team}`);
    });
    if (others.length === 0) return [];
    const what = `${start} go to the audit channel, which ${others.length} read who can't see what it has: ${fewOf(others)}`;
    return note(what, mend, about);
  });
}

/** The most that a rule without seats asks for. */
const mostRequired = (rules: Policy["approvals"]) =>
  Math.max(1, ...rules.filter(({ votes }) => votes === undefined).map((rule) => rule.required));

/** Whether the most approvals that a rule asks for can come together without the requester. */
function approverFinding(facts: PolicyFacts): Finding {
  const { everyone, users, groups } = whoMay(facts.policy, "approve");
  if (everyone) return well("approvers: every member but the requester");
  if (!groups.every((id) => isTold(id, facts)))
    return note("approvers: can't be counted", seeSlack);
  const able = ableAmong([...users, ...groups], facts);
  const most = mostRequired(facts.policy.approvals);
  const what = `approvers: ${able.length} (${fewOf(able)})`;
  if (able.length < most)
    return ill(
      `${able.length === 0 ? "approvers: nobody" : what}, and a rule needs ${most}`,
      "Add people or groups to access.approve, or destructive commands can't run.",
    );
  return able.length === most
    ? note(
        what,
        "Nobody may approve a request of their own: with one away, some requests can't be approved.",
      )
    : well(what);
}

/** Everyone whose approval some rule or team asks for, beside groups whose members Slack names. */
const votersNamed = ({ access, teams, approvals }: Policy): readonly string[] => [
  ...access.approve,
  ...Object.values(teams).flatMap(({ approve }) => approve),
  ...approvals.flatMap(({ votes = [] }) => votes.flatMap(({ from }) => from)),
];

/** Whether Slack said who is in the group. */
const isTold = (group: string, { groups }: PolicyFacts) =>
  Array.isArray(groups.get(group)) || groups.get(group) === "no_such_subteam";

/** Who of these, with the members of groups, can vote; who wasn't looked at counts as a member. */
function ableAmong(entries: readonly string[], { people, groups }: PolicyFacts): readonly string[] {
  const all = entries.flatMap((id) => (id.startsWith("S") ? (groups.get(id) ?? []) : id));
  return [...new Set(all)].filter(
    (id) => /^[UW]/.test(id) && (people.has(id) ? people.get(id) === "member" : true),
  );
}

/** Seats that a rule or a team leaves to people who can't vote. Where everyone may, or Slack doesn't tell, nothing is said. */
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
    const seats = needs
      .filter(({ from }) =>
        from.every((id) => (id.startsWith("S") ? isTold(id, facts) : id !== "*")),
      )
      .map((need) => ({ ...need, able: ableAmong(need.from, facts) }));
    const able = [...new Set(seats.flatMap((seat) => seat.able))];
    const met = metBy(seats, able, (seat, id) => seat.able.includes(id));
    const wanted = seats.reduce((sum, { required }) => sum + required, 0);
    if (met.reduce((sum, one) => sum + one, 0) >= wanted) return [];
    const who =
      able.length === 0
        ? "nobody named there can vote"
        : `of those named only ${able.join(", ")} can vote`;
    return ill(
      `${place}: ${wanted} must approve, and ${who}`,
      "Name full members of this workspace, each for one seat, or what it asks of them can't run.",
      about,
    );
  });
}
