import { describe, expect, it } from "vitest";
import { readGatehouseFacts } from "../../../src/core/facts/gatehouse-fact.ts";
import { ill, well } from "../../../src/messages/finding.ts";

describe("what is known of Gatehouse itself", () => {
  it("is told in the order of its sources, and nothing by those that have nothing to say", async () => {
    const since = 1_000;
    const facts = await readGatehouseFacts([
      { kind: "Slack", read: async () => well("answers") },
      { kind: "Log", read: async () => undefined },
      { kind: "Work", read: async () => ({ ...ill("no worker is running", "Start one."), since }) },
    ]);
    expect(facts).toEqual([
      { kind: "Slack", severity: "well", text: "answers" },
      {
        kind: "Work",
        severity: "alarm",
        text: "no worker is running",
        next: "Start one.",
        about: undefined,
        since,
      },
    ]);
  });

  it("is an alarm where it can't be read, with the reason", async () => {
    const error = new Error("nobody answers");
    const read = async () => {
      throw error;
    };
    expect(await readGatehouseFacts([{ kind: "Outages", read }])).toEqual([
      { kind: "Outages", severity: "alarm", text: "nobody answers", unread: error },
    ]);
  });
});
