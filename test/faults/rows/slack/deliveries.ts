import { setTimeout as sleep } from "node:timers/promises";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";
import { pendingApprovals, tryPress, votesOf, voting } from "../../people/approvals.ts";
import { hears, looksAt, timesShown } from "../../people/hearing.ts";

export const slackRows: Row[] = [
  {
    id: "S1",
    fault: "the same command delivered four times, byte for byte",
    must: "one request or answer per command",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, receive: "http" }, async (stage) => {
        const take = fresh(stage);
        const asked = await askEach(stage, take);
        const vm = await take("vm show");
        const look = await looksAt(stage, vm);
        await hears(stage, "olivia", new RegExp(vm));
        for (const { deliveryId } of [...asked, look])
          for (let n = 0; n < 3; n++) {
            await stage.slack.question("redeliver", deliveryId);
            stage.faults += 1;
          }
        const journal = await stage.quiet();
        const shown = await timesShown(stage, vm);
        return judged(await stage.check(), [
          [`${journal.length} requests for ${asked.length} asks`, journal.length === asked.length],
          [`a VM is shown ${shown} times`, shown === 1],
        ]);
      }),
  },
  {
    id: "S2",
    fault: "an old delivery replayed after 301 s, and one dated an hour ahead (S3)",
    must: "each gets 401; one request",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, receive: "http", workers: 0 }, async (stage) => {
        const take = fresh(stage);
        const [asked] = await askEach(stage, take, ["vm stop"]);
        const seconds = Math.floor(Date.now() / 1000);
        const statuses: unknown[] = [];
        for (const atSeconds of [seconds - 302, seconds + 3600, seconds - 86_400]) {
          const outcome = await stage.slack.question<{ status?: number }>(
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
    fault: "forged: wrong secret, one byte changed, a header missing",
    must: "each gets 401; no request",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, receive: "http", workers: 0 }, async (stage) => {
        const seconds = Math.floor(Date.now() / 1000);
        const vm = await fresh(stage)("vm stop");
        const body = `command=%2Fvm&text=stop+${vm}&user_id=U0OLIVIA&team_id=T0&channel_id=C01OPS&trigger_id=1.2`;
        const good = await stage.slack.question<string>("sign", seconds, body);
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
            (await stage.slack.question<{ status: number }>("sendRaw", forged, headers)).status,
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
    fault: "50 simultaneous clicks on Approve",
    must: "one vote, one stop",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, policy: voting }, async (stage) => {
        const vm = await fresh(stage)("vm stop");
        await stage.request("vm stop", vm);
        const [pending] = await pendingApprovals(stage, 1);
        // The edit that takes the button away comes after the clicks
        await stage.slack.question("addWeather", {
          method: "chat.update",
          kind: "slow",
          ms: 2000,
          times: 1,
        });
        const clicks = await Promise.all(
          Array.from({ length: 50 }, () => tryPress(stage, "amir", pending)),
        );
        const clicked = clicks.filter((isThere) => isThere).length;
        stage.faults += clicked;
        const [request] = await stage.quiet();
        const votes = votesOf(request?.fields);
        return judged(await stage.check(), [
          [`${clicked} clicks`, clicked === 50],
          [`one vote, not ${votes}`, votes === 1],
          [`done, not ${request?.state}`, request?.state === "done"],
        ]);
      }),
  },
  {
    id: "S6",
    fault: "the ack takes 4 s; the person repeats it",
    must: "one restart",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, gateways: 1, workers: 1 }, async (stage) => {
        const vm = await fresh(stage)("vm restart");
        await stage.gateways()[0]?.arm({ point: "stored", do: "block", forMs: 4000 });
        stage.faults += 1;
        const first = await stage.request("vm restart", vm);
        const again = await stage.request("vm restart", vm);
        await sleep(500);
        await stage.quiet();
        const effects = (await stage.service.vm(vm)).restarts;
        return judged(await stage.check(), [
          ["the first ack was too late", !first.acked && again.acked],
          [`one restart, not ${effects}`, effects === 1],
        ]);
      }),
  },
  {
    id: "S7",
    fault: "Socket Mode is cut and the envelope redelivered",
    must: "one request per command",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, gateways: 2 }, async (stage) => {
        const take = fresh(stage);
        const asked = await askEach(stage, take);
        await stage.slack.question("disconnect", "cut");
        stage.faults += 1;
        await stage.slack.question("changed", 0, 50);
        await stage.connected(1);
        for (const { deliveryId } of asked) await stage.slack.question("redeliver", deliveryId);
        const journal = await stage.quiet();
        return judged(await stage.check(), [
          [`${journal.length} requests`, journal.length === asked.length],
        ]);
      }),
  },
];
