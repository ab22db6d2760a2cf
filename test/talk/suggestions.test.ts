import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Person } from "../../src/registry/invocation.ts";
import type { GatewayContext } from "../../src/talk/gateway-context.ts";
import { suggest } from "../../src/talk/suggestions.ts";
import type { SuggestRequest } from "../../src/slack/receive/interaction.ts";
import { type Reading, startReading } from "../commands/reading.ts";
import { ourTeamId, person, policyOf } from "../core/permit/sample.ts";

let at: Reading;
beforeAll(async () => {
  at = await startReading({ world: "demo" });
  await at.inventory.refresh();
});
afterAll(() => at[Symbol.asyncDispose]());

const policy = policyOf(`access: { view: ["*", "U0GUEST"], operate: ["U0OLA"] }`);

async function offered(over: Partial<SuggestRequest>, who: Person = person("U0OLA"), to = policy) {
  const gateway = {
    policy: to,
    ourTeamId,
    person: async () => who,
    inventory: at.inventory,
    contributed: { pickers: { parcel: async () => [{ label: "red", value: "p-1" }] } },
  } as unknown as GatewayContext;
  const request: SuggestRequest = {
    userId: who.id,
    teamId: who.teamId,
    action: "pick:vm",
    typed: "",
    privateMetadata: JSON.stringify({ targetId: "vm-payments-db-1" }),
    ...over,
  };
  return suggest(request, gateway);
}

describe("options that load while somebody types", () => {
  it("are VMs by name, with their project and state", async () => {
    const all = await offered({ typed: "web" });
    expect(all.map(({ label }) => label).toSorted()).toEqual([
      "web-1 in payments",
      "web-1 in staging",
      "web-2 in payments",
    ]);
    expect(all).toContainEqual({
      label: "web-1 in payments",
      value: "vm-payments-web-1",
      description: "RUNNING",
    });
    expect(await offered({ typed: "" })).toHaveLength(8);
    expect(await offered({ typed: "nothing-like-it" })).toEqual([]);
  });

  it("are projects, with type and state", async () => {
    expect(await offered({ action: "pick:project", typed: "docs" })).toEqual([
      { label: "docs-site", value: "prj-docs-site", description: "GIT_DEPLOY, ACTIVE" },
    ]);
    expect(await offered({ action: "pick:project" })).toHaveLength(6);
  });

  it("are regions in use, the most used first, and an unknown one with a warning", async () => {
    const all = await offered({ action: "pick:region:refresh" });
    expect(all[0]).toEqual({ label: "eu-west-1", value: "eu-west-1" });
    expect(await offered({ action: "pick:region", typed: "EU-west-1" })).toContainEqual({
      label: "eu-west-1",
      value: "eu-west-1",
    });
    expect(await offered({ action: "pick:region", typed: "eu-wets-1" })).toEqual([
      {
        label: "eu-wets-1",
        value: "eu-wets-1",
        description: "Nothing that Gatehouse knows is there",
      },
    ]);
    expect(await offered({ action: "pick:region", typed: "x".repeat(61) })).toEqual([]);
  });

  it("are those of a feature under its own name, only for people who see names", async () => {
    const parcels = { action: "pick:parcel" };
    expect(await offered(parcels)).toEqual([{ label: "red", value: "p-1" }]);
    expect(await offered({ action: "pick:constructor" })).toEqual([]);
    expect(await offered(parcels, person("U0X", { kind: "bot" }))).toEqual([]);
  });

  it("are empty for an unknown select", async () => {
    for (const action of ["", "pick", "pick:", "pick:people", "pick:__proto__"])
      expect(await offered({ action })).toEqual([]);
  });

  it("fit Slack's limits, however long names are", async () => {
    for (const option of await offered({ typed: "" })) {
      expect(option.label.length).toBeLessThanOrEqual(75);
      expect(option.value.length).toBeLessThanOrEqual(75);
    }
  });

  it.each([
    ["a guest", person("U0GINA", { kind: "guest" })],
    ["a bot", person("U0BOT", { kind: "bot" })],
    ["somebody of another team", person("U0STAN", { teamId: "T0THEIRS" })],
    ["a deactivated account", person("U0DORA", { kind: "deactivated" })],
  ])("are none for %s", async (_what, who) => {
    expect(await offered({}, who)).toEqual([]);
  });

  it("are empty for a member who may not look, and exist for everyone who may do something and for listed guests", async () => {
    const closed = policyOf(
      `access: { view: ["U0VERA", "U0GUEST"], operate: ["U0OLA"], approve: ["U0AMIR"] }`,
    );
    expect(await offered({}, person("U0ELSE"), closed)).toEqual([]);
    expect(await offered({}, person("U0AMIR"), closed)).toHaveLength(8);
    expect(await offered({}, person("U0OLA"), closed)).toHaveLength(8);
    expect(await offered({}, person("U0VERA"), closed)).toHaveLength(8);
    expect(await offered({}, person("U0GUEST", { kind: "guest" }), closed)).toHaveLength(8);
  });
});
