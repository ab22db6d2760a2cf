import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pendingApprovals, pressUntilTaken, tryPress, voting } from "../../people/approvals.ts";
import { askEach, fresh, judged, onStage, type Row, type Story } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import { untilClocksDiffer } from "../../stage/readiness.ts";
import { sendWhileStepping } from "./signed-volley.ts";
import { steppedClock } from "../../stage/step-clock.ts";

const minute = 60_000;

type ClockOfRedis = Exclude<Awaited<ReturnType<typeof steppedClock>>, string>;

/** A gateway and two workers, and a Redis whose host has a clock of its own. */
async function withClockOfRedis(
  options: { seed: number; policy?: string },
  story: (stage: Stage, clock: ClockOfRedis) => Promise<Story>,
): Promise<Story> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-clock-"));
  try {
    const clock = await steppedClock(folder);
    if (typeof clock === "string") return { wrong: [], notes: [], notRun: clock };
    const redis = { env: clock.env, args: clock.args };
    return await onStage(
      { ...options, workers: 0, gateways: 0, vms: 40, redis, transitionMs: [400, 900] },
      async (stage) => {
        for (const role of ["gateway", "worker", "worker"] as const)
          await stage.addBot(role, { clockOffMs: 0 });
        await stage.connected(1);
        return story(stage, clock);
      },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const clockStepRows: Row[] = [
  {
    id: "C2",
    fault: "the clock of Redis' host jumps 10 min ahead under load; the other clocks follow",
    must: "no process takes work meanwhile; then all goes on",
    // The jump passes the deadline of everything in progress: what has not settled by then is left to a person
    unknown: "any",
    run: ({ seed }) =>
      withClockOfRedis({ seed, policy: voting }, async (stage, clock) => {
        const take = fresh(stage);
        const others = ["vm start", "vm restart"];
        const [waits] = await askEach(stage, take, ["vm stop"]);
        const [pending] = await pendingApprovals(stage, 1);
        for (let n = 0; n < 4; n++) await askEach(stage, take, others);
        await stage.until(({ state }) => state === "accepted" || state === "sending");
        const [before] = await stage.redis.time();
        await clock.set(10 * minute);
        stage.faults += 1;
        const [after] = await stage.redis.time();
        await untilClocksDiffer(stage, stage.bots.length);
        const isThere = await tryPress(stage, "amir", pending);
        // Slack tells whoever typed what it couldn't deliver
        const meanwhile = (await askEach(stage, take, others)).filter(({ acked }) => acked);
        for (const { target } of meanwhile)
          await stage.until((one) => one.target === target && one.state === "authorized");
        const isMeanwhile = (one: { target: string }) =>
          meanwhile.some(({ target }) => target === one.target);
        const held = (await stage.journal()).filter(isMeanwhile).map(({ state }) => state);
        for (const bot of stage.bots) await bot.setClock(10 * minute);
        await untilClocksDiffer(stage, 0);
        for (let n = 0; n < 2; n++) await askEach(stage, take, others);
        const [asked] = await askEach(stage, take, ["vm stop"]);
        await stage.until(
          ({ target, fields }) => target === asked?.target && fields["card"] !== undefined,
        );
        const later = (await pendingApprovals(stage, 1)).find(
          ({ target }) => target === asked?.target,
        );
        await pressUntilTaken(stage, "amir", later);
        const journal = await stage.quiet(45_000);
        const stateOf = (target?: string) => journal.find((one) => one.target === target)?.state;
        const verdict = await stage.check();
        return judged(
          verdict,
          [
            [
              `Redis is 10 min further (${Number(after) - Number(before)} s)`,
              Number(after) - Number(before) >= 600,
            ],
            [
              `the approval came too late by then (${stateOf(waits?.target)})`,
              stateOf(waits?.target) !== "done",
            ],
            [
              `nothing that was asked for meanwhile was begun (${held.join(" ")})`,
              held.every((state) => state === "authorized"),
            ],
            [
              "it was done afterwards",
              meanwhile.length > 0 && meanwhile.every(({ target }) => stateOf(target) === "done"),
            ],
            [
              `one that was asked for after it is done (${stateOf(asked?.target)})`,
              stateOf(asked?.target) === "done",
            ],
          ],
          {
            // A worker may have taken the buttons away before; C3b makes sure that none does
            notes: [`the button was ${isThere ? "" : "not "}there`, JSON.stringify(verdict.ends)],
          },
        );
      }),
  },
  {
    id: "C2b",
    fault: "the clock of Redis' host jumps 10 min ahead, requests are made, and it jumps back",
    must: "they are done within seconds after that, not after 10 min",
    // The jump ahead passes the deadline of what is in progress
    unknown: "any",
    run: ({ seed }) =>
      withClockOfRedis({ seed }, async (stage, clock) => {
        const take = fresh(stage);
        const kinds = ["vm start", "vm restart"];
        for (let n = 0; n < 4; n++) await askEach(stage, take, kinds);
        await stage.until(({ state }) => state === "accepted" || state === "sending");
        await clock.set(10 * minute);
        stage.faults += 1;
        await untilClocksDiffer(stage, stage.bots.length);
        const meanwhile: Awaited<ReturnType<typeof askEach>> = [];
        for (let n = 0; n < 3; n++) {
          const asked = await askEach(stage, take, kinds);
          meanwhile.push(...asked.filter(({ acked }) => acked));
        }
        for (const { target } of meanwhile)
          await stage.until((one) => one.target === target && one.state === "authorized");
        await clock.set(0);
        stage.faults += 1;
        const backAt = performance.now();
        for (const { target } of meanwhile)
          await stage.until((one) => one.target === target && one.state === "done");
        const seconds = Math.round((performance.now() - backAt) / 1000);
        // Requests that were in progress end, too
        await stage.quiet(45_000);
        return judged(
          await stage.check(),
          [[`what was asked for meanwhile is done ${seconds} s later`, seconds <= 20]],
          { notes: [`${seconds} s`] },
        );
      }),
  },
  {
    id: "C5",
    fault: "the clock steps by 2 s, back and forth, while deliveries 297 to 303 s old arrive",
    must: "each is taken or refused by its age; what is taken is one request",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, gateways: 0, receive: "http" }, async (stage) => {
        const gateway = await stage.addBot("gateway", { clockOffMs: 0 });
        const [sample] = await askEach(stage, fresh(stage), ["vm restart"]);
        const sent = await sendWhileStepping(stage, gateway, sample?.deliveryId ?? "");
        await stage.addBot("worker");
        await stage.quiet();
        const journal = await stage.journal();
        const wrong = sent.filter(({ must, status: got }) =>
          must ? got !== must : got !== 200 && got !== 401,
        );
        const targets = [...new Set(sent.map(({ vm }) => vm))];
        const requests = targets.map((vm) => journal.filter(({ target }) => target === vm).length);
        const wanted = targets.map((vm) =>
          sent.some((one) => one.vm === vm && one.status === 200) ? 1 : 0,
        );
        const count = (must?: number) => sent.filter((one) => one.must === must).length;
        return judged(
          await stage.check(),
          [
            [`refused and taken as their age says: ${JSON.stringify(wrong)}`, wrong.length === 0],
            [
              "some on either side, some in between",
              [200, 401, undefined].every((must) => count(must) > 0),
            ],
            [
              `one request for what was taken, none else: ${requests.join("")}`,
              requests.join() === wanted.join(),
            ],
            ["the gateway lives", !gateway.isGone()],
          ],
          {
            notes: [`${count(200)} surely young, ${count(401)} surely old, ${count()} in between`],
          },
        );
      }),
  },
];
