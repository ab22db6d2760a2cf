import { setTimeout as sleep } from "node:timers/promises";
import { askEach, fresh, judged, kindsOf, onStage, type Row, type RowNotRun } from "../row.ts";
import { pendingApprovals, voting } from "../approving.ts";

export const slackRows: (Row | RowNotRun)[] = [
  {
    id: "S1",
    what: "the same command delivered three times more, byte for byte",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, receive: "http" }, async (stage) => {
        const take = fresh(stage);
        const asked = await askEach(stage, take);
        for (const { deliveryId } of asked)
          for (let n = 0; n < 3; n++) {
            await stage.slack.ask("redeliver", deliveryId);
            stage.faults += 1;
          }
        const journal = await stage.quiet();
        return judged(
          await stage.check(),
          [
            [
              `${journal.length} requests for ${asked.length} asks`,
              journal.length === asked.length,
            ],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "S2",
    what: "an old delivery replayed after 301 s; S3: one dated an hour ahead",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, receive: "http", workers: 0 }, async (stage) => {
        const take = fresh(stage);
        const [asked] = await askEach(stage, take, ["vm stop"]);
        const seconds = Math.floor(Date.now() / 1000);
        const statuses: unknown[] = [];
        for (const atSeconds of [seconds - 302, seconds + 3600, seconds - 86_400]) {
          const outcome = await stage.slack.ask<{ status?: number }>(
            "redeliver",
            asked?.deliveryId,
            { atSeconds },
          );
          statuses.push(outcome.status);
          stage.faults += 1;
        }
        await stage.addBot("worker");
        const journal = await stage.quiet();
        return judged(await stage.check(), [
          [`all 401 (${statuses.join(" ")})`, statuses.every((status) => status === 401)],
          ["one request", journal.length === 1],
        ]);
      }),
  },
  {
    id: "S4",
    what: "forged: wrong secret, one byte changed, a header missing",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, receive: "http", workers: 0 }, async (stage) => {
        const seconds = Math.floor(Date.now() / 1000);
        const vm = await fresh(stage)("vm stop");
        const body = `command=%2Fvm&text=stop+${vm}&user_id=U0OLIVIA&team_id=T0&channel_id=C01OPS&trigger_id=1.2`;
        const good = await stage.slack.ask<string>("sign", seconds, body);
        const type = { "content-type": "application/x-www-form-urlencoded" };
        const time = { "x-slack-request-timestamp": String(seconds) };
        const tries: [string, Record<string, string>][] = [
          [body, { ...type, ...time, "x-slack-signature": `v0=${"0".repeat(64)}` }],
          [body.replace("stop", "stoq"), { ...type, ...time, "x-slack-signature": good }],
          [body, { ...type, "x-slack-signature": good }],
          [body, { ...type, ...time }],
          [body, { ...type, ...time, "x-slack-signature": `${good}, ${good}` }],
        ];
        const bytes = Buffer.from(body);
        for (let at = 0; at < bytes.length; at += 3) {
          const changed = Buffer.from(bytes);
          changed[at] = (changed[at] ?? 0) ^ 1;
          tries.push([changed.toString("latin1"), { ...type, ...time, "x-slack-signature": good }]);
        }
        const statuses: number[] = [];
        for (const [forged, headers] of tries) {
          stage.faults += 1;
          statuses.push(
            (await stage.slack.ask<{ status: number }>("sendRaw", forged, headers)).status,
          );
        }
        return judged(await stage.check(), [
          [
            `${statuses.filter((status) => status !== 401).length} of ${tries.length} were not 401`,
            statuses.every((status) => status === 401),
          ],
          ["no request", (await stage.journal()).length === 0],
        ]);
      }),
  },
  {
    id: "S5",
    what: "50 clicks on Approve on top of each other",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, policy: voting }, async (stage) => {
        const vm = await fresh(stage)("vm stop");
        await stage.ask("vm stop", vm);
        const [pending] = await pendingApprovals(stage, 1);
        await Promise.all(
          Array.from({ length: 50 }, async () => {
            stage.faults += 1;
            await stage.slack
              .act("amir", "presses", "Approve", { in: pending?.ts ?? "", channel: "ops" })
              .catch(() => undefined);
          }),
        );
        const [request] = await stage.quiet();
        const votes = Object.keys(request?.fields ?? {}).filter((field) =>
          field.startsWith("vote:"),
        );
        return judged(await stage.check(), [
          [`one vote, not ${votes.length}`, votes.length === 1],
          [`done, not ${request?.state}`, request?.state === "done"],
        ]);
      }),
  },
  {
    id: "S6",
    what: "the ack takes 4 s; the person types it again",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed, gateways: 1, workers: 1 }, async (stage) => {
        const vm = await fresh(stage)("vm restart");
        await stage.gateways()[0]?.arm({ point: "intake", do: "block", forMs: 4000 });
        stage.faults += 1;
        const first = await stage.ask("vm restart", vm);
        const again = await stage.ask("vm restart", vm);
        await sleep(500);
        await stage.quiet();
        const effects = (await stage.service.vm(vm)).restarts;
        return judged(
          await stage.check(),
          [
            ["the first ack was too late", !first.acked && again.acked],
            [`one restart, not ${effects}`, effects === 1],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "S7",
    what: "Socket Mode is cut and the envelope delivered again",
    run: ({ seed }) =>
      onStage({ seed, gateways: 2 }, async (stage) => {
        const take = fresh(stage);
        const asked = await askEach(stage, take);
        await stage.slack.ask("disconnect", "cut");
        stage.faults += 1;
        await stage.slack.ask("changed", 0, 50);
        for (
          let tries = 0;
          tries < 100 && (await stage.slack.ask<number>("connections")) === 0;
          tries++
        )
          await sleep(100);
        for (const { deliveryId } of asked) await stage.slack.ask("redeliver", deliveryId);
        const journal = await stage.quiet();
        return judged(
          await stage.check(),
          [[`${journal.length} requests`, journal.length === asked.length]],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "S8",
    what: "answers of chat.postMessage are lost",
    quick: true,
    run: ({ seed }) =>
      onStage({ seed }, async (stage) => {
        const take = fresh(stage);
        await stage.slack.ask("addWeather", {
          method: "chat.postMessage",
          kind: "lost-after",
          times: 4,
        });
        await stage.slack.ask("addWeather", {
          method: "chat.update",
          kind: "lost-after",
          times: 2,
        });
        stage.faults += 6;
        await askEach(stage, take);
        await stage.quiet();
        return judged(await stage.check(), [], { mayBeUnknown: true });
      }),
  },
  {
    id: "S8b",
    what: "answers of chat.postMessage are lost at random, one in three, both ways",
    run: ({ seed }) =>
      onStage({ seed, vms: 80, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        for (const kind of ["lost-after", "lost-before", "server-error"])
          await stage.slack.ask("addWeather", {
            method: "chat.postMessage",
            kind,
            probability: 0.12,
          });
        await stage.slack.ask("addWeather", {
          method: "chat.update",
          kind: "lost-after",
          probability: 0.2,
        });
        for (let n = 0; n < 15; n++) await askEach(stage, take);
        await stage.quiet(90_000);
        const calls = await stage.slack.calls();
        stage.faults += calls.filter(({ weather }) => weather !== undefined).length;
        return judged(await stage.check(), [], { mayBeUnknown: true });
      }),
  },
  {
    id: "S9",
    what: "Slack's real limits, and 429 with Retry-After on top",
    run: ({ seed }) =>
      onStage({ seed, realSlackPace: true, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        await stage.slack.ask("addWeather", {
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
        return judged(
          await stage.check(),
          [[`Slack itself had to refuse ${limited.length} calls`, limited.length <= 3]],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "S10",
    what: "Slack is down during 60 requests",
    run: ({ seed }) =>
      onStage({ seed, vms: 80, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        const kinds = kindsOf(stage);
        for (let n = 0; n < 60; n++) {
          const command = kinds[n % kinds.length] ?? "";
          await stage.ask(command, await take(command), { channel: n % 2 ? "ops" : "status" });
          // People are still known for a second, so those asked just before still run
          if (n === 20) {
            stage.lines.slack.refuse(true);
            stage.faults += 1;
          }
        }
        await sleep(6000);
        stage.lines.slack.refuse(false);
        const journal = await stage.quiet(90_000);
        return judged(
          await stage.check(),
          [[`${journal.length} requests`, journal.length === 60]],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "S11",
    what: "the card is deleted, the channel archived, the bot removed",
    run: ({ seed }) =>
      onStage({ seed, workers: 0 }, async (stage) => {
        const take = fresh(stage);
        await askEach(stage, take, ["vm stop"], { channel: "ops" });
        await askEach(stage, take, ["vm restart"], { channel: "status" });
        await stage.ask("vm stop", await take("vm stop"), { channel: "random" });
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
        return {
          ...judged(
            { ...verdict, silent: missing.length },
            [
              ["all ended", journal.every(({ isFinal, state }) => isFinal || state === "unknown")],
              [
                "what was moved elsewhere is marked",
                journal.some(({ fields }) => fields["fallback"] !== undefined),
              ],
            ],
            { mayBeUnknown: true },
          ),
          verdict,
        };
      }),
  },
  {
    id: "S13",
    what: "Slack can't say who votes",
    run: ({ seed }) =>
      onStage({ seed, policy: voting }, async (stage) => {
        const vm = await fresh(stage)("vm stop");
        await stage.ask("vm stop", vm);
        const [pending] = await pendingApprovals(stage, 1);
        await sleep(1200);
        for (const method of ["users.info", "usergroups.users.list", "usergroups.list"])
          await stage.slack.ask("addWeather", { method, kind: "server-error" });
        stage.faults += 1;
        await stage.slack.act("amir", "presses", "Approve", {
          in: pending?.ts ?? "",
          channel: "ops",
        });
        await sleep(800);
        const [request] = await stage.journal();
        const votes = Object.keys(request?.fields ?? {}).filter((field) =>
          field.startsWith("vote:"),
        );
        await stage.slack.ask("clearWeather");
        return judged(await stage.check(), [
          [
            `no vote counts (${votes.length}), still ${request?.state}`,
            votes.length === 0 && request?.state === "draft",
          ],
        ]);
      }),
  },
  {
    id: "S14",
    what: "another app changes the words of a card; the vote is still on what was asked",
    run: ({ seed }) =>
      onStage({ seed, policy: voting }, async (stage) => {
        const take = fresh(stage);
        const [a, b] = [await take("vm stop"), await take("vm stop")];
        await stage.ask("vm stop", a);
        const [pending] = await pendingApprovals(stage, 1);
        await stage.slack.edit("tamper", "ops", pending?.ts ?? "", { text: `Stop ${b}: harmless` });
        stage.faults += 1;
        await stage.slack.act("amir", "presses", "Approve", {
          in: pending?.ts ?? "",
          channel: "ops",
        });
        await stage.quiet();
        const [onA, onB] = [await stage.service.vm(a), await stage.service.vm(b)];
        return judged(await stage.check(), [
          ["only what was asked is done", onA.stops === 1 && onB.stops === 0],
        ]);
      }),
  },
];
