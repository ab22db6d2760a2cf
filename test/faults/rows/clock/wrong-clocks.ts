import { untilClocksDiffer } from "../../stage/readiness.ts";
import { askEach, fresh, judged, kinds, onStage, type Row } from "../row.ts";
import { pendingApprovals, press, voting } from "../../people/approvals.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { answersTo, looksAt } from "../../people/hearing.ts";
import { until } from "../until.ts";
import { clockStepRows } from "./steps.ts";

const threeHoursMs = 3 * 3_600_000;

export const clockRows: Row[] = [
  {
    id: "C1",
    fault: "wall clocks of two workers three hours ahead and behind",
    must: "they take no work and say why; a third whose clock is right does it, and nothing expires",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        await Promise.all([
          stage.addBot("worker", { slot: "ahead", clockOffMs: threeHoursMs }),
          stage.addBot("worker", { slot: "behind", clockOffMs: -threeHoursMs }),
        ]);
        stage.faults += 2;
        for (let n = 0; n < 4; n++) await askEach(stage, take);
        await untilClocksDiffer(stage, 2);
        const sent = (await stage.service.writes()).length;
        await stage.addBot("worker");
        const journal = await stage.quiet();
        return judged(await stage.check(), [
          [`nothing was sent before the third came (${sent})`, sent === 0],
          [
            `none expired (${journal.map(({ state }) => state).join(" ")})`,
            journal.every(({ state }) => state !== "expired"),
          ],
        ]);
      }),
  },
  {
    id: "C1b",
    fault:
      "the clock of the only worker jumps three hours ahead and back, again and again, under load",
    must: "what it puts off meanwhile comes in time: every request is done, each schedule goes on",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, vms: 40, transitionMs: [600, 900] }, async (stage) => {
        const take = fresh(stage);
        const worker = await stage.addBot("worker", { clockOffMs: 0 });
        await stage.slack.edit("setGroupMembers", "oncall", ["olivia", "amir"]);
        for (let n = 0; n < 6; n++) {
          const vm = await take("vm restart");
          await stage.request("vm restart", vm);
          await stage.until(({ target, state }) => target === vm && state === "accepted");
          // It waits for the first one, so its job is put off again and again
          await stage.request("vm restart", vm, { who: "amir" });
          await stage.until((one) => one.target === vm && one.state === "authorized");
          await worker.setClock(threeHoursMs);
          stage.faults += 1;
          await untilClocksDiffer(stage, 1);
          await worker.setClock(0);
          await untilClocksDiffer(stage, 0);
        }
        const journal = await stage.quiet();
        const since = Date.now();
        const readAt = () =>
          stage.redis.hget(`{${stage.namespace}}:inventory:head`, "refreshedAt").then(Number);
        await until(async () => {
          const at = await readAt();
          return at > since && at < since + threeHoursMs / 2;
        });
        const readLater = Math.round(((await readAt()) - since) / 1000);
        return judged(await stage.check(), [
          [
            `all done (${journal.map(({ state }) => state).join(" ")})`,
            journal.length === 12 && journal.every(({ state }) => state === "done"),
          ],
          [
            `the fleet is read again, by a clock that is right (after ${readLater} s)`,
            readLater > 0 && readLater < 3600,
          ],
        ]);
      }),
  },
  {
    id: "C3",
    fault: "the worker's clock is 10 min behind between approval and execution",
    must: "it takes no work; what is too old stays too old",
    unknown: "none",
    run: ({ seed }) =>
      onStage(
        {
          seed,
          workers: 0,
          policy: voting,
          timing: { staleAfter: 1500, approvalExpires: 1500 },
        },
        async (stage) => {
          const take = fresh(stage);
          await askEach(
            stage,
            take,
            kinds.filter((kind) => kind !== "vm stop"),
          );
          await new Promise((resolve) => setTimeout(resolve, 2000));
          const behind = await stage.addBot("worker", { clockOffMs: -600_000 });
          stage.faults += 1;
          await untilClocksDiffer(stage, 1);
          const waiting = (await stage.journal()).map(({ state }) => state);
          await stage.addBot("worker");
          await behind.setClock(0);
          const journal = await stage.quiet();
          return judged(await stage.check(), [
            [
              `nothing was begun by its clock (${waiting.join(" ")})`,
              waiting.every((state) => state === "draft" || state === "authorized"),
            ],
            [
              `what is too old stays too old (${journal.map(({ state }) => state).join(" ")})`,
              journal.every(({ state }) => state === "expired"),
            ],
          ]);
        },
      ),
  },
  {
    id: "C3b",
    fault: "an approval too late by Redis' clock, the gateway's being 10 min behind",
    must: "the request expires",
    unknown: "none",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 0, gateways: 0, policy: voting.replace("60s", "1500ms") },
        async (stage) => {
          const gateway = await stage.addBot("gateway", { clockOffMs: 0 });
          await stage.connected(1);
          const vm = await fresh(stage)("vm stop");
          await stage.request("vm stop", vm);
          const [pending] = await pendingApprovals(stage, 1);
          await gateway.setClock(-600_000);
          stage.faults += 1;
          await untilClocksDiffer(stage, 1);
          await new Promise((resolve) => setTimeout(resolve, 2000));
          // No worker has taken the button away yet
          await press(stage, "amir", pending);
          await stage.addBot("worker");
          await stage.until(({ state }) => state !== "draft");
          const [request] = await stage.quiet();
          return judged(await stage.check(), [
            [`expired, not ${request?.state}`, request?.state === "expired"],
          ]);
        },
      ),
  },
  {
    id: "C3c",
    fault: "one of two gateways has a clock a minute behind, then eleven, then three hours ahead",
    must: "it goes on answering; the other one doesn't take over what is in hand, nor call it too late",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 0, gateways: 1 }, async (stage) => {
        const off = await stage.addBot("gateway", { clockOffMs: 0 });
        await stage.connected(2);
        const vms = (await stage.service.vms()).slice(0, 12).map(({ id }) => id);
        let asked = 0;
        for (const offMs of [-60_000, -660_000, threeHoursMs]) {
          await off.setClock(offMs);
          stage.faults += 1;
          await untilClocksDiffer(stage, 1);
          await Promise.all(vms.map((vm) => looksAt(stage, vm)));
          asked += vms.length;
          await until(async () => (await answersTo(stage, "olivia")).length >= asked);
        }
        // For longer than it takes to find a gateway dead
        await sleep(1_500);
        const answers = await answersTo(stage, "olivia");
        return judged(await stage.check(), [
          [`each of ${asked} is answered once (${answers.length})`, answers.length === asked],
          ["none came too late", answers.every((text) => vms.some((vm) => text.includes(vm)))],
        ]);
      }),
  },
  ...clockStepRows,
];
