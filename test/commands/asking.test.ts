import { describe, expect, it } from "vitest";
import type { Message } from "../../src/messages/blocks.ts";
import { person, usual, vm } from "../core/permit/sample.ts";
import { storeRequest as asked, oneOf, restartOf, stageOf } from "../core/asking.ts";
import { until } from "../support/until.ts";
import { startReading } from "./reading.ts";
import { shownText } from "./shown-text.ts";

const ola = person("U0OLA");

describe("/gatehouse can-i", () => {
  it.each([
    [
      "vm restart web-2",
      "Yes, you can run `/vm restart` without approval.\nWhy: no entry of approvals in gatehouse.yml matches vm.restart.",
    ],
    [
      "vm restore db-1 —snapshot x",
      "Yes, you can request `/vm restore`; 1 other person must approve it within 15 min.\nWhy: destructive commands need one approval; no entry of approvals in gatehouse.yml matches vm.restore.",
    ],
    ["vm show db-1", "Yes, you can run `/vm show`."],
    [
      "/project create --name a --type CONTAINER --region eu",
      /^Yes, you can run `\/project create`/,
    ],
    ["vm stop web-*", /^Yes, you can run `\/vm stop`/],
    [
      "gatehouse thaw",
      "No. Only U09ADMIN can run /gatehouse thaw.\nRule: `access.administer` in gatehouse.yml.",
    ],
    ["vm restat web-2", "/vm has no restat.\nDid you mean `/vm restart web-2`?"],
  ])("%s", async (words, said) => {
    await using at = await startReading({ person: ola });
    const shown = shownText(await at.reads(`gatehouse can-i ${words}`));
    if (typeof said === "string") expect(shown).toBe(said);
    else expect(shown).toMatch(said);
  });

  it("takes what stands in quotes as one word", async () => {
    await using at = await startReading({ person: ola });
    await expect(at.reads('gatehouse can-i vm show "two words"')).rejects.toThrow(
      "There is no VM called two words.",
    );
  });

  it("knows what is protected, and that changes are frozen", async () => {
    const policy = { ...usual, protect: ["db-*"] };
    await using at = await startReading({ person: ola, policy });
    expect(shownText(await at.reads("gatehouse can-i vm stop db-1"))).toMatch(
      /^No\. db-1 is protected: it can't be stopped from Slack\.\nRule: `db-\*` under `protect` in gatehouse\.yml\.$/,
    );
    await at.journal.freeze({ by: "Ada", id: "U0ADA", reason: "" });
    expect(shownText(await at.reads("gatehouse can-i vm restart db-1"))).toMatch(
      /\nBut all changes are frozen by Ada\.$/,
    );
  });

  it("says that what needs approval can't go together", async () => {
    const approvals = [{ operations: ["vm.stop"], required: 1, expiresMs: 60_000 }];
    await using at = await startReading({ person: ola, policy: { ...usual, approvals } });
    expect(shownText(await at.reads("gatehouse can-i vm stop web-*"))).toMatch(
      /^Not as a rollout: /,
    );
  });
});

describe("/gatehouse why", () => {
  it("tells what was asked, who voted and every step", async () => {
    await using at = await startReading();
    const request = await asked(at.journal, restartOf(vm("web-2")));
    const { id } = request.record;
    const shown = shownText(await at.reads(`gatehouse why ${id}`));
    // Whoever asks why it waits, asks for the rule
    expect(shown).toMatch(/^Why: approvals\[1\] in gatehouse\.yml requires 1 for vm\.restart\.\n/);
    expect(shown).toMatch(/\n\*vm restart\* of `web-2` \(`vm-web-2`\), requested by olivia at /);
    expect(shown).toContain("State: waiting for approval.");
    expect(shown).toMatch(/\nFingerprint `/);
    expect(shown).not.toContain("Steps");
    await at.journal.move(request, { to: stageOf("cancelled"), why: "cancelled" });
    expect(shownText(await at.reads(`gatehouse why ${id}`))).toMatch(/\*Steps\*\n• .* canceled/);
  });

  it("tells of the last request of whoever types it; with a VM of the last on it", async () => {
    await using at = await startReading({ person: person("U0OLIVIA") });
    const ids: string[] = [];
    for (const one of ["web-2", "db-1"]) {
      const target = { ...vm(one), id: `vm-payments-${one}` };
      ids.push((await asked(at.journal, restartOf(target))).record.id);
      // Two of one millisecond have no order
      const madeAt = await at.journal.now();
      await until(() => at.journal.now()).toBeGreaterThan(madeAt);
    }
    expect(shownText(await at.reads("gatehouse why"))).toContain(ids[1]);
    for (const words of ["web-2", "payments/web-2", "vm-payments-web-2", ids[0]])
      expect(shownText(await at.reads(`gatehouse why ${words}`))).toContain(ids[0]);
    expect(shownText(await at.reads("gatehouse why db-1."))).toContain(ids[1]);
    await expect(at.reads("gatehouse why gpu-1")).rejects.toThrow("There is no request on gpu-1.");
  });

  it("tells of a VM that is gone, by its ID", async () => {
    await using at = await startReading();
    const { id } = (await asked(at.journal, restartOf(vm("long-gone")))).record;
    expect(shownText(await at.reads("gatehouse why vm-long-gone"))).toContain(id);
  });

  it("says so of one that it doesn't know", async () => {
    await using at = await startReading();
    await expect(at.reads("gatehouse why r-7fk3m9q2xw")).rejects.toThrow(
      "There is no request r-7fk3m9q2xw.",
    );
    await expect(at.reads("gatehouse why nothing-like-it")).rejects.toThrow(
      "There is no VM called",
    );
    await expect(at.reads("gatehouse why")).rejects.toThrow("You have requested nothing yet.");
  });
});

describe("/gatehouse approvals", () => {
  it("shows what waits, and points to what waits for the one who looks", async () => {
    const lead = person("U0X", { groups: ["S02LEADS"] });
    await using at = await startReading({ person: lead });
    expect(shownText(await at.reads("gatehouse approvals"))).toBe(
      "No requests are waiting for approval.",
    );
    await asked(at.journal, restartOf(vm("web-2"), { approval: oneOf(["S02LEADS"]) }));
    expect(shownText(await at.reads("gatehouse approvals"))).toMatch(
      /^1 request waits for your approval\.\n⚠️ This interrupts[^\n]*\n\*Restart\* `web-2` in shop, requested by olivia[^\n]*\n[^\n]*One other person must approve: every full member can\.\n\[Approve\] \[Deny\] \[Why\?\][^]*\nFingerprint/,
    );
  });

  it("counts nothing for somebody who may not approve", async () => {
    await using at = await startReading();
    await asked(at.journal, restartOf(vm("web-2")));
    expect(shownText(await at.reads("gatehouse approvals"))).toMatch(
      /^1 request waits for approval by others\.\n[^\n]*\n\*Restart\* `web-2`[^]*\n\[Why\?\]\n[^[]*$/,
    );
  });
});

describe("/gatehouse audit", () => {
  it("shows what was done, and that somebody looked", async () => {
    await using at = await startReading();
    await asked(at.journal, restartOf(vm("web-2")));
    const all = shownText(await at.reads("gatehouse audit"));
    expect(all).toMatch(/^\*Audit trail\*: 2 acts, newest first\.\n/);
    expect(all).toMatch(/ \*olivia\* asked for the restart of `web-2`: waiting for approval\./);
    expect(all).toContain("read the audit trail.");
  });

  it("is about one request, person, VM or project, whatever was typed", async () => {
    await using at = await startReading();
    const { id } = (await asked(at.journal, restartOf(vm("web-2")))).record;
    for (const words of [id, "<@U0OLIVIA>", "vm-web-2"])
      expect(shownText(await at.reads(`gatehouse audit ${words}`))).toContain("restart");
    expect(shownText(await at.reads("gatehouse audit db-1"))).not.toContain("restart");
  });

  it("has one row for an act, in the reader's time zone, and its steps behind Details", async () => {
    await using at = await startReading();
    const request = await asked(at.journal, restartOf(vm("web-2")));
    await at.journal.move(request, { to: stageOf("cancelled"), why: "cancelled", actor: "U0AMIR" });
    const { id } = request.record;
    const page = await at.reads("gatehouse audit vm-web-2");
    const shown = shownText(page);
    expect(shown).toMatch(
      /^\*Audit trail\* about `vm-web-2`: 1 act, newest first\.\n<!date\^\d+\^\{date_short_pretty\} \{time\}\|[^>]+> \S+ \*olivia\* asked for the restart of `web-2`, but [^\n]*$/,
    );
    expect(shown).not.toMatch(/authorized|claimed/);
    expect(valueOf(page, "Details")).toContain(id);
    const steps = shownText(await at.reads(`gatehouse audit ${id}`));
    expect(steps).toMatch(
      /\*Steps\*\n• <!date[^>]*> \*U0OLIVIA\* requested, waiting for approval\n• <!date[^>]*> canceled \(U0AMIR\)/,
    );
  });

  it("goes on to older acts, each once", async () => {
    await using at = await startReading();
    const names = Array.from({ length: 25 }, (_, n) => `web-${n}`);
    for (const called of names) await asked(at.journal, restartOf(vm(called)));
    const first = await at.reads("gatehouse audit <@U0OLIVIA>");
    expect(shownText(first)).toMatch(
      /: 20 acts, newest first\.[^]*`web-24`[^]*`web-5`[^]*\[Older\]/,
    );
    const { before } = JSON.parse(valueOf(first, "Older")) as { before: string };
    const rest = shownText(await at.reads(`gatehouse audit --before ${before} <@U0OLIVIA>`));
    expect(rest).toMatch(/: 5 acts, newest first\.[^]*`web-4`[^]*`web-0`/);
    expect(rest).not.toMatch(/`web-5`|\[Older\]/);
  });
});

/** What the button with this label would send. */
function valueOf({ blocks }: Message, label: string): string {
  const text = JSON.stringify(blocks);
  const [, value] =
    new RegExp(`"text":"${label}"[^]*?"value":("(?:[^"\\\\]|\\\\.)*")`).exec(text) ?? [];
  return value === undefined ? "" : (JSON.parse(value) as string);
}
