import { looking } from "./looking.ts";
import type { Stage } from "./stage.ts";

/** What every gateway and worker says of itself. */
export async function readiness(stage: Stage): Promise<string[]> {
  return Promise.all(
    stage.bots.map(async ({ port }) => {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`);
      return `${response.status} ${await response.text()}`;
    }),
  );
}

/** Waits until so many of the processes say that their clock is off. */
export const untilClocksDiffer = (stage: Stage, wanted: number) =>
  looking(
    async () => {
      const off = (await readiness(stage)).filter((said) =>
        /^503.*this machine's clock is/s.test(said),
      );
      return off.length === wanted ? true : undefined;
    },
    20_000,
    async () => `${wanted} clocks should differ: ${(await readiness(stage)).join(" / ")}`,
  );
