import { setTimeout as sleep } from "node:timers/promises";
import { createKeys } from "../../../../src/redis/redis.ts";
import { looking } from "../../stage/looking.ts";
import { pendingOf } from "../../../support/pending.ts";
import { askEach, type Expectation, fresh, judged, kinds, onStage, type Row } from "../row.ts";
import { found, notFound, underWeather } from "./under-weather.ts";
import type { Journalled } from "../../check/count-effects.ts";

const isDone = ({ state }: Journalled) => state === "done";

export const serviceRows: Row[] = [
  {
    id: "A1",
    fault: "connection refused for a while",
    must: "what was requested meanwhile is done afterwards",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        const vms = await Promise.all(kinds.map(async (kind) => [kind, await take(kind)] as const));
        for (const [kind, vm] of vms) await stage.request(kind, vm);
        stage.lines.compute.refuse(true);
        stage.faults += 1;
        const more = await askEach(stage, take);
        await sleep(2500);
        stage.lines.compute.refuse(false);
        const journal = await stage.quiet();
        const late = journal.filter(({ target }) => more.some((one) => one.target === target));
        return judged(
          await stage.check(),
          late.map((one): Expectation => [
            `${one.command} was done after the outage, not ${one.state}`,
            one.state === "done",
          ]),
        );
      }),
  },
  underWeather({
    id: "A2",
    fault: "applied, then the connection is reset",
    must: "reads find what was done",
    unknown: "no trace",
    weather: { lost: "after" },
    each: 3,
    ends: found,
  }),
  underWeather({
    id: "A3",
    fault: "reset before anything was applied",
    must: "reads prove it: not applied",
    unknown: "no trace",
    weather: { lost: "before", times: 3 },
    each: 1,
    ends: notFound,
  }),
  underWeather({
    id: "A4",
    fault: "500 after applying",
    must: "reads find what was done",
    unknown: "no trace",
    weather: { status: 500, applied: true },
    each: 3,
    ends: found,
  }),
  underWeather({
    id: "A5",
    fault: "500 before applying",
    must: "reads prove that nothing was applied",
    unknown: "no trace",
    weather: { status: 500 },
    each: 3,
    ends: notFound,
  }),
  underWeather({
    id: "A6",
    fault: "hangs, applies after the timeout, within the quiet period",
    must: "reads find what was done",
    unknown: "no trace",
    alone: "an effect some 300 ms before the quiet period ends",
    weather: { lateMs: 750, hang: "before", times: 9 },
    each: 3,
    ends: found,
  }),
  {
    id: "A7",
    fault: "hangs, applies after the quiet period",
    must: "no request has two effects; what was told as not applied is corrected",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, vms: 20 }, async (stage) => {
        const take = fresh(stage);
        // After the 1 s of quiet: reads said that nothing happened
        await stage.service.weather({ match: "writes", lateMs: 2200, hang: "before", times: 3 });
        stage.faults += 3;
        await askEach(stage, take);
        await stage.quiet();
        await looking(
          async () =>
            (await pendingOf(stage.redis, createKeys(stage.namespace), "late-look")) === 0 ||
            undefined,
          15_000,
          async () => "nobody looks once more",
        );
        await stage.quiet();
        const verdict = await stage.check();
        return judged(verdict, [["nothing was sent twice to an effect", verdict.twice === 0]], {});
      }),
  },
  underWeather({
    id: "A8",
    fault: "200 with HTML",
    must: "each is done: reads tell",
    unknown: "none",
    alone: "a REBOOTING of half a second that must be seen",
    transitionMs: [400, 600],
    weather: { answer: "html" },
    each: 3,
    ends: isDone,
  }),
  underWeather({
    id: "A8b",
    fault: "200 with half a JSON",
    must: "reads find what was done",
    unknown: "no trace",
    weather: { cut: "length" },
    each: 3,
    ends: found,
  }),
  underWeather({
    id: "A8c",
    fault: "204 with nothing",
    must: "each is done: reads tell",
    unknown: "none",
    alone: "a REBOOTING of half a second that must be seen",
    transitionMs: [400, 600],
    weather: { answer: "empty" },
    each: 3,
    ends: isDone,
  }),
];
