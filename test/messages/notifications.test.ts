import { describe, expect, it } from "vitest";
import { renderHead } from "../../src/audit/render.ts";
import { commands } from "../../src/features/index.ts";
import { restart } from "../../src/commands/vm/restart.ts";
import { restore } from "../../src/features/snapshots/restore.ts";
import { snapshot } from "../../src/features/snapshots/snapshot.ts";
import { renderDrift } from "../../src/features/attest/drift-probe.ts";
import { renderUnasked } from "../../src/monitor/status-probe.ts";
import { type Message } from "../../src/messages/blocks.ts";
import { asPost, card } from "../../src/messages/card.ts";
import { type Markdown, md, mention, name } from "../../src/messages/markdown.ts";
import { renderRecap } from "../../src/features/outages/render-recap.ts";
import { isChange } from "../../src/registry/define.ts";
import { freezeNews, thawNews } from "../../src/core/deliver/freeze-news.ts";
import type { RequestRecord } from "../../src/core/request/record.ts";
import type { Stage } from "../../src/core/request/stage.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { renderLateEffect } from "../../src/core/perform/late-look.ts";
import {
  renderAsked,
  renderCard,
  renderExpired,
  renderUnknownElsewhere,
} from "../../src/core/cards/render-card.ts";
import { renderNotice, renderResult } from "../../src/core/cards/render-result.ts";
import { renderRollout, renderRolloutEnd } from "../../src/features/rollouts/render-rollout.ts";
import type { StoredRollout } from "../../src/features/rollouts/rollout.ts";
import { consoleOpened } from "../../src/features/consoles/open-console.ts";
import { lostReply } from "../../src/talk/lost-replies.ts";
import { type About, type Kind, judgeOnLockedPhone, usual } from "./locked-phone.ts";
import { shownText } from "../commands/shown-text.ts";
import { knownVm } from "../support/known-vm.ts";
import { type Rest, called, stageOf, storedIn, vmTarget } from "../core/asking.ts";
import { thaw } from "../../src/features/freeze/thaw.ts";
import { reviewNotice, tellEnd } from "../../src/features/break-glass/tell-audit.ts";
import { reviewSigned } from "../../src/features/break-glass/sign-review.ts";

const at = Date.parse("2026-11-20T03:12:00Z");

function recordOf({ who, vm, why }: About, over: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id: "r-7fk3m9q2xw",
    command: "vm restore",
    input: { vm: `vm-payments-${vm}`, snapshot: "snap-42" },
    labels: { snapshot: "nightly" },
    snapshotAt: at - 82_000,
    target: vmTarget(vm),
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: who },
    channelId: "C01OPS",
    origin: { kind: "form", interaction: "1.1" },
    reason: why,
    policyVersion: "v1",
    approval: { required: 1, expiresAt: at, digest: "0".repeat(64), why: "a rule", evidence: [] },
    createdAt: at,
    runsUntil: at,
    ...over,
  };
}

const stored = (
  about: About,
  over: Partial<Rest> = {},
  stage: Stage = stageOf("draft"),
): StoredRequest =>
  storedIn(stage, { record: recordOf(about), attempt: 1, changedAt: at + 34_000, ...over });

const seen = (vm: string, status: string) =>
  ({ id: `vm-payments-${vm}`, name: vm, projectId: "prj-payments", status }) as const;

const sent = (about: About) => called({ sentAt: at, before: seen(about.vm, "RUNNING") });

const done = (about: About): StoredRequest =>
  stored(about, {}, stageOf("done", { ...sent(about), after: seen(about.vm, "RUNNING") }));

const unknown = (about: About): StoredRequest =>
  stored(about, {}, stageOf("unknown", { ...called({ sentAt: at }), why: "no clear answer came" }));

const denied = (about: About): StoredRequest => {
  const { why: reason } = about;
  const no = { voterId: "U0AMIR", name: "amir", vote: "deny", at, digest: "0", reason } as const;
  return stored(about, { votes: [no] }, stageOf("denied"));
};

/** Of a team: requested in another channel, two groups must approve, one has. */
const elsewhere = (about: About, stage?: Stage): StoredRequest => {
  const votes = [
    { from: ["S0LEADS"], required: 1 },
    { from: ["S0SECURITY"], required: 1 },
  ];
  const needs = [{ called: ["@pay-leads"] }, { called: ["@security"] }];
  const times = { expiresAt: at, remindsAt: at };
  const approval = { required: 2, digest: "0".repeat(64), why: "a rule", evidence: [], ...times };
  const asked = { teamChannel: "C0PAYOPS", approval: { ...approval, votes, needs } };
  const yes = { voterId: "U0AMIR", name: "amir", vote: "approve", at, digest: "0" } as const;
  return stored(about, { record: recordOf(about, asked), votes: [{ ...yes, meets: [0] }] }, stage);
};

const rolled = (about: About, over: Partial<StoredRollout> = {}): StoredRollout => ({
  record: {
    id: "roll-7fk3m9q2",
    command: "vm restart",
    input: {},
    words: "web-*",
    options: { maxUnavailable: 1, canary: false, stopOnFailure: 1 },
    total: 12,
    requester: { id: "U0OLIVIA", teamId: "T0OURS", name: about.who },
    channelId: "C01OPS",
    policyVersion: "v1",
    leftOut: [],
    createdAt: at,
  },
  targets: [vmTarget(about.vm)],
  outcomes: new Map(),
  state: "running",
  final: false,
  revision: 1,
  changedAt: at + 60_000,
  seenAt: at,
  progress: {
    next: 6,
    open: [{ n: 0, request: "r-7fk3m9q2xw" }],
    ok: 4,
    already: 0,
    failed: 1,
    startedAt: at,
  },
  delivered: { said: {}, isElsewhere: false },
  ...over,
});

const emergencyEnd = async (about: About): Promise<Message> => {
  const told: Message[] = [];
  const request = { ...done(about), record: recordOf(about, { breakGlass: true }) };
  await tellEnd(request, restore, async (_id, message) => void told.push(message));
  const [message] = told;
  if (!message) throw new Error("nothing was told");
  return message;
};

const review = ({ vm, why }: About) => ({
  request: "r-7fk3m9q2xw",
  command: "vm restore",
  target: vm,
  by: "U0ADA",
  reason: why,
});

const drifted = (about: About, is: "failed" | "recovered") =>
  renderDrift(knownVm(about.vm), {
    verdict: is === "failed" ? "failed" : "verified",
    reasons: ["the measurement matches no pin"],
  } as unknown as Parameters<typeof renderDrift>[1]);

const recap = (about: About) => {
  const outage = { id: "slack-1", part: "slack", since: at, until: at + 300_000 } as const;
  const told = renderRecap(outage, [done(about)], [], commands.filter(isChange));
  if (!told) throw new Error("nothing to tell");
  return told;
};

/** Every kind of message that notifies somebody: who reads it, and what the locked phone shows. */
const kinds: readonly Kind[] = [
  [
    "a request for approval",
    "approver",
    (about) => renderCard(stored(about), restore),
    "olivia asks to restore db-1 (payments) from nightly: “bad migration”. Data written in the 1 min 22 s before the request is lost. 1 s to decide.",
  ],
  [
    "a card",
    "channel",
    (about) => renderCard(stored(about, {}, stageOf("accepted", sent(about))), restart),
    "Restarting db-1 in payments…",
  ],
  [
    "a result",
    "requester",
    (about) => renderNotice("result", done(about), restore),
    "✅ Restored db-1 from nightly in 34 s.",
  ],
  [
    "a result that can't be confirmed",
    "requester",
    (about) =>
      renderNotice(
        "result",
        { ...done(about), record: recordOf(about, { input: { name: "nightly" } }) },
        snapshot,
      ),
    "⚠️ Snapshot of db-1 as nightly was accepted by the compute service; nothing more can be confirmed.",
  ],
  [
    "an unknown outcome",
    "requester",
    (about) => renderNotice("unknown", unknown(about), restore),
    "❓ Outcome unknown: did “Restore db-1 (payments) from nightly” happen? Check it, then record what happened.",
  ],
  [
    "a reminder of it",
    "requester",
    (about) => renderNotice("reminder-1", unknown(about), restore),
    "❓ Still unknown: did “Restore db-1 (payments) from nightly” happen? Check it, then record what happened.",
  ],
  [
    "a no",
    "requester",
    (about) => renderNotice("result", denied(about), restore),
    "❌ Restore of db-1 from nightly was denied by amir: “bad migration”.",
  ],
  [
    "its reason",
    "requester",
    (about) => renderNotice("denial", denied(about), restore),
    "amir denied it: “bad migration”",
  ],
  [
    "a request that its team decides elsewhere",
    "requester",
    (about) => renderAsked(elsewhere(about), restore, undefined),
    "Restore db-1 (payments) from nightly waits for approval in the channel of its team",
  ],
  [
    "what came of it",
    "requester",
    (about) =>
      renderResult({ ...elsewhere(about), ...done(about) }, restore, undefined, {
        isMentioned: true,
      }),
    "✅ Restored db-1 from nightly in 34 s.",
  ],
  [
    "a reminder half way",
    "approver",
    (about) => renderNotice("half-way", elsewhere(about), restore),
    "⏰ Restore db-1 (payments) from nightly still needs one of @\u2060security.",
  ],
  [
    "a request that expired",
    "requester",
    (about) => renderExpired(elsewhere(about, stageOf("expired")), restore, undefined),
    "Expired without approval: Restore db-1 (payments) from nightly. Nothing was sent.",
  ],
  [
    "an unknown outcome elsewhere",
    "team",
    (about) => renderUnknownElsewhere("unknown", unknown(about), restore, undefined),
    "❓ Outcome unknown: did “Restore db-1 (payments) from nightly” happen? Check it, then record what happened.",
  ],
  [
    "an effect that came late",
    "requester",
    (about) => renderLateEffect(done(about), seen(about.vm, "REBOOTING")),
    "⚠️ db-1 is REBOOTING by now: vm restore took effect late.",
  ],
  [
    "a rollout",
    "channel",
    (about) => renderRollout(rolled(about), restart),
    "Restart 12 VMs: 5 of 12 · 1 failed · 1 in progress",
  ],
  [
    "the end of a rollout",
    "requester",
    (about) => {
      const progress = { ...rolled(about).progress, open: [], why: `${about.vm}: it broke` };
      return renderRolloutEnd(rolled(about, { state: "failed", final: true, progress }), restart);
    },
    "Restart of 12 VMs was stopped after 1 min: db-1: it broke. 7 not touched. 5 of 12 · 1 failed",
  ],
  [
    "a freeze",
    "channels that wait",
    ({ who, why }) => freezeNews({ by: who, reason: why }, thaw, "ada"),
    "🧊 olivia froze all changes: bad migration. What was not sent yet won't run; reads still work. ada can allow changes again with /gatehouse thaw.",
  ],
  [
    "a thaw",
    "channels that wait",
    ({ who, why }) => thawNews(who, { by: "Gatehouse", reason: why }),
    "Changes are allowed again: olivia ended the freeze by Gatehouse (bad migration). Requests that it canceled have Request again on their messages.",
  ],
  [
    "a broken glass",
    "administrator",
    (about) => reviewNotice(review(about), `Restore ${about.vm} (payments)`, about.who),
    "Break-glass by olivia, without approval: Restore db-1 (payments): “bad migration”",
  ],
  [
    "what came of it",
    "administrator",
    emergencyEnd,
    "✅ Break-glass by olivia: Restored db-1 from nightly in 34 s.",
  ],
  [
    "its signed review",
    "who broke the glass",
    (about) => reviewSigned({ ...review(about), checked: "it was" }, about.who),
    "olivia signed the review of a break-glass: vm restore of db-1",
  ],
  [
    "a console",
    "channel",
    ({ vm, who }) => consoleOpened(vm, who, at),
    "olivia opened a console on db-1",
  ],
  [
    "a failed attestation",
    "alerts channel",
    (about) => drifted(about, "failed"),
    "🔴 Attestation of db-1 in shop failed: the measurement matches no pin.",
  ],
  [
    "its end",
    "alerts channel",
    (about) => drifted(about, "recovered"),
    "🟢 db-1 in shop: attestation is verified again.",
  ],
  [
    "a change that nobody requested",
    "alerts channel",
    ({ vm }) => renderUnasked([{ vm: knownVm(vm, "ERROR"), from: "RUNNING", key: "k" }], 60_000),
    "🔴 db-1 in shop went to ERROR, was RUNNING.",
  ],
  ["a recap", "channel", recap, "Slack was unavailable for 5 min: 1 request ran"],
  [
    "the head of the audit trail",
    "audit channel",
    () => renderHead({ seq: 1234, hash: "ab".repeat(32) }),
    "Head of the audit trail after 1,234 records",
  ],
  [
    "an answer that Slack lost",
    "requester",
    ({ vm }) => lostReply({ answered: name(`/vm list ${vm}`) }),
    "Slack lost Gatehouse's answer to /vm list db-1. Please try again.",
  ],
  [
    "a change that has not run, because Slack lost the answer to it",
    "requester",
    ({ vm }) => lostReply({ answered: name(`/vm restart ${vm}`), hasNotRun: true }),
    "/vm restart db-1 has not run: Slack was unavailable.",
  ],
];

judgeOnLockedPhone(kinds);

const shown = (title: Markdown) => asPost(card({ title })).text;

describe("what a locked phone shows", () => {
  it("is cut between words, and never inside of an escaped sign", () => {
    expect(shown(md`${"word ".repeat(60)}`)).toMatch(/^(word ){28}word…$/);
    expect(shown(md`${"&".repeat(80)}`)).toMatch(/^(&amp;)+…$/);
    expect(shown(md`${mention("U0ADA")} *done* ${name("x")} (r-7fk3m9q2xw)`)).toBe("done x");
  });

  it("names the VMs at work of a rollout", () => {
    expect(shownText(renderRollout(rolled(usual), restart))).toContain("In progress: db-1.");
  });
});
