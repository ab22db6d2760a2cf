import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { addChannel, addPerson, startSandboxSlack } from "../../../sandbox/slack/index.ts";
import { settingsFromManifest } from "../../../sandbox/slack/state/app-settings.ts";
import { root } from "../../structure/sources.ts";
import { callApi } from "./call-api.ts";

describe("the app in the sandbox Slack", () => {
  it("is what its manifest says, and its IDs and keys follow from the bot's name", () => {
    const manifest: unknown = parse(readFileSync(`${root}/manifest.yml`, "utf8"));
    const settings = settingsFromManifest(manifest);
    expect(settings).toMatchObject({
      appId: "A01GATEHOUSE",
      appName: "Gatehouse",
      botUserId: "U0GATEHOUSE",
      botName: "gatehouse",
      botToken: "xoxb-sandbox-gatehouse",
      homeTab: true,
      messagesTabReadOnly: false,
      shortcuts: [
        { name: "Show the VMs named here", callbackId: "show-vms", type: "message" },
        { name: "Restart a VM…", callbackId: "restart-vm", type: "global" },
      ],
    });
    expect(settings.commands.map(({ name }) => name)).toEqual(["/vm", "/project", "/gatehouse"]);
    expect(settings.scopes).toContain("metadata.message:read");
    expect(settings.events).toContain("app_home_opened");
    const named = settingsFromManifest({ display_information: { name: "Stand-up Bot!" } });
    expect(named).toMatchObject({ appName: "Stand-up Bot!", botName: "stand-up_bot_" });
    expect(named.botUserId).toBe("U0STANDUPBOT");
    const app_home = { messages_tab_enabled: false };
    expect(settingsFromManifest({ features: { app_home } }).messagesTabReadOnly).toBe(true);
  });

  it("may do nothing without a manifest, and hears nothing", async () => {
    await using slack = await startSandboxSlack();
    expect(await callApi(slack, "auth.test")).toMatchObject({ ok: true, user: "app" });
    expect(
      await callApi(slack, "chat.postMessage", { channel: "C01OPS", text: "hi" }),
    ).toMatchObject({
      error: "missing_scope",
      needed: "chat:write",
    });
    const olivia = slack.person("olivia");
    expect(await olivia.types("ops", "/vm list")).toMatchObject({ acked: false });
    await olivia.types("ops", "@app are you there?");
    expect(slack.deliveries()).toEqual([]);
  });

  it("is in a workspace of one's own people, with its bot", async () => {
    await using slack = await startSandboxSlack({
      manifest: { oauth_config: { scopes: { bot: ["chat:write"] } } },
      team: { id: "T0ACME", name: "Acme", domain: "acme" },
      seed: (workspace) => {
        addPerson(workspace, { id: "U0ZOE", name: "zoe" });
        const members = ["U0ZOE", workspace.app.botUserId];
        addChannel(workspace, { id: "C0HALL", name: "hall", members });
      },
    });
    expect(await callApi(slack, "auth.test")).toMatchObject({ team_id: "T0ACME", team: "Acme" });
    await callApi(slack, "chat.postMessage", { channel: "C0HALL", text: "for <@U0ZOE>" });
    expect(slack.person("zoe").mentions()).toMatchObject([{ text: "for <@U0ZOE>" }]);
    expect(slack.workspace.people.get("U0ZOE")?.email).toBe("zoe@acme.example");
  });
});
