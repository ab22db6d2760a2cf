import { describe, expect, it } from "vitest";
import { deleteProject } from "../../../src/commands/project/delete.ts";
import { update } from "../../../src/commands/project/update.ts";
import { resize } from "../../../src/commands/vm/resize.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { start } from "../../../src/commands/vm/start.ts";
import type { Command } from "../../../src/registry/define.ts";
import { commands, restore, snapshot } from "../../support/commands.ts";
import type { Vote } from "../../../src/core/permit/votes.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import {
  type Call,
  type Look,
  type Stage,
  type StageIn,
  noReads,
  noSetbacks,
} from "../../../src/core/request/stage.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { asPost } from "../../../src/messages/notification.ts";
import { when } from "../../../src/messages/markdown.ts";
import { renderCard, withResult } from "../../../src/core/cards/render-card.ts";
import { renderResult } from "../../../src/core/cards/render-result.ts";
import { buttonsOf, shownText } from "../../commands/shown-text.ts";
import { type Rest, called, stageOf, storedIn, vmTarget } from "../asking.ts";

const digest = "0123456789abcdef".repeat(4);
const at = Date.parse("2026-11-20T12:00:00Z");

const record: RequestRecord = {
  id: "r-7fk3m9q2xw",
  command: "vm restore",
  input: { vm: "vm-payments-db-1", snapshot: "snap-42" },
  target: vmTarget("db-1"),
  requester: { id: "U0OLIVIA", teamId: "T0OURS", name: "olivia" },
  channelId: "C01OPS",
  origin: { kind: "form", interaction: "1.1" },
  reason: "corrupt index",
  policyVersion: "v1",
  approval: {
    required: 2,
    expiresAt: at + 900_000,
    digest,
    why: "approvals[1] in gatehouse.yml",
    evidence: [
      ["Current status", "RUNNING"],
      ["Snapshot", "nightly, 2 h old"],
    ],
  },
  createdAt: at,
  runsUntil: at + 1_500_000,
};

const vote = (name: string, how: Vote["vote"] = "approve"): Vote => ({
  voterId: `U0${name.toUpperCase()}`,
  name,
  vote: how,
  at,
  digest,
});

const stored = (over: Partial<Rest> = {}, stage: Stage = stageOf("draft")): StoredRequest =>
  storedIn(stage, { record, changedAt: at, ...over });

const words = (message: unknown) => JSON.stringify(message);
/** Returns a message without its plain text, which Slack shows as it is written. */
const markupOf = (message: unknown) =>
  JSON.stringify(message, (key, value) =>
    value?.type === "plain_text" || key === "accessibility_label" ? undefined : value,
  );

describe("the card of a request that waits for approval", () => {
  it("shows who asks for what and why, the evidence, the digest, how many are missing, and who may decide", () => {
    const card = words(
      renderCard(stored({ votes: [vote("amir")] }), restore, ["S02LEADS", "U0ADA", "*", "x"]),
    );
    for (const part of [
      "olivia",
      "`db-1` in payments",
      "corrupt index",
      "snap-42",
      "nightly, 2 h old",
      "RUNNING",
      "One more person must approve: every full member can.",
      "Approved by amir.",
      digest.slice(0, 16),
      "<!subteam^S02LEADS> <@U0ADA>",
    ]) {
      expect(card).toContain(part);
    }
    expect(card).not.toContain(digest.slice(0, 17));
  });

  it("has buttons that name the request and what was seen of it, nothing else", () => {
    const card = renderCard(stored(), restore);
    const actions = card.blocks.find(({ type }) => type === "actions") as unknown as {
      elements: { action_id: string; value: string }[];
    };
    expect(actions.elements.map(({ action_id, value }) => [action_id, JSON.parse(value)])).toEqual([
      ["vote:approve", { request: record.id, digest: digest.slice(0, 16) }],
      ["vote:deny", { request: record.id, digest: digest.slice(0, 16) }],
      ["request:cancel", { request: record.id }],
      ["run:gatehouse.why", { request: record.id }],
    ]);
  });

  it("begins with the loss and its size, then who, what, why, and until when, all above the buttons", () => {
    const known = { ...record, snapshotAt: at - 82_000 };
    const card = renderCard(stored({ record: known }), restore);
    const [loss, top, actions] = card.blocks;
    expect(actions?.type).toBe("actions");
    expect(shownText({ text: "", blocks: loss && top ? [loss, top] : [] })).toBe(
      [
        "⚠️ *Data of db-1 is replaced* since 1795175918000.",
        "*Restore* `db-1` in payments from snap-42, requested by olivia at <!date^1795176000^{time_secs}|12:00:00 PM UTC>: “corrupt index”",
        "Waiting for approval until <!date^1795176900^{time}|12:15 PM UTC>. Two other people must approve: every full member can.",
      ].join("\n"),
    );
  });

  it("can't be overlooked to have no way back, nor to restore another VM's snapshot", () => {
    const risky = {
      ...record,
      input: { ...record.input, noSafety: true },
      labels: { snapshot: "nightly" },
      approval: {
        ...record.approval,
        evidence: [["🚨 Another VM's snapshot", "taken of db-9"]],
        who: [
          { id: "U0AMIR", name: "amir" },
          { id: "U0ADA", name: "ada" },
        ],
      } as NonNullable<RequestRecord["approval"]>,
    };
    const [loss, top] = renderCard(
      stored({ record: risky, votes: [vote("amir")] }),
      restore,
    ).blocks;
    const shown = shownText({ text: "", blocks: loss && top ? [loss, top] : [] });
    expect(shown).toContain("in payments from nightly");
    expect(shown).toContain("⚠️ *Data of db-1 is replaced*, for good.");
    expect(shown).toContain("*🚨 Another VM's snapshot*: taken of db-9");
    expect(shown).toContain("One more person must approve: ada can. Approved by amir.");
    expect(words(renderCard(stored({ record: risky }), restore))).toContain("nightly (snap-42)");
  });

  it("names the VMs of a project, and asks the approver of what destroys once more", () => {
    const project: RequestRecord = {
      ...record,
      command: "project delete",
      input: { project: "prj-staging" },
      target: {
        kind: "project",
        id: "prj-staging",
        name: "staging",
        projectId: "",
        status: "ACTIVE",
      },
      children: [vmTarget("stage-1"), vmTarget("stage-2", { status: "STOPPED" })],
    };
    const [approve] = buttonsOf(renderCard(stored({ record: project }), deleteProject));
    const lost =
      "Everything in staging is lost, with its 2 VMs: stage-1 (RUNNING), stage-2 (STOPPED). This can't be undone.";
    expect(approve?.asks).toBe(`Delete staging? Delete staging. ⚠️ ${lost}`);
    // The loss names the VMs, so the evidence doesn't name them again.
    const evidence = [["VMs in the project", "stage-1 (RUNNING), stage-2 (STOPPED)"]] as const;
    const counted = {
      ...project,
      approval: { ...record.approval, evidence } as NonNullable<RequestRecord["approval"]>,
    };
    const card = shownText(renderCard(stored({ record: counted }), deleteProject));
    expect(card.match(/stage-1/g)).toHaveLength(1);
    const [restoreButton] = buttonsOf(renderCard(stored(), restore));
    expect(restoreButton?.asks).toContain("Restore db-1 (payments) from snap-42.");
    const [plain] = buttonsOf(renderCard(stored(), restart));
    expect(plain).not.toHaveProperty("asks");
  });

  it("reads differently when anything that is approved differs", () => {
    const base = words(renderCard(stored(), restore));
    const others: RequestRecord[] = [
      { ...record, target: { ...record.target, name: "db-2" } },
      { ...record, input: { ...record.input, snapshot: "snap-43" } },
      { ...record, reason: "else" },
      { ...record, snapshotAt: at - 60_000 },
      { ...record, requester: { ...record.requester, name: "ada" } },
      {
        ...record,
        approval: { ...record.approval, required: 1 } as NonNullable<RequestRecord["approval"]>,
      },
      {
        ...record,
        approval: { ...record.approval, digest: "f".repeat(64) } as NonNullable<
          RequestRecord["approval"]
        >,
      },
    ];
    for (const other of others)
      expect(words(renderCard(stored({ record: other }), restore))).not.toBe(base);
  });
});

/** Renders a result in the thread of its card. */
const below = (
  request: StoredRequest,
  command: Parameters<typeof renderResult>[1],
  above: "card" | "several" = "card",
) => shownText(renderResult(request, command, undefined, { above }));

describe("the card and the result of a request that was decided", () => {
  it("say who denied it and why, and offer only to request it again", () => {
    const votes = [vote("amir"), { ...vote("ada", "deny"), reason: "not tonight" }];
    const denied = stored({ votes }, stageOf("denied"));
    const card = renderCard(denied, restore);
    const said = "Restore of `db-1` from snap-42 was denied by ada: “not tonight”.";
    expect(words(card)).toContain(`❌ ${said}`);
    expect(buttonsOf(card).map(({ label }) => label)).toEqual(["Request again"]);
    expect(words(renderResult(denied, restore))).toContain(`❌ <@U0OLIVIA> ${said}`);
    expect(below(denied, restore)).toBe("❌ <@U0OLIVIA> ada denied it: “not tonight”.");
    expect(below({ ...denied, votes: [vote("ada", "deny")] }, restore)).toBe(
      "❌ <@U0OLIVIA> ada denied it.",
    );
  });

  it("end with one full stop, also where the reason has one", () => {
    const votes = [{ ...vote("ada", "deny"), reason: "The data is needed; fix forward." }];
    const denied = stored({ votes }, stageOf("denied"));
    const said = "denied by ada: “The data is needed; fix forward.”";
    expect(shownText(renderCard(denied, restore)).split("\n")[0]).toMatch(new RegExp(`${said}$`));
    expect(below(denied, restore)).toBe(
      "❌ <@U0OLIVIA> ada denied it: “The data is needed; fix forward.”",
    );
  });

  it("offer to ask again when it expired", () => {
    const expired = stored({}, stageOf("expired", { why: "nobody approved it in time" }));
    const card = words(renderCard(expired, restore));
    expect(card).toContain("nobody approved it in time");
    expect(card).toContain('"Request again"');
    expect(card).not.toContain("vote:approve");
    expect(below(expired, restore)).toBe("❌ <@U0OLIVIA> Nobody approved it in time.");
    const needsTwo = { ...expired.record, approval: { ...expired.record.approval!, required: 2 } };
    const one = { ...expired, record: needsTwo, votes: [vote("amir")] };
    expect(below(one, restore)).toMatch(/^❌ <@U0OLIVIA> Too few people approved it in time\./);
    const { approval: _none, ...free } = expired.record;
    const late = stored({ record: free }, stageOf("expired", { why: "it waited for too long" }));
    expect(below(late, restore)).toBe(
      "❌ <@U0OLIVIA> It expired before it started: it waited for too long.",
    );
  });

  it("name who decided it below the card, where the requester is mentioned, in every way in which a request can end", () => {
    const sent = called({ sentAt: at });
    const ends = (stage: Stage) => below(stored({}, stage), restore);
    const ada = { id: "U0ADA", name: "ada" };
    expect(
      [
        ends(stageOf("cancelled", { decidedBy: ada })),
        ends(
          stageOf("cancelled", {
            wasFrozen: true,
            why: "all changes are frozen by ada: storage fails",
          }),
        ),
        ends(stageOf("rejected", { ...sent, why: "the compute service refused it (409)" })),
        ends(stageOf("failed", sent)),
        ends(
          stageOf("not-applied", { ...sent, decidedBy: { ...ada, reason: "seen in the console" } }),
        ),
        ends(stageOf("not-applied", sent)),
        ends(stageOf("done", { ...sent, decidedBy: { ...ada, reason: "seen in the console" } })),
      ].map((said) => said.split(/\n| Sent /)[0]),
    ).toEqual([
      "⚪ <@U0OLIVIA> ada canceled it.",
      "❌ <@U0OLIVIA> It was canceled: all changes are frozen by ada: storage fails.",
      "❌ <@U0OLIVIA> It was not done: the compute service refused it (409).",
      "❌ <@U0OLIVIA> It failed: the compute service reports gone.",
      "❌ <@U0OLIVIA> ada recorded that it did not happen: “seen in the console”.",
      "❌ <@U0OLIVIA> It did not happen.",
      "✅ <@U0OLIVIA> ada recorded that it happened: “seen in the console”.",
    ]);
  });

  it("offer what may help where the service refuses a change for an ERROR, what only looks last", () => {
    const before = { id: "vm-1", projectId: "p-1", name: "db-1", status: "ERROR" };
    const refused = called({ sentAt: at, before, answer: { class: "conflict", status: 409 } });
    const { approval: _none, ...asked } = record;
    const request = stored({ record: asked }, stageOf("rejected", refused));
    const offered = (known: readonly Command[]) =>
      buttonsOf(renderCard(request, restart, [], { commands: known })).map(({ label }) => label);
    expect(offered(commands)).toEqual(["Restore", "Console", "Attest"]);
    expect(offered([restart])).toEqual([]);
  });

  it("say who approved it when it was done", () => {
    const votes = [vote("amir"), vote("ada")];
    const done = stored({ votes }, stageOf("done", called({ sentAt: at })));
    expect(words(renderCard(done, restore))).toContain(", approved by amir, ada");
    expect(words(renderResult(done, restore, undefined, { above: "card" }))).not.toMatch(
      /approved/i,
    );
  });
});

describe("a result says what changed", () => {
  const vm = (status: string, cpu: number, memory: number) => ({
    id: "vm-payments-db-1",
    name: "db-1",
    projectId: "prj-payments",
    status,
    specs: { cpu, memory },
  });
  const ended = (stage: Stage, over: Partial<Rest> = {}) =>
    stored({ changedAt: at + 5_000, ...over }, stage);
  /** Returns the stage of a request whose call was sent when it was requested. */
  const done = (after: ReturnType<typeof vm> | undefined, call: Partial<Call> = {}, last?: Look) =>
    stageOf("done", {
      ...called({ sentAt: at, ...call }, last ? { last } : {}),
      ...(after ? { after } : {}),
    });
  const sent = called({ sentAt: at });
  const idleStage = stageOf("done", { after: vm("STOPPED", 2, 8), already: true });
  const first = (request: StoredRequest, command: Parameters<typeof renderResult>[1]) =>
    shownText(renderResult(request, command)).split("\n")[0];

  it("tells how long a restart took, and what else its status became", () => {
    const before = vm("RUNNING", 2, 8);
    expect(first(ended(done(before, { before })), restart)).toBe(
      "✅ <@U0OLIVIA> Restarted `db-1` in 5 s.",
    );
    expect(first(ended(done(vm("STOPPED", 2, 8), { before })), restore)).toBe(
      "✅ <@U0OLIVIA> Restored `db-1` from snap-42 in 5 s; it is STOPPED now.",
    );
  });

  it("tells a resize by its steps, and that the VM still is stopped", () => {
    const record4 = { ...record, input: { vms: ["db-1"], cpu: "4", memory: "16" } };
    const steps = done(vm("STOPPED", 4, 16), { before: vm("STOPPED", 2, 8) });
    expect(first(ended(steps, { record: record4 }), resize)).toBe(
      "✅ <@U0OLIVIA> Resized `db-1`: CPU 2 → 4, memory 8 → 16; still stopped.",
    );
    const one = done(vm("RUNNING", 4, 16), { before: vm("RUNNING", 4, 8) });
    expect(first(ended(one, { record: record4 }), resize)).toBe(
      "✅ <@U0OLIVIA> Resized `db-1`: memory 8 → 16.",
    );
  });

  it("tells a new name by both names", () => {
    const project = (name: string) => ({ id: "prj-1", name, status: "ACTIVE", type: "TEE_VM" });
    const renamed: RequestRecord = {
      ...record,
      input: { project: "prj-1", name: "payments" },
      target: { kind: "project", id: "prj-1", name: "pay", projectId: "prj-1", status: "ACTIVE" },
    };
    const call = called({ sentAt: at, before: project("pay") });
    const stage = stageOf("done", { ...call, after: project("payments") });
    expect(first(ended(stage, { record: renamed }), update)).toBe(
      "✅ <@U0OLIVIA> Renamed `pay` to `payments`.",
    );
  });

  it("has one sign each for done, for failed or refused, and for nothing to do", () => {
    const instead = { label: "Start", command: "vm.start" };
    const idle = ended(stageOf("cancelled", { why: "db-1 is stopped.", instead }));
    expect(first(idle, restart)).toBe("⚪ <@U0OLIVIA> Not restarted: db-1 is stopped.");
    expect(buttonsOf(renderCard(idle, restart)).map(({ label }) => label)).toEqual(["Start"]);
    const signs = [
      idleStage,
      stageOf("cancelled", { decidedBy: { id: "U0OLIVIA", name: "olivia" } }),
      stageOf("cancelled", { wasFrozen: true }),
      ...(["failed", "rejected", "denied", "expired", "not-applied"] as const).map((state) =>
        stageOf(state),
      ),
    ].map((stage) => first(ended(stage), restart)?.split(" ")[0]);
    expect(signs).toEqual(["⚪", "⚪", "❌", "❌", "❌", "❌", "❌", "❌"]);
  });

  it("offers a retry that asks by itself, unless `confirm` has a form for it, whatever its status was", () => {
    const asks = (confirm: string[], status = "RUNNING") => {
      const plain = { ...record, target: vmTarget("db-1", { status }) };
      delete plain.approval;
      const failed = ended(stageOf("failed", sent), { record: plain });
      return buttonsOf(renderCard(failed, restart, [], { policy: { confirm } }))[0]?.asks;
    };
    expect(asks(["web-*"])).toBe("Restart db-1 in payments? What runs there is interrupted.");
    expect(asks(["db-*"])).toBeUndefined();
    expect(asks(["db-*"], "STOPPED")).toBeUndefined();
  });

  it("is one sentence on the card, and below it only what that doesn't say", () => {
    const mark = { status: "REBOOTING", at: at + 1_000 };
    const last = { status: "RUNNING", at: at + 5_000, print: "" };
    const safety = { request: "r-safe", snapshotId: "snap-7", at: at - 1_000 };
    const before = vm("RUNNING", 2, 8);
    const { approval: _none, ...free } = record;
    const origin = {
      kind: "request",
      request: "r-first",
      press: "undo",
      undoes: "r-first",
    } as const;
    const undo = { ...free, origin };
    const stage = done(before, { before, mark, safety }, last);
    const restored = ended(stage, { record: undo });
    const time = (ms: number) => when(at + ms).value;
    expect(shownText(renderCard(restored, restore)).split("\n").slice(0, 2)).toEqual([
      "✅ Undid the restore of `db-1` in 5 s.",
      `in payments · undo of \`r-first\` · requested by olivia at ${time(0)} · \`${record.id}\` · “corrupt index”`,
    ]);
    const proof = `Sent ${time(0)}, REBOOTING seen ${time(1_000)}, RUNNING read ${time(5_000)}.`;
    const settled = "Undid the restore of `db-1` in 5 s.";
    const taken = when(at - 1_000, "{time}").value;
    const undoes = `The snapshot's ID is \`snap-42\`.\nUndo restores the safety snapshot \`snap-7\`, taken at ${taken}.`;
    expect(below(restored, restore)).toBe(`✅ <@U0OLIVIA> ${settled} ${proof}\n${undoes}`);
    expect(below(restored, restore, "several")).toBe(
      `✅ <@U0OLIVIA> ${settled} ${proof}\n${undoes}`,
    );
    expect(asPost(renderResult(restored, restore, undefined, { above: "card" })).text).toBe(
      "✅ Undid the restore of db-1 in 5 s.",
    );
    const whole = withResult(renderResult(restored, restore), renderCard(restored, restore));
    expect(shownText(whole).match(/Undid/g)).toHaveLength(1);
  });

  it("says below its card in a sentence that nothing came of it, and what comes next", () => {
    const idle = ended(idleStage);
    expect(below(idle, restart)).toBe("⚪ <@U0OLIVIA> Nothing had to be done.");
    const hint = "Nothing was sent. Request again after the thaw.";
    const why = "all changes are frozen by ada";
    const frozen = ended(stageOf("cancelled", { wasFrozen: true, why, hint }));
    expect(below(frozen, restart)).toBe(`❌ <@U0OLIVIA> It was canceled: ${why}.\n${hint}`);
    const failed = ended(stageOf("failed", sent));
    expect(below(failed, restart)).toBe(
      `❌ <@U0OLIVIA> It failed: the compute service reports gone. Sent ${when(at).value}.`,
    );
  });

  it("tells by what was read what didn't happen, and that another try is safe", () => {
    const last = { at, status: "STOPPED", print: "" };
    const why = "read STOPPED twice: no effect";
    const not = ended(stageOf("not-applied", { ...called({ sentAt: at }, { last }), why }));
    expect(first(not, start)).toBe(
      "❌ <@U0OLIVIA> `db-1` didn't start; two readings say STOPPED. Safe to try again.",
    );
  });
});

describe("a result that sent nothing, or can't be confirmed", () => {
  const stopped = { id: "vm-1", name: "db-1", projectId: "p", status: "STOPPED" };
  const already = (facts: Partial<StageIn<"done">>) => {
    const idle = { state: "done", reads: noReads, setbacks: noSetbacks } as const;
    const stage = { ...idle, after: stopped, already: true, ...facts } as const;
    return words(renderResult(stored({}, stage), restart));
  };

  it("says that nothing was sent only where no call left", () => {
    expect(already({})).toContain("is already STOPPED; nothing was sent.");
    expect(already(called({ answer: { class: "conflict", status: 409 } }))).toContain(
      "is already STOPPED; the compute service refused the call (409).",
    );
    expect(already({ setbacks: { ...noSetbacks, throttled: 1 } })).toContain(
      "the earlier call was not applied.",
    );
  });

  it("marks a snapshot without an ID as unconfirmed, and one with an ID as done", () => {
    const taken = (answer: { class: string; snapshotId?: string }) =>
      words(renderCard(stored({}, stageOf("done", called({ answer }))), snapshot));
    expect(taken({ class: "accepted" })).toMatch(/⚠️ .*nothing more can be confirmed/);
    expect(taken({ class: "accepted" })).not.toContain("✅");
    expect(taken({ class: "accepted", snapshotId: "snap-1" })).toContain("✅");
  });
});

describe("a card with hostile words in it", () => {
  it("shows them as words: they mention nobody, link nowhere and close nothing", () => {
    const evil = "<!channel> <@U0ADA> <https://evil.example|console> `x` *b*";
    const hostile: RequestRecord = {
      ...record,
      command: "project delete",
      target: { ...vmTarget(evil), projectName: evil },
      reason: evil,
      requester: { ...record.requester, name: evil },
      input: { vm: evil, snapshot: evil },
      approval: { ...record.approval, why: evil, evidence: [[evil, evil]] } as NonNullable<
        RequestRecord["approval"]
      >,
    };
    const stages: Stage[] = [
      stageOf("draft"),
      stageOf("authorized", { why: evil }),
      stageOf("unknown", { why: evil }),
      stageOf("denied"),
      stageOf("expired", { why: evil, hint: evil }),
      stageOf("rejected", { why: evil }),
      stageOf("cancelled", { why: evil, hint: evil }),
    ];
    for (const stage of stages) {
      const shown = stored({ record: hostile, votes: [{ ...vote("amir"), name: evil }] }, stage);
      for (const command of [restart, restore, deleteProject]) {
        const all = markupOf([renderCard(shown, command), renderResult(shown, command)]);
        expect(all).not.toMatch(/<!channel|<https|<@U0ADA/);
      }
    }
  });
});
