import { describe, expect, it } from "vitest";
import { describeChange, voteButtons } from "../../../src/core/cards/asking.ts";
import { renderCard } from "../../../src/core/cards/render-card.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import { storedIn, vmTarget } from "../asking.ts";
import { restore } from "../../support/commands.ts";

const at = Date.parse("2026-11-20T03:12:00Z");
const loss = "You lose what was written since 8 min before the request.";

/** Returns a restore that waits for approval, or the command that a feature would bring for it. */
const asking = (over: Partial<RequestRecord> = {}) =>
  storedIn(
    { state: "draft" },
    {
      changedAt: at,
      record: {
        id: "r-7fk3m9q2xw",
        command: "vm restore",
        input: { vm: "vm-payments-db-1", snapshot: "snap-42" },
        labels: { snapshot: "nightly" },
        snapshotAt: at - 480_000,
        target: vmTarget("db-1"),
        requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
        channelId: "C01OPS",
        origin: { kind: "form", interaction: "1.1" },
        reason: "Migration 42 broke the ledger table",
        policyVersion: "v1",
        approval: {
          required: 1,
          expiresAt: at + 900_000,
          digest: "0".repeat(64),
          why: "a rule",
          evidence: [],
        },
        createdAt: at,
        runsUntil: at + 900_000,
        ...over,
      },
    },
  );

const command = { ...restore, plainRisk: () => loss };
const push = (over: Partial<RequestRecord> = {}) => renderCard(asking(over), command).text;
const undo = { kind: "request", request: "r-1", press: "undo", undoes: "r-1" } as const;

describe("the notification of a request for approval", () => {
  it("says who, what, and why, then the loss, then how long there is to decide", () => {
    expect(push()).toBe(
      `olivia asks to restore db-1: “Migration 42 broke the ledger table”. ${loss} 15 min to decide.`,
    );
  });

  it("has the project and the snapshot where there is room for them", () => {
    expect(push({ reason: "Bad data." })).toBe(
      `olivia asks to restore db-1 (payments) from nightly: “Bad data.” ${loss} 15 min to decide.`,
    );
  });

  it("is shortened in its reason alone, so that the loss and the time stay", () => {
    const long = push({ reason: "The migration of last night left half of the orders ".repeat(3) });
    expect(long).toMatch(/^olivia asks to restore db-1: “The migration of last night [^”]*…” You/);
    expect(long).toContain(`${loss} 15 min to decide.`);
    expect(long.length).toBeLessThanOrEqual(150);
  });

  it("keeps the loss and the time beside names as long as they come", () => {
    const requester = {
      id: "U0OLIVIA",
      teamId: "T0OURS",
      name: "Olivia van der Hoeven ".repeat(4),
    };
    const long = push({ requester, target: vmTarget(`db-${"x".repeat(120)}`) });
    expect(long).toContain(`${loss} 15 min to decide.`);
    expect(long.length).toBeLessThanOrEqual(150);
  });

  it("keeps the time beside a loss that names many", () => {
    const many = {
      ...command,
      plainRisk: () => `With its VMs ${"edge-1, ".repeat(30)}all is lost.`,
    };
    const long = renderCard(asking(), many).text;
    expect(long).toMatch(/^olivia asks to restore db-1\. With its VMs [^]*… 15 min to decide\.$/);
    expect(long.length).toBeLessThanOrEqual(150);
  });

  it("says that it is an undo, as the card and the confirmation do", () => {
    expect(push({ origin: undo })).toMatch(
      /^olivia asks to undo the restore of db-1( \(payments\))?: “/,
    );
    expect(describeChange(asking({ origin: undo }).record, command)).toBe(
      "Undo the restore of db-1 (payments)",
    );
    const [approve] = voteButtons(asking({ origin: undo }), command);
    expect(approve?.confirm).toMatchObject({
      title: "Undo the restore of db-1?",
      text: `Undo the restore of db-1 (payments). ${loss}`,
    });
  });
});
