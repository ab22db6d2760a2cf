import { describe, expect, it } from "vitest";
import { startGatehouseSlack } from "../../../demo/world.ts";
import { silentLog } from "../../../src/log/log.ts";
import { CannotTell } from "../../../src/slack/people/cannot-tell.ts";
import { kindOfUser } from "../../../src/slack/people/kind-of-user.ts";
import { createPeople } from "../../../src/slack/people/people.ts";
import { type SharedAnswer, createSharedAnswer } from "../../../src/slack/people/shared-answer.ts";
import type { WebAnswer } from "../../../src/slack/web-answer.ts";
import { createWeb } from "../../../src/slack/web.ts";
import { testRedis } from "../../support/with-redis.ts";

const home = { teamId: "T01", enterpriseId: "E01" };
const full = {
  id: "U1",
  team_id: "T01",
  deleted: false,
  is_bot: false,
  is_restricted: false,
  is_ultra_restricted: false,
  profile: {},
};

async function peopleOfSandbox(
  groupIds: string[] = ["S01ONCALL", "S02LEADS"],
  shared?: SharedAnswer,
) {
  const slack = await startGatehouseSlack({ rateLimits: "off" });
  const web = createWeb({ token: slack.app.botToken, apiUrl: slack.apiUrl, log: silentLog() });
  let time = 0;
  const people = createPeople({
    web,
    home: () => ({ teamId: slack.workspace.team.id }),
    groupIds: () => groupIds,
    now: () => time,
    ...(shared && { shared }),
  });
  return {
    slack,
    people,
    later: (ms: number) => void (time += ms),
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

const answer = (restricted: boolean): WebAnswer => ({
  ok: true,
  data: { user: { ...full, is_restricted: restricted } },
});

describe("who somebody is", () => {
  it("is a member only when full, active, human and ours", () => {
    expect(kindOfUser(full, "T01", home)).toBe("member");
    expect(kindOfUser({ ...full, is_app_user: true }, "T01", home)).toBe("member");
    // Enterprise Grid: at home in another workspace, and a member of ours.
    const grid = {
      ...full,
      team_id: "T07",
      enterprise_user: { enterprise_id: "E01", teams: ["T07", "T01"] },
    };
    expect(kindOfUser(grid, "T07", home)).toBe("member");
    const others: [string, object, string?][] = [
      ["deactivated", { deleted: true }],
      ["deactivated", { is_forgotten: true }],
      ["bot", { is_bot: true }],
      ["bot", { is_workflow_bot: true }],
      ["bot", { id: "USLACKBOT" }],
      ["bot", { profile: { bot_id: "B1" } }],
      ["bot", { profile: { api_app_id: "A1" } }],
      ["guest", { is_restricted: true }],
      ["guest", { is_ultra_restricted: true }],
      ["guest", { is_invited_user: true }],
      ["external", { is_stranger: true }],
      ["external", { team_id: "T99" }],
      ["external", {}, "T99"],
      [
        "external",
        { team_id: "T07", enterprise_user: { enterprise_id: "E99", teams: ["T01"] } },
        "T07",
      ],
      [
        "external",
        { team_id: "T07", enterprise_user: { enterprise_id: "E01", teams: ["T07"] } },
        "T07",
      ],
    ];
    for (const [kind, more, said = "T01"] of others) {
      expect([more, said, kindOfUser({ ...full, ...more }, said, home)]).toEqual([
        more,
        said,
        kind,
      ]);
    }
    expect(
      kindOfUser({ ...full, deleted: true, is_bot: true, is_restricted: true }, "T99", home),
    ).toBe("deactivated");
  });

  it("comes from Slack, with the groups of the policy", async () => {
    await using world = await peopleOfSandbox();
    const team = world.slack.workspace.team.id;
    const kinds: Record<string, string> = {};
    for (const id of ["U0OLIVIA", "U0GINA", "U0DORA", "U0STAN", "U0DEPLOYBOT", "U0NOBODY"]) {
      kinds[id] = (await world.people.person(id, team)).kind;
    }
    expect(kinds).toEqual({
      U0OLIVIA: "member",
      U0GINA: "guest",
      U0DORA: "deactivated",
      U0STAN: "external",
      U0DEPLOYBOT: "bot",
      U0NOBODY: "external",
    });
    expect(await world.people.person("U0ADA", team)).toEqual({
      id: "U0ADA",
      teamId: team,
      name: "ada",
      kind: "member",
      groups: ["S02LEADS"],
      timeZone: "Europe/Paris",
    });
    // Whatever team a delivery claims: Slack's own word counts.
    expect((await world.people.person("U0STAN", team)).kind).toBe("external");
    expect((await world.people.person("U0OLIVIA", "T09OTHER")).kind).toBe("external");
    expect((await world.people.person("U0OLIVIA", team)).groups).toEqual(["S01ONCALL"]);
    expect((await world.people.person("U0VERA", team)).groups).toEqual([]);
  });

  it("is remembered for a minute, asked once for many, and anew for votes or when told to forget", async () => {
    await using world = await peopleOfSandbox();
    const team = world.slack.workspace.team.id;
    const counts = () => [
      world.slack.calls("users.info").length,
      world.slack.calls("usergroups.list").length,
    ];
    await Promise.all(Array.from({ length: 50 }, () => world.people.person("U0OLIVIA", team)));
    await world.people.person("U0AMIR", team);
    expect(counts()).toEqual([2, 1]);
    world.later(59_000);
    await world.people.person("U0OLIVIA", team);
    expect(counts()).toEqual([2, 1]);
    await Promise.all(
      Array.from({ length: 50 }, () => world.people.person("U0OLIVIA", team, { fresh: true })),
    );
    expect(counts()).toEqual([3, 2]);
    world.later(60_001);
    await world.people.person("U0OLIVIA", team);
    expect(counts()).toEqual([4, 3]);
    world.people.forget("U0OLIVIA");
    await world.people.person("U0OLIVIA", team);
    expect(counts()).toEqual([5, 3]);
    world.people.forget();
    await world.people.person("U0OLIVIA", team);
    expect(counts()).toEqual([6, 4]);
  });

  it("goes by groups as they changed since, before a vote or a refusal, though all were asked for just now", async () => {
    await using here = await testRedis();
    const changes = here.key("changes");
    await using world = await peopleOfSandbox(
      ["S01ONCALL"],
      createSharedAnswer({ ...here, name: "user-groups", changes, secret: () => "xoxb-test" }),
    );
    const groups = async (how?: { fresh: boolean }) =>
      (await world.people.person("U0ADA", world.slack.workspace.team.id, how)).groups;
    expect(await groups()).toEqual([]);
    expect(await groups({ fresh: true })).toEqual([]);
    await world.slack.edit.setGroupMembers("oncall", ["olivia", "ada"]);
    // As another process has it, which Slack told
    await here.redis.incr(changes);
    world.later(1);
    expect(await groups()).toEqual([]);
    expect(await groups({ fresh: true })).toEqual(["S01ONCALL"]);
    expect(world.slack.calls("usergroups.list")).toHaveLength(2);
  });

  it("can't be told when Slack is away, limits us, or knows no such group: the answer is no", async () => {
    await using world = await peopleOfSandbox();
    const team = world.slack.workspace.team.id;
    const { weather } = world.slack;
    for (const storm of [
      { method: "users.info", kind: "lost-before" },
      { method: "users.info", kind: "server-error" },
      { method: "users.info", kind: "rate-limited", retryAfter: 30 },
      { method: "usergroups.list", kind: "lost-before" },
      { method: "usergroups.list", kind: "error", error: "subteam_disabled" },
      { method: "usergroups.list", kind: "error", error: "missing_scope" },
    ] as const) {
      world.people.forget();
      const end = weather.add(storm);
      await expect(world.people.person("U0OLIVIA", team)).rejects.toThrow(CannotTell);
      await expect(world.people.person("U0OLIVIA", team, { fresh: true })).rejects.toThrow(
        /^Can't verify who you are right now: .* Nothing was done\.$/,
      );
      end();
    }
    await expect(world.people.person("'; DROP", team)).rejects.toThrow(CannotTell);
    expect((await world.people.person("U0OLIVIA", team)).kind).toBe("member");
    await using unknown = await peopleOfSandbox(["S0NOSUCH"]);
    await expect(unknown.people.person("U0OLIVIA", team)).rejects.toThrow("S0NOSUCH");
    await expect(unknown.people.members("S0NOSUCH")).rejects.toThrow(CannotTell);
    await world.slack.edit.disableGroup("leads");
    world.people.forget();
    await expect(world.people.person("U0OLIVIA", team)).rejects.toThrow("S02LEADS");
  });

  it("counts from memory for a voter, a minute at most, when Slack limits us; never when it is away", async () => {
    await using world = await peopleOfSandbox();
    const team = world.slack.workspace.team.id;
    await world.people.person("U0AMIR", team);
    world.later(10_000);
    const end = world.slack.weather.add({
      method: "usergroups.list",
      kind: "rate-limited",
      retryAfter: 30,
    });
    expect((await world.people.person("U0AMIR", team, { fresh: true })).groups).toEqual([
      "S02LEADS",
    ]);
    world.later(50_001);
    await expect(world.people.person("U0AMIR", team, { fresh: true })).rejects.toThrow(CannotTell);
    end();
    world.people.forget();
    await world.people.person("U0AMIR", team);
    world.later(5_000);
    world.slack.weather.add({ method: "usergroups.list", kind: "server-error" });
    await expect(world.people.person("U0AMIR", team, { fresh: true })).rejects.toThrow(CannotTell);
  });

  it("is not remembered from an answer that was on its way when told to forget", async () => {
    const waiting: ((answer: WebAnswer) => void)[] = [];
    const web = { call: () => new Promise<WebAnswer>((resolve) => void waiting.push(resolve)) };
    const people = createPeople({ web, home: () => ({ teamId: "T01" }), groupIds: () => [] });
    const before = people.person("U1", "T01");
    people.forget();
    const after = people.person("U1", "T01");
    waiting[0]?.(answer(false));
    waiting[1]?.(answer(true));
    expect([
      (await before).kind,
      (await after).kind,
      (await people.person("U1", "T01")).kind,
    ]).toEqual(["member", "guest", "guest"]);
  });
});
