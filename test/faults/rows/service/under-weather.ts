import type { Storm } from "../../../../sandbox/compute/weather.ts";
import type { Journalled } from "../../check/count-effects.ts";
import type { Stage } from "../../stage/stage.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";

/** Requests of each kind under one weather on their calls, `each` times; `ends` says how each must end. */
export function underWeather({
  weather,
  ends,
  each,
  transitionMs,
  ...row
}: Omit<Row, "run"> & {
  weather: Storm;
  each: number;
  /** How long a VM is STARTING, STOPPING, or REBOOTING. */
  transitionMs?: readonly [number, number];
  ends: (request: Journalled) => boolean;
}): Row {
  return {
    ...row,
    run: ({ seed }) =>
      onStage(
        { seed, workers: 2, vms: 40, ...(transitionMs ? { transitionMs } : {}) },
        async (stage) => {
          const take = fresh(stage);
          await stage.service.weather({ match: "writes", ...weather });
          for (let n = 0; n < each; n++) await askEach(stage, take);
          const journal = await stage.quiet();
          stage.faults += await struckCalls(stage);
          const wrong = journal.filter((request) => !ends(request));
          return judged(
            await stage.check(),
            wrong.map((one) => [
              `${one.command} does not end as ${one.state} (${one.stage.why ?? ""}) [${one.history.join(" ")}]`,
              false,
            ]),
          );
        },
      ),
  };
}

/** Calls that change something and were struck by the weather. */
export async function struckCalls(stage: Stage): Promise<number> {
  const writes = await stage.service.writes();
  return writes.filter(({ weather }) => weather.length > 0).length;
}

const isRestart = ({ command }: Journalled) => command === "vm restart";

/** Applied: what leaves a trace is found; a restart is found when its REBOOTING was seen, else it is unknown. */
export const found = (request: Journalled) =>
  request.state === "done" || (isRestart(request) && request.state === "unknown");

export const notFound = (request: Journalled) =>
  request.state === (isRestart(request) ? "unknown" : "not-applied");
