import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { metBy } from "../../config/seats.ts";
import { placesSeen, whoMay } from "../../policy/access.ts";
import { channelsNamed, everyoneNamed } from "../../policy/teams.ts";
import { kindOfUser } from "../../slack/people/people.ts";
import { at, listAt, textAt, textsAt } from "../../slack/web.ts";
import { type Finding, ill, note, well } from "./finding.ts";
import { askSlack, type SlackAnswer, wordOf } from "./slack.ts";

export interface PolicyFacts {
  policy: Policy;
  /** Where the file should be; undefined where it is. */
  missingAt: string | undefined;
  /** Whether Slack takes the bot token; without it the rest is empty. */
  isAsked: boolean;
  /** By user ID: the kind of person, Slack's error, or undefined for silence. */
  people: ReadonlyMap<string, string | undefined>;
  /** By group ID: its members, or Slack's error; undefined for silence. */
  groups: ReadonlyMap<string, readonly string[] | string | undefined>;
  /** By channel ID: `ok`, Slack's error, or undefined for silence. */
  channels: ReadonlyMap<string, string | undefined>;
  /** By channel ID: whether another company shares it; undefined where Slack doesn't say. */
  shared: ReadonlyMap<string, boolean | undefined>;
  /** Who reads the audit channel, besides Gatehouse, where alarms of teams go there. */
  auditReaders: readonly string[] | undefined;
}

/** Most people that are looked at one by one: Slack allows some fifty such calls a minute. */
const mostPeople = 40;

/** Each ID of the policy is looked up in Slack, with reads alone. */
export async function lookAtPolicy({
  slack,
  policy,
  policyFile,
}: {
  slack: Pick<Config["slack"], "apiUrl" | "botToken">;
  policy: Policy;
  policyFile?: Pick<Config["policyFile"], "missingAt">;
}): Promise<PolicyFacts> {
  const missingAt = policyFile?.missingAt;
  const ask = (method: string, args: Readonly<Record<string, string>> = {}) =>
    askSlack({ apiUrl: slack.apiUrl, token: slack.botToken }, method, args);
  const us = await ask("auth.test");
  if (wordOf(us) !== "ok") return { policy, missingAt, ...nothingAsked };
  const said = "data" in us ? us.data : undefined;
  const home = { teamId: textAt(said, "team_id") };
  const entries = everyoneNamed(policy);
  const read = async <T>(ids: readonly string[], one: (id: string) => Promise<T>) =>
    new Map(await Promise.all(ids.map(async (id) => [id, await one(id)] as const)));
  const groups = await read(
    entries.filter((id) => id.startsWith("S")),
    async (id) => membersIn(await ask("usergroups.users.list", { usergroup: id })),
  );
  const approvers = votersNamed(policy).flatMap((id) => groups.get(id) ?? []);
  const users = entries.filter((id) => /^[UW]/.test(id));
  const people = [...new Set([...users, ...approvers])].filter((id) => /^[UW][A-Z0-9]+$/.test(id));
  return {
    policy,
    missingAt,
    isAsked: true,
    groups,
    people: await read(people.slice(0, mostPeople), async (id) => {
      const answer = await ask("users.info", { user: id });
      const word = wordOf(answer);
      if (word !== "ok" || !("data" in answer)) return word;
      return kindOfUser(at(answer.data, "user"), "", home);
    }),
    channels: await read(channelsNamed(policy), async (channel) =>
      wordOf(await ask("conversations.history", { channel, limit: "1" })),
    ),
    shared: await read(channelsNamed(policy), async (channel) => {
      const answer = await ask("conversations.info", { channel });
      if (wordOf(answer) !== "ok" || !("data" in answer)) return undefined;
      return at(answer.data, "channel", "is_ext_shared") === true;
    }),
    auditReaders: await readersOf(policy, ask).then((ids) =>
      ids?.filter((id) => id !== textAt(said, "user_id")),
    ),
  };
}

const nothingAsked = {
  isAsked: false,
  people: new Map<string, never>(),
  groups: new Map<string, never>(),
  channels: new Map<string, never>(),
  shared: new Map<string, never>(),
  auditReaders: undefined,
};

/** Teams whose alarms have no channel of their own. */
const withoutChannel = ({ teams }: Policy) =>
  Object.entries(teams)
    .filter(([, { channel }]) => channel === undefined)
    .map(([team]) => team);

async function readersOf(
  policy: Policy,
  ask: (method: string, args: Readonly<Record<string, string>>) => Promise<SlackAnswer>,
): Promise<readonly string[] | undefined> {
  const { audit } = policy;
  if (audit === undefined || withoutChannel(policy).length === 0) return undefined;
  const answer = await ask("conversations.members", { channel: audit.channel, limit: "999" });
  return wordOf(answer) === "ok" && "data" in answer ? textsAt(answer.data, "members") : undefined;
}

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
    ...sharedFindings(facts),
    ...alarmFindings(facts),
    approverFinding(facts),
    ...seatFindings(facts),
  ];
}

const seeSlack = "Fix the Slack problems above first.";

function groupFindings({ groups }: PolicyFacts): readonly Finding[] {
  const found = [...groups].map(([id, members]) => {
    if (members === "no_such_subteam")
      return ill(
        `group ${id}: isn't in this workspace, or is disabled`,
        "Correct the ID in gatehouse.yml: a group that Slack doesn't know lets nobody in.",
        id,
      );
    if (members === undefined || typeof members === "string")
      return note(`group ${id}: Slack says ${members ?? "nothing"}`, seeSlack, id);
    if (members.length === 0)
      return ill(`group ${id}: has no members`, "Add people to it in Slack.", id);
    return undefined;
  });
  const wrong = found.filter((one) => one !== undefined);
  if (wrong.length > 0 || groups.size === 0) return wrong;
  return [well(`groups: all ${groups.size} exist and have members`)];
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
      return words === undefined
        ? note(`${id}: Slack says ${kind ?? "nothing"}`, seeSlack, id)
        : ill(`${id} ${words}`, "Correct or remove the ID in gatehouse.yml.", id);
    });
  if (wrong.length > 0 || checked.length === 0) return wrong;
  return [well(`people: all ${checked.length} named are members`)];
}

function channelFindings({ channels }: PolicyFacts): readonly Finding[] {
  const wrong = [...channels].flatMap(([id, word]) => {
    if (word === "ok") return [];
    if (word === "not_in_channel")
      return [ill(`channel ${id}: Gatehouse isn't in it`, "Type /invite @gatehouse there.", id)];
    if (word === "channel_not_found")
      return [
        ill(
          `channel ${id}: isn't there, or is private and Gatehouse isn't in it`,
          "Correct the ID in gatehouse.yml, or type /invite @gatehouse there.",
          id,
        ),
      ];
    return [note(`channel ${id}: Slack says ${word ?? "nothing"}`, seeSlack, id)];
  });
  if (wrong.length > 0 || channels.size === 0) return wrong;
  return [well(`channels: Gatehouse is in all ${channels.size}`)];
}

function sharedFindings({ policy, shared }: PolicyFacts): readonly Finding[] {
  return [...shared]
    .filter(([id, isShared]) => isShared === true && !policy.sharedChannels.includes(id))
    .map(([id]) =>
      ill(
        `channel ${id}: another company shares it, so Gatehouse posts nothing there`,
        "Name another channel, or this one under sharedChannels in gatehouse.yml as well.",
        id,
      ),
    );
}

/** Alarms of teams that go where people read them who don't see what the team has, or nowhere. */
function alarmFindings({ policy, groups, auditReaders }: PolicyFacts): readonly Finding[] {
  const { audit } = policy;
  const ours = "T";
  return withoutChannel(policy).flatMap((team) => {
    const start = `team ${team}: has no channel, so its alarms`;
    const mend = `Add \`channel\` to teams.${team} in gatehouse.yml.`;
    const about = ["teams", team];
    if (audit === undefined) return [note(`${start} are told nowhere`, mend, about)];
    const others = auditReaders?.filter((id) => {
      const theirs = [...groups].filter(([, all]) => Array.isArray(all) && all.includes(id));
      const ids = theirs.map(([group]) => group);
      const person = { id, teamId: ours, name: id, kind: "member", groups: ids } as const;
      return !placesSeen(policy, person, ours).includes(`teams.${team}`);
    });
    if (others === undefined || others.length === 0) return [];
    const named = `${others.slice(0, 5).join(", ")}${others.length > 5 ? ", …" : ""}`;
    const what = `${start} go to the audit channel, which ${others.length} read who can't see what it has: ${named}`;
    return [note(what, mend, about)];
  });
}

/** Whether the most approvals that a rule asks for can come together without the requester. */
function approverFinding({ policy, people, groups }: PolicyFacts): Finding {
  const { everyone, users, groups: ids } = whoMay(policy, "approve");
  if (everyone) return well("approvers: every member but the requester");
  if (ids.some((id) => !Array.isArray(groups.get(id)) && groups.get(id) !== "no_such_subteam"))
    return note("approvers: can't be counted", seeSlack);
  const able = ableAmong([...users, ...ids], { people, groups });
  const usual = policy.approvals.filter(({ votes }) => votes === undefined);
  const most = Math.max(1, ...usual.map(({ required }) => required));
  const what = `approvers: ${able.length} (${able.slice(0, 5).join(", ")}${able.length > 5 ? ", …" : ""})`;
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

/** Who of these, with the members of groups, can vote; who wasn't looked at counts as a member. */
function ableAmong(
  entries: readonly string[],
  { people, groups }: Pick<PolicyFacts, "people" | "groups">,
): readonly string[] {
  const all = entries.flatMap((id) => (id.startsWith("S") ? (groups.get(id) ?? []) : id));
  return [...new Set(all)].filter(
    (id) => /^[UW]/.test(id) && (people.has(id) ? people.get(id) === "member" : true),
  );
}

/** Seats that a rule or a team leaves to people who can't vote. Where everyone may, or Slack doesn't tell, nothing is said. */
function seatFindings({ policy, people, groups }: PolicyFacts): readonly Finding[] {
  const isTold = ({ from }: { from: readonly string[] }) =>
    from.every((id) =>
      id.startsWith("S")
        ? Array.isArray(groups.get(id)) || groups.get(id) === "no_such_subteam"
        : id !== "*",
    );
  const usual = policy.approvals.filter(
    ({ votes, targets }) => votes === undefined && targets === undefined,
  );
  const most = Math.max(1, ...usual.map(({ required }) => required));
  const places = [
    ...policy.approvals.map(({ votes = [] }, index) => ({
      place: `approvals[${index + 1}].votes`,
      about: ["approvals", index, "votes"],
      needs: votes.filter(isTold),
    })),
    ...Object.entries(policy.teams).map(([team, { approve }]) => ({
      place: `teams.${team}.approve`,
      about: ["teams", team, "approve"],
      needs: [{ from: approve, required: most }].filter(
        (need) => approve.length > 0 && isTold(need),
      ),
    })),
  ];
  return places.flatMap(({ place, about, needs }) => {
    const seats = needs.map((need) => ({
      ...need,
      able: ableAmong(need.from, { people, groups }),
    }));
    const able = [...new Set(seats.flatMap((seat) => seat.able))];
    const met = metBy(seats, able, (seat, id) => seat.able.includes(id));
    const wanted = seats.reduce((sum, { required }) => sum + required, 0);
    if (met.reduce((sum, one) => sum + one, 0) >= wanted) return [];
    const who =
      able.length === 0
        ? "nobody named there can vote"
        : `of those named only ${able.join(", ")} can vote`;
    return [
      ill(
        `${place}: ${wanted} must approve, and ${who}`,
        "Name full members of this workspace, each for one seat, or what it asks of them can't run.",
        about,
      ),
    ];
  });
}
