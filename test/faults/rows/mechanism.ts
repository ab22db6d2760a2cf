import { setTimeout as sleep } from "node:timers/promises";
import { noSetbacks } from "../../../src/core/request/stage.ts";
import { expected, fresh, judged, onStage, type Row } from "./row.ts";

/** Rows of our own: one for each safeguard that could be taken away unnoticed by the others (mutants.ts). */
export const mechanismRows: Row[] = [
  {
    id: "M1",
    fault: "two workers claim one request at the same moment",
    must: "one of them sends",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 3, transitionMs: [10, 20] }, async (stage) => {
        const take = fresh(stage);
        let together = 0;
        for (let n = 0; n < 4; n++) {
          const [one, two] = stage.workers();
          const before = [one, two].map((bot) => bot?.hits.length ?? 0);
          for (const bot of [one, two]) await bot?.arm({ point: "gated", do: "wait" });
          const vm = await take("vm restart");
          await stage.request("vm restart", vm);
          const request = await stage.until(({ target }) => target === vm);
          // Due again by hand while one worker has it, with jobs under other names, so that a second one takes it
          const { Queue } = await import("bullmq");
          const queue = new Queue("requests", {
            connection: stage.redis,
            prefix: `{${stage.namespace}}`,
          });
          for (let k = 0; k < 12; k++) {
            await stage.redis.zadd(`{${stage.namespace}}:pending`, 1, `step ${request.id}`);
            await queue.add(
              "step",
              { kind: "step", id: request.id },
              { jobId: `again-${request.id}-${k}`, removeOnComplete: true, removeOnFail: true },
            );
          }
          await sleep(400);
          together += [one, two].every((bot, k) => (bot?.hits.length ?? 0) > (before[k] ?? 0))
            ? 1
            : 0;
          one?.go();
          two?.go();
          stage.faults += 1;
          await stage.quiet();
          for (const bot of [one, two]) bot?.disarm();
        }
        return judged(await stage.check(), [
          [`both waited there in ${together} of 4 rounds`, together >= 1],
        ]);
      }),
  },
  {
    id: "M2",
    fault: "two requests for one VM at once",
    must: "both are done, one by one, without a conflict",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, transitionMs: [700, 900] }, async (stage) => {
        const take = fresh(stage);
        const vm = await take("vm restart");
        await stage.slack.edit("setGroupMembers", "oncall", ["olivia", "amir"]);
        const [worker] = stage.workers();
        await worker?.arm({ point: "send", do: "wait", forMs: 450 });
        await stage.request("vm restart", vm);
        await worker?.hit("send");
        await stage.request("vm restart", vm, { who: "amir" });
        stage.faults += 1;
        const journal = await stage.quiet();
        const calls = await stage.service.writes();
        return judged(await stage.check(), [
          [
            `two calls, neither a conflict (${calls.map(({ answer }) => answer).join(" ")})`,
            calls.length === 2 && calls.every(({ answer }) => answer !== 409),
          ],
          [
            `both done (${journal.map(({ state }) => state).join(" ")})`,
            journal.every(({ state }) => state === "done"),
          ],
        ]);
      }),
  },
  {
    id: "M3",
    fault: "a worker frozen between gate and claim",
    must: "nothing is sent",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const [worker] = stage.workers();
        await worker?.arm({ point: "gated", do: "wait" });
        await stage.request("vm restart", await fresh(stage)("vm restart"));
        await worker?.hit("gated");
        await stage.redis.set(
          `{${stage.namespace}}:freeze`,
          JSON.stringify({ by: "ada", reason: "row M3", at: 0 }),
        );
        stage.faults += 1;
        worker?.go();
        await stage.quiet();
        const calls = await stage.service.writes();
        return judged(await stage.check(), [
          [`nothing is sent (${calls.length})`, calls.length === 0],
        ]);
      }),
  },
  {
    id: "M4",
    fault: "the answer is lost at once; the effect comes within the quiet period",
    must: "both are done, each by one call",
    unknown: "none",
    alone: "an effect some 300 ms before the quiet period ends",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", lateMs: 700, times: 2 });
        stage.faults += 2;
        await stage.request("vm stop", await take("vm stop"));
        await stage.request("vm start", await take("vm start"));
        const journal = await stage.quiet();
        const calls = await stage.service.writes();
        return judged(await stage.check(), [
          [`nothing is sent again (${calls.length} calls)`, calls.length === 2],
          [
            `both done (${journal.map(({ state }) => state).join(" ")})`,
            journal.every(({ state }) => state === "done"),
          ],
        ]);
      }),
  },
  {
    id: "M5",
    fault: "the journal loses one send while the worker runs",
    must: "one restart",
    unknown: "not judged",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const vm = await fresh(stage)("vm restart");
        await stage.request("vm restart", vm);
        const { record = "" } = (await stage.until(() => true)).fields;
        const [request] = await stage.quiet();
        const key = `{${stage.namespace}}:request:${request?.id}`;
        stage.faults += 1;
        const [worker] = stage.workers();
        await worker?.arm({ point: "gated", do: "wait" });
        const facts = JSON.stringify({ setbacks: noSetbacks });
        // The comparison with the journal would freeze everything: the ledger alone is to be seen
        for (let n = 1; n <= Number(request?.fields["attempt"]); n++)
          await stage.redis.sadd(
            `{${stage.namespace}}:sends:looked-at`,
            `${request?.id} ${n} ${request?.fields[`claim:${n}`]}`,
          );
        await stage.redis
          .multi()
          .hset(key, { record, state: "authorized", final: "0", attempt: "0", stage: facts })
          .hincrby(key, "revision", 1)
          .zadd(`{${stage.namespace}}:requests:open`, Date.now(), request?.id ?? "")
          .exec();
        await worker?.hit("gated");
        worker?.go();
        await sleep(300);
        await stage.quiet();
        const { restarts } = await stage.service.vm(vm);
        return expected([[`one restart (${restarts})`, restarts === 1]]);
      }),
  },
  {
    id: "M6",
    fault: "a request is canceled right before its claim",
    must: "nothing is sent",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const [worker] = stage.workers();
        // The first call is turned away, so that its card says that it waits
        await stage.service.weather({ match: "writes", status: 429, times: 1 });
        await worker?.arm({ point: "gated", do: "wait", nth: 2 });
        await stage.request("vm restart", await fresh(stage)("vm restart"));
        await worker?.hit("gated", 20_000);
        const { fields } = await stage.until(
          (request) => request.fields["face"]?.startsWith("waiting") === true,
        );
        const [, ts = ""] = fields["card"]?.split(" ") ?? [];
        await stage.slack.act("olivia", "presses", "Cancel", { in: ts, channel: "ops" });
        const { state } = await stage.until(({ isFinal }) => isFinal);
        stage.faults += 1;
        worker?.go();
        await sleep(500);
        await stage.quiet();
        const calls = await stage.service.writes();
        return judged(await stage.check(), [
          [`canceled before the claim (${state})`, state === "cancelled"],
          [`nothing is sent after the 429 (${calls.length})`, calls.length === 1],
        ]);
      }),
  },
  {
    id: "M7",
    fault: "the only worker is frozen right before its call; meanwhile changes are frozen",
    must: "the call never leaves; the request is canceled",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const [worker] = stage.workers();
        await worker?.arm({ point: "send", do: "stop" });
        await stage.request("vm restart", await fresh(stage)("vm restart"));
        await worker?.hit("send");
        await stage.slack.act("ada", "types", "ops", "/gatehouse freeze row M7");
        await sleep(3000); // longer than a claim is good for
        stage.faults += 1;
        worker?.thaw();
        const [request] = await stage.quiet();
        const calls = await stage.service.writes();
        return judged(await stage.check(), [
          [`nothing is sent (${calls.length})`, calls.length === 0],
          [`canceled (${request?.state})`, request?.state === "cancelled"],
        ]);
      }),
  },
  {
    id: "M8",
    fault:
      "a gateway is frozen right before its request joins a shared card; another posts the request's own",
    must: "its result is told once",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, realSlackPace: true, gateways: 2, workers: 0 }, async (stage) => {
        const take = fresh(stage);
        const gateways = stage.gateways();
        for (const bot of gateways) await bot.arm({ point: "joining", do: "stop" });
        // The channel takes two cards at once
        for (let n = 0; n < 3; n++) await stage.request("vm restart", await take("vm restart"));
        const { bot, id } = await Promise.race(
          gateways.map(async (one) => ({ bot: one, id: (await one.hit("joining")).what })),
        );
        for (const other of gateways) if (other !== bot) other.disarm();
        stage.faults += 1;
        const isPosted = ({ fields }: { fields: Record<string, string> }) =>
          /^\d+\.\d+$/.test(fields["said:card"] ?? "");
        await stage.until((request) => request.id === id && isPosted(request), 20_000);
        bot.thaw();
        await sleep(1000);
        await stage.addBot("worker");
        const journal = await stage.quiet(60_000);
        return judged(await stage.check(), [
          ["its own card stays", journal.some((one) => one.id === id && isPosted(one))],
        ]);
      }),
  },
];
