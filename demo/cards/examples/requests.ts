import { restart } from "../../../src/commands/vm/restart.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import {
  renderAsked,
  renderCard,
  renderExpired,
  renderSharedCard,
  renderSharedResult,
  renderStaleCard,
  renderUnknownElsewhere,
} from "../../../src/core/cards/render-card.ts";
import { renderNotice, renderResult } from "../../../src/core/cards/render-result.ts";
import { renderLateEffect } from "../../../src/core/perform/late-look.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import { md } from "../../../src/messages/markdown.ts";
import { idModal, reasonModal } from "../../../src/talk/vote.ts";
import { type About, type Example, at } from "../example.ts";
import { longName, longReason } from "../long-lists.ts";
import {
  called,
  denied,
  done,
  each,
  elsewhere,
  recordOf,
  seenAs,
  sent,
  stageOf,
  stored,
  unknown,
  vmTarget,
} from "../requests.ts";

const link = "https://sandbox.slack.com/archives/C01OPS/p1";

const inStage = (about: About, stage: Stage) => renderCard(stored(about, {}, stage), stop);

/** Requests of one person that share a card. */
const membersIn = ({ who, vm }: About, ...states: readonly ("accepted" | "done" | "rejected")[]) =>
  states.map((state, n) => {
    const about = { who, vm: states.length > 1 ? `${vm}-${n + 1}` : vm, why: "" };
    const { reason: _none, ...record } = recordOf(about, { id: `r-7fk3m9q2x${n}` });
    const stage = stageOf(state, sent(about));
    const delivered = { marks: { card: "shared s-1" } };
    return { request: stored(about, { record, delivered }, stage), command: stop };
  });

export const examples: readonly Example[] = [
  {
    name: "a request for approval",
    reader: "approver",
    make: (about) =>
      renderCard(stored(about), stop, ["S02LEADS"], {
        since: [md`*${about.vm}* was restarted by ada at 4:10 AM`],
      }),
    push: "olivia asks to stop db-1 (payments): “bad migration”. ⚠️ This interrupts what runs on db-1. 15 min to decide.",
  },
  {
    name: "a card of a request that was just made",
    make: (about) => inStage(about, stageOf("authorized")),
  },
  {
    name: "a card",
    reader: "channel",
    make: (about) => renderCard(stored(about, {}, stageOf("accepted", sent(about))), restart),
    push: "Restarting db-1 in payments…",
  },
  {
    name: "a card that waits for another request",
    make: (about) =>
      inStage(
        about,
        stageOf("authorized", {
          why: "another request is under way",
          setbacks: {
            ...stageOf("authorized").setbacks,
            holder: { request: "r-4cd8n2v7aa", command: "vm restart", requesterName: "ada" },
          },
        } as never),
      ),
  },
  {
    name: "a card without a clear answer",
    make: (about) =>
      inStage(
        about,
        stageOf("unclear", called({ sentAt: at, answer: { class: "unclear", status: 502 } })),
      ),
  },
  {
    name: "a card with an unknown outcome",
    make: (about) => renderCard(unknown(about), stop),
  },
  {
    name: "a card of a change that is done",
    make: (about) => renderCard(done(about, { command: "vm restart" }), restart),
  },
  {
    name: "a card of a change that failed",
    make: (about) =>
      inStage(about, stageOf("failed", { ...sent(about), after: seenAs(about.vm, "ERROR") })),
  },
  {
    name: "a card of a change that was refused",
    make: (about) => inStage(about, stageOf("rejected", sent(about))),
  },
  {
    name: "a card of a change that had no effect",
    make: (about) => inStage(about, stageOf("not-applied", sent(about))),
  },
  { name: "a card of a denied request", make: (about) => renderCard(denied(about), stop) },
  { name: "a card that expired", make: (about) => inStage(about, stageOf("expired")) },
  { name: "a card that was canceled", make: (about) => inStage(about, stageOf("cancelled")) },
  {
    name: "a result",
    reader: "requester",
    make: (about) => renderResult(done(about, { command: "vm restart" }), restart),
    push: "✅ Restarted db-1 in 34 s.",
  },
  {
    name: "a result in its thread",
    make: (about) =>
      renderResult(done(about, { command: "vm restart" }), restart, undefined, { above: "card" }),
  },
  {
    name: "an unknown outcome",
    reader: "requester",
    make: (about) => renderNotice("unknown", unknown(about), stop),
    push: "❓ Outcome unknown: did “Stop db-1 (payments)” happen? Check it, then record what happened.",
  },
  {
    name: "a reminder of an unknown outcome",
    reader: "requester",
    make: (about) => renderNotice("reminder-1", unknown(about), stop),
    push: "❓ Still unknown: did “Stop db-1 (payments)” happen? Check it, then record what happened.",
  },
  {
    name: "a no",
    reader: "requester",
    make: (about) => renderResult(denied(about), stop),
    push: "❌ Stop of db-1 was denied by amir: “bad migration”.",
  },
  {
    name: "the reason of a no",
    reader: "requester",
    make: (about) => renderNotice("denial", denied(about), stop),
    push: "amir denied it: “bad migration”",
  },
  {
    name: "a request that its team decides elsewhere",
    reader: "requester",
    make: (about) => renderAsked(elsewhere(about), stop, link),
    push: "Stop db-1 (payments) waits for approval in the channel of its team",
  },
  {
    name: "a request that runs elsewhere",
    make: (about) => renderAsked(elsewhere(about, stageOf("accepted", sent(about))), stop, link),
  },
  {
    name: "what came of a request that was decided elsewhere",
    reader: "requester",
    make: (about) =>
      renderResult(
        { ...elsewhere(about), ...done(about, { command: "vm restart" }) },
        restart,
        undefined,
        {
          isMentioned: true,
        },
      ),
    push: "✅ Restarted db-1 in 34 s.",
  },
  {
    name: "a reminder half way",
    reader: "approver",
    make: (about) => renderNotice("half-way", elsewhere(about), stop),
    push: "⏰ Stop db-1 (payments) still needs one of @\u2060security.",
  },
  {
    name: "a request that expired",
    reader: "requester",
    make: (about) => renderExpired(elsewhere(about, stageOf("expired")), stop, link),
    push: "Expired without approval: Stop db-1 (payments). Nothing was sent.",
  },
  {
    name: "an unknown outcome elsewhere",
    reader: "team",
    make: (about) => renderUnknownElsewhere("unknown", unknown(about), stop, link),
    push: "❓ Outcome unknown: did “Stop db-1 (payments)” happen? Check it, then record what happened.",
  },
  {
    name: "an effect that came late",
    reader: "requester",
    make: (about) => renderLateEffect(done(about), seenAs(about.vm, "REBOOTING")),
    push: "⚠️ db-1 is REBOOTING by now: vm stop took effect late.",
  },
  {
    name: "a card that several requests share",
    make: (about) => renderSharedCard(membersIn(about, "accepted", "done", "rejected")),
  },
  {
    name: "a card that several requests share, at their end",
    make: (about) =>
      renderSharedCard(membersIn(about, "done", "rejected"), [
        membersIn(about, "done", "rejected"),
      ]),
  },
  {
    name: "a card that 60 requests share",
    make: ({ who }) =>
      renderSharedCard(
        each(60, (n) => {
          const [member] = membersIn({ who, vm: longName(n), why: "" }, "rejected");
          if (!member) throw new Error("no request");
          const stage = stageOf("rejected", { ...called({ sentAt: at }), why: longReason });
          return { ...member, request: { ...member.request, stage } as typeof member.request };
        }),
      ),
  },
  {
    name: "a result of several requests",
    reader: "requester",
    make: (about) => renderSharedResult([membersIn(about, "done", "done", "rejected")]),
    push: "❌ 2 of 3 done, 1 not.",
  },
  {
    name: "an answer to a press of a card that can't be changed any more",
    make: (about) => renderStaleCard(stored(about), stop, { isAnew: true }),
  },
  {
    name: "the form that records an unknown outcome",
    make: (about) => reasonModal(unknown(about), stop, { happened: true, seesAll: true }),
  },
  {
    name: "the form that adds the ID of a snapshot",
    make: (about) =>
      idModal(
        stored(about, {
          record: recordOf(about, { input: { name: "nightly" }, target: vmTarget(about.vm) }),
        }),
        { seesAll: false },
      ),
  },
];
