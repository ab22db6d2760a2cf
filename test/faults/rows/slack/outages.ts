import { setTimeout as sleep } from "node:timers/promises";
import { takenDown } from "./taken-down.ts";
import { askEach, fresh, judged, kinds, onStage, type Row } from "../row.ts";
import type { Stage, StageOptions } from "../../stage/stage.ts";
import { pendingApprovals, press, votesOf, voting } from "../../people/approvals.ts";

export const slackOutageRows: Row[] = [
  {
    id: "S8",
    fault: "answers of chat.postMessage are lost",
    must: "each message is in Slack once: Gatehouse looks before it reposts",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed }, async (stage) => {
        const take = fresh(stage);
        await stage.slack.question("addWeather", {
          method: "chat.postMessage",
          kind: "lost-after",
          times: 4,
        });
        await stage.slack.question("addWeather", {
          method: "chat.update",
          kind: "lost-after",
          times: 2,
        });
        stage.faults += 6;
        await askEach(stage, take);
        await stage.quiet();
        return judged(await stage.check(), []);
      }),
  },
  {
    id: "S8b",
    fault: "the same at random, one in three, both ways",
    must: "each message is in Slack once",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, vms: 80, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        for (const kind of ["lost-after", "lost-before", "server-error"])
          await stage.slack.question("addWeather", {
            method: "chat.postMessage",
            kind,
            probability: 0.12,
          });
        await stage.slack.question("addWeather", {
          method: "chat.update",
          kind: "lost-after",
          probability: 0.2,
        });
        for (let n = 0; n < 15; n++) await askEach(stage, take);
        await stage.quiet(90_000);
        const calls = await stage.slack.calls();
        stage.faults += calls.filter(({ weather }) => weather !== undefined).length;
        return judged(await stage.check(), []);
      }),
  },
  {
    id: "S9",
    fault: "Slack's real limits, plus 429 with Retry-After",
    must: "Slack itself refuses at most three calls",
    unknown: "none",
    alone: "calls against Slack's limits per second",
    run: ({ seed }) =>
      onStage({ seed, realSlackPace: true, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        await stage.slack.question("addWeather", {
          method: "chat.postMessage",
          kind: "rate-limited",
          retryAfter: 3,
          times: 3,
        });
        stage.faults += 3;
        for (let n = 0; n < 5; n++)
          await askEach(stage, take, undefined, { channel: n % 2 ? "ops" : "status" });
        await stage.quiet(90_000);
        const limited = (await stage.slack.calls()).filter(
          ({ status, weather }) => status === 429 && weather === undefined,
        );
        return judged(await stage.check(), [
          [
            `Slack itself had to refuse ${limited.length} calls (${[...new Set(limited.map(({ method }) => method))].join(", ")})`,
            limited.length <= 3,
          ],
        ]);
      }),
  },
  {
    id: "S10",
    fault: "Slack is down during 100 requests",
    must: "each result is in Slack once, after its card",
    unknown: "none",
    run: ({ seed }) =>
      onStage(slowly(seed), async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 100; n++) {
          const command = kinds[n % kinds.length] ?? "";
          await stage.request(command, await take(command), {
            channel: n % 2 ? "ops" : "status",
          });
        }
        await takenDown(stage, 100);
        // They end while it is away: nobody could be told anything sooner
        stage.lines.slack.refuse(true);
        stage.faults += 1;
        await sleep(1500);
        // Nobody can be looked up any more, and nobody can be told so before Slack is back
        await askEach(stage, take, kinds, { channel: "ops" });
        await sleep(10_000);
        stage.lines.slack.refuse(false);
        const journal = await stage.quiet(90_000);
        const late = await saidTooEarly(stage);
        return judged(await stage.check(), [
          [`${journal.length} requests`, journal.length === 100],
          [`none out of order (${late.join(", ")})`, late.length === 0],
        ]);
      }),
  },
  {
    id: "S11",
    fault: "the card is deleted, the channel archived, the bot removed",
    must: "every request ends; its result is posted elsewhere",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0 }, async (stage) => {
        const take = fresh(stage);
        await askEach(stage, take, ["vm stop"], { channel: "ops" });
        await askEach(stage, take, ["vm restart"], { channel: "status" });
        await stage.request("vm stop", await take("vm stop"), { channel: "random" });
        await stage.until(
          (request) => request.fields["card"] !== undefined && request.command === "vm restart",
        );
        const cards = (await stage.journal()).map(({ fields, command }) => [
          command,
          ...(fields["card"] ?? "").split(" "),
        ]);
        const [, channel, ts] =
          cards.find(([command, place]) => command === "vm stop" && place === "C01OPS") ?? [];
        if (channel && ts) await stage.slack.edit("deleteMessage", channel, ts);
        await stage.slack.edit("removeBot", "status");
        stage.faults += 3;
        await stage.addBot("worker");
        const journal = await stage.quiet();
        const verdict = await stage.check();
        // The card that was deleted is missing, as it should be; every result stands somewhere
        const missing = verdict.findings.filter((finding) => !finding.endsWith("0 cards"));
        return judged(
          verdict,
          [
            ["all ended", journal.every(({ isFinal }) => isFinal)],
            [
              "what was moved elsewhere is marked",
              journal.some(({ fields }) => fields["fallback"] !== undefined),
            ],
          ],
          { instead: { silent: missing.length } },
        );
      }),
  },
  {
    id: "S13",
    fault: "Slack can't say who votes",
    must: "the vote doesn't count; the request waits",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, policy: voting }, async (stage) => {
        const vm = await fresh(stage)("vm stop");
        await stage.request("vm stop", vm);
        const [pending] = await pendingApprovals(stage, 1);
        await sleep(1200);
        for (const method of ["users.info", "usergroups.users.list", "usergroups.list"])
          await stage.slack.question("addWeather", { method, kind: "server-error" });
        stage.faults += 1;
        await press(stage, "amir", pending);
        await sleep(800);
        const [request] = await stage.journal();
        const votes = votesOf(request?.fields);
        await stage.slack.question("clearWeather");
        return judged(await stage.check(), [
          [
            `no vote counts (${votes}), still ${request?.state}`,
            votes === 0 && request?.state === "draft",
          ],
        ]);
      }),
  },
  {
    id: "S14",
    fault: "another app changes the words of a card",
    must: "only what was requested is done",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, policy: voting }, async (stage) => {
        const take = fresh(stage);
        const [a, b] = [await take("vm stop"), await take("vm stop")];
        await stage.request("vm stop", a);
        const [pending] = await pendingApprovals(stage, 1);
        await stage.slack.edit("tamper", "ops", pending?.ts ?? "", { text: `Stop ${b}: harmless` });
        stage.faults += 1;
        await press(stage, "amir", pending);
        await stage.quiet();
        const [onA, onB] = [await stage.service.vm(a), await stage.service.vm(b)];
        return judged(await stage.check(), [
          ["only what was asked is done", onA.stops === 1 && onB.stops === 0],
        ]);
      }),
  },
];

const slowly = (seed: number): StageOptions => ({
  seed,
  vms: 120,
  workers: 2,
  transitionMs: [5000, 8000],
  timing: { settleDeadline: 30_000 },
});

/** Requests whose result was said before their card stood. */
async function saidTooEarly(stage: Stage): Promise<string[]> {
  const order = new Map<string, string[]>();
  const messages = (await stage.slack.messages()).toSorted((a, b) => Number(a.ts) - Number(b.ts));
  for (const { metadata } of messages) {
    const { request, said, covers } = (metadata?.event_payload ?? {}) as Record<string, string>;
    // What belongs to no request has no order among its messages
    if (request && said && said !== "notice")
      order.set(request, [...(order.get(request) ?? []), said, ...(covers?.split(" ") ?? [])]);
  }
  return [...order]
    .filter(([id, said]) => said[0] !== "card" || (id.startsWith("r-") && said[1] !== "result"))
    .map(([request, said]) => `${request}: ${said.join(" ")}`);
}
