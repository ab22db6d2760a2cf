import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { commands } from "../../src/features/index.ts";
import {
  botEvents,
  manifestOf,
  renderManifest,
  renderTable,
  withTable,
} from "../../scripts/manifest.ts";
import { botScopes } from "../../src/operate/checks/slack.ts";
import { usageOf } from "../../src/registry/define.ts";
import { root } from "../structure/sources.ts";

// https://github.com/slackapi/manifest-schema, version 2.0.0
const published: z.core.JSONSchema.JSONSchema = JSON.parse(
  readFileSync(new URL("slack-manifest.schema.2.0.0.json", import.meta.url), "utf8"),
);
// It carries no $schema; `definitions` is how draft 7 calls them
const schema = z.fromJSONSchema(published, { defaultTarget: "draft-7" });

describe("the manifest of the Slack app", () => {
  it("is what Slack's published schema allows", () => {
    expect(schema.safeParse(manifestOf(commands)).error).toBeUndefined();
  });

  it("would be refused with anything that Slack doesn't know", () => {
    const manifest = manifestOf(commands);
    expect(schema.safeParse({ ...manifest, extra: 1 }).success).toBe(false);
    const features = { slash_commands: [{ command: "vm", description: "x" }] };
    expect(schema.safeParse({ ...manifest, features }).success).toBe(false);
    const display_information = { name: "x".repeat(36) };
    expect(schema.safeParse({ ...manifest, display_information }).success).toBe(false);
  });

  it("is the file in the project", () => {
    const file = readFileSync(new URL("../../manifest.yml", import.meta.url), "utf8");
    expect(file).toBe(renderManifest(commands));
    expect(parse(file)).toEqual(manifestOf(commands));
  });

  it("says how Slackbot comes in, and changes nothing unless someone takes that in", () => {
    const text = renderManifest(commands);
    const [, section = ""] = /without the number signs:\n([^]*)$/.exec(text) ?? [];
    expect(parse(section.replaceAll(/^# /gm, ""))).toEqual({
      mcp_servers: {
        gatehouse: { url: "https://gatehouse.example/mcp", auth_type: "slack_identity_auth" },
      },
    });
    expect(text).toMatch(/# Needs Slack's Business\+ or an Enterprise plan/);
    expect(parse(text)).not.toHaveProperty("mcp_servers");
  });

  it("is counted right where docs/install.md says what Slack's summary lists", () => {
    const manifest = parse(renderManifest(commands)) as {
      features: { slash_commands: unknown[] };
      oauth_config: { scopes: { bot: unknown[] } };
      settings: { event_subscriptions: { bot_events: unknown[] } };
    };
    const words =
      "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split(
        " ",
      );
    const many = (all: readonly unknown[]) => words[all.length];
    const text = readFileSync(path.join(root, "docs/install.md"), "utf8");
    expect(text.replaceAll(/\s+/g, " ")).toContain(
      `The summary lists ${many(manifest.features.slash_commands)} slash commands, ${many(manifest.settings.event_subscriptions.bot_events)} events, and ${many(manifest.oauth_config.scopes.bot)} bot scopes.`,
    );
  });

  it("has three slash commands, within the five of a free workspace, each with its words", () => {
    expect(manifestOf(commands)).toMatchObject({
      features: {
        slash_commands: [
          { command: "/vm", usage_hint: expect.stringContaining("restart <vm…>") },
          { command: "/project", usage_hint: expect.stringContaining("list [--type TYPE]") },
          { command: "/gatehouse", usage_hint: expect.stringContaining("help [command]") },
        ],
      },
    });
  });

  it("asks for no more rights than these, and never for reading what people write elsewhere", () => {
    expect(botScopes).toEqual([
      "app_mentions:read",
      "channels:history",
      "channels:read",
      "chat:write",
      "commands",
      "files:write",
      "groups:history",
      "groups:read",
      "im:history",
      "im:write",
      "metadata.message:read",
      "mpim:history",
      "mpim:read",
      "usergroups:read",
      "users:read",
    ]);
    expect(botEvents).toEqual([
      "app_home_opened",
      "app_mention",
      "message.im",
      "subteam_members_changed",
      "subteam_updated",
    ]);
  });

  it("has no Home tab where no feature shows one", () => {
    const { features, settings } = manifestOf(commands, { hasHome: false }) as {
      features: object;
      settings: object;
    };
    expect(features).toMatchObject({ app_home: { home_tab_enabled: false } });
    expect(JSON.stringify(settings)).not.toContain("app_home_opened");
  });

  it("has the shortcuts, the Home tab, and Socket Mode", () => {
    expect(manifestOf(commands)).toMatchObject({
      features: {
        app_home: { home_tab_enabled: true },
        shortcuts: [
          { name: "Show the VMs named here", type: "message" },
          { name: "Restart a VM…", type: "global" },
        ],
      },
      settings: { interactivity: { is_enabled: true }, socket_mode_enabled: true },
    });
  });
});

describe("the table in README", () => {
  it("has a line for every command", () => {
    const rows = renderTable(commands).split("\n");
    expect(rows).toHaveLength(commands.length + 2);
    for (const command of commands) {
      expect(rows.filter((row) => row.startsWith(`| \`${usageOf(command)}\``))).toHaveLength(1);
    }
    expect(rows).toContain("| `/vm restart <vm…>` | Restart a running VM | operate |");
  });

  it("stands between its markers, and what is around it stays", () => {
    const start = "<!-- commands: made from src/commands by npm run derive -->";
    const readme = `# Gatehouse\n\n${start}\nold\n<!-- /commands -->\n\nThe end.\n`;
    const made = withTable(readme, commands);
    expect(made).toBe(
      `# Gatehouse\n\n${start}\n\n${renderTable(commands)}\n\n<!-- /commands -->\n\nThe end.\n`,
    );
    expect(withTable(made, commands)).toBe(made);
    expect(() => withTable("# Gatehouse", commands)).toThrow("README.md lacks");
  });
});
