import { setTimeout as sleep } from "node:timers/promises";
import type { Weather } from "../../../src/sandbox/compute/weather.ts";
import {
  askEach,
  type Expectation,
  fresh,
  judged,
  kindsOf,
  onStage,
  type Row,
  type RowNotRun,
} from "../row.ts";
import type { Journalled } from "../count-effects.ts";

/** Three requests of each kind under one weather on their calls; how each kind must end. */
function underWeather(
  id: string,
  what: string,
  weather: Weather,
  ends: (request: Journalled) => boolean,
  more: { each?: number; mayBeUnknown?: boolean } = {},
): Row {
  return {
    id,
    what,
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", ...weather });
        for (let n = 0; n < (more.each ?? 3); n++) await askEach(stage, take);
        const journal = await stage.quiet();
        stage.faults += (await stage.service.writes()).filter(
          (call) => (call as { weather?: unknown[] }).weather?.length,
        ).length;
        const wrong = journal.filter((request) => !ends(request));
        return judged(
          await stage.check(),
          wrong.map((one): Expectation => [
            `${one.command} does not end as ${one.state} (${one.progress.why ?? ""}) [${one.history.join(" ")}]`,
            false,
          ]),
          { mayBeUnknown: more.mayBeUnknown ?? true },
        );
      }),
  };
}

const isRestart = ({ command }: Journalled) => command === "vm restart";
/** Applied: what leaves a trace is found; a restart is found when its REBOOTING was seen, else it is unknown. */
const found = (request: Journalled) =>
  request.state === "done" || (isRestart(request) && request.state === "unknown");
const notFoundOrAgain = (request: Journalled) =>
  isRestart(request)
    ? request.state === "unknown"
    : request.state === "done" || request.state === "not-applied";

export const serviceRows: (Row | RowNotRun)[] = [
  {
    id: "A1",
    what: "connection refused for a while",
    run: ({ seed }) =>
      onStage({ seed, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        const vms = await Promise.all(
          kindsOf(stage).map(async (kind) => [kind, await take(kind)] as const),
        );
        for (const [kind, vm] of vms) await stage.ask(kind, vm);
        stage.lines.compute.refuse(true);
        stage.faults += 1;
        const more = await askEach(stage, take);
        await sleep(2500);
        stage.lines.compute.refuse(false);
        const journal = await stage.quiet();
        const late = journal.filter(({ target }) => more.some((ask) => ask.target === target));
        return judged(
          await stage.check(),
          late.map((one): Expectation => [
            `${one.command} was done after the outage, not ${one.state}`,
            one.state === "done",
          ]),
          { mayBeUnknown: true },
        );
      }),
  },
  underWeather("A2", "applied, then the connection is reset", { lost: "after" }, found, {}),
  underWeather(
    "A3",
    "reset before anything was applied",
    { lost: "before", times: 3 },
    notFoundOrAgain,
    { each: 1 },
  ),
  underWeather("A4", "500 after applying", { status: 500, applied: true }, found),
  underWeather("A5", "500 before applying", { status: 500 }, (request) =>
    isRestart(request) ? request.state === "unknown" : request.state === "not-applied",
  ),
  underWeather(
    "A6",
    "hangs, applies after our time-out but before the time of quiet",
    { lateMs: 750, hang: "before", times: 9 },
    found,
  ),
  {
    id: "A7",
    what: "hangs, applies after the time of quiet",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, vms: 20 }, async (stage) => {
        const take = fresh(stage);
        // After the 1 s of quiet: reads said that nothing happened, and it was sent once more
        await stage.service.weather({ match: "writes", lateMs: 2200, hang: "before", times: 3 });
        stage.faults += 3;
        await askEach(stage, take);
        await stage.quiet();
        await sleep(1500);
        const verdict = await stage.check();
        // The service refuses the second effect of a start or stop by itself; a restart is never sent again
        return judged(verdict, [["nothing was sent twice to an effect", verdict.twice === 0]], {
          mayBeUnknown: true,
        });
      }),
  },
  underWeather("A8", "200 with HTML", { answer: "html" }, ({ state }) => state === "done"),
  underWeather("A8b", "200 with half a JSON", { cut: "length" }, found),
  underWeather("A8c", "204 with nothing", { answer: "empty" }, ({ state }) => state === "done"),
];
