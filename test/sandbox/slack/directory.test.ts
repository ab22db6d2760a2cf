import { describe, expect, it } from "vitest";
import { fieldsOf, listOf, textOf } from "../../../sandbox/slack/fields.ts";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

const start = () => startSlack({ rateLimits: "off" });

describe("the Web API's directory", () => {
  it("tells who people are, and who is in which group", async () => {
    await using slack = await start();
    const info = async (user: string) => (await callApi(slack, "users.info", { user }))["user"];
    expect(await info("U0OLIVIA")).toMatchObject({
      deleted: false,
      is_bot: false,
      is_restricted: false,
      team_id: "T01CONF",
    });
    expect(await info("U0GINA")).toMatchObject({ is_restricted: true });
    expect(await info("U0DORA")).toMatchObject({ deleted: true });
    expect(await info("U0STAN")).toMatchObject({ is_stranger: true, team_id: "T09OTHER" });
    expect(await info("U0DEPLOYBOT")).toMatchObject({ is_bot: true });
    expect(await callApi(slack, "users.info", { user: "U0NOBODY" })).toMatchObject({
      error: "user_not_found",
    });
    expect(await callApi(slack, "usergroups.users.list", { usergroup: "S02LEADS" })).toMatchObject({
      users: ["U0AMIR", "U0ADA"],
    });
    expect(await callApi(slack, "usergroups.list", { include_users: true })).toMatchObject({
      usergroups: [{ id: "S01ONCALL", handle: "oncall", users: ["U0OLIVIA"] }, { id: "S02LEADS" }],
    });
    await slack.edit.disableGroup("leads");
    expect(await callApi(slack, "usergroups.users.list", { usergroup: "S02LEADS" })).toMatchObject({
      error: "no_such_subteam",
    });
  });

  it("lists conversations in pages, only those the bot may know", async () => {
    await using slack = await start();
    const names: unknown[] = [];
    let cursor = "";
    do {
      const answer = await callApi(slack, "conversations.list", {
        types: "public_channel,private_channel",
        limit: 2,
        cursor,
      });
      names.push(...listOf(answer["channels"]).map(({ name }) => name));
      cursor = textOf(fieldsOf(answer["response_metadata"])["next_cursor"]);
    } while (cursor !== "");
    expect(names).toEqual(["ops", "status", "audit", "random", "leads-only", "vendor"]);
    expect(await callApi(slack, "conversations.info", { channel: "C06SECRET" })).toMatchObject({
      error: "channel_not_found",
    });
    expect(await callApi(slack, "conversations.members", { channel: "C03AUDIT" })).toMatchObject({
      members: ["U0ADA", "U0AMIR", "U0GATEHOUSE"],
    });
    expect(await callApi(slack, "conversations.open", { users: "U0VERA" })).toMatchObject({
      channel: { id: "D0VERA" },
    });
  });
});
