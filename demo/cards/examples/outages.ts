import { restart } from "../../../src/commands/vm/restart.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { renderRecap } from "../../../src/features/outages/render-recap.ts";
import type { RefusedInteraction } from "../../../src/monitor/dependency-probe.ts";
import { type About, type Example, at } from "../example.ts";
import { someOf } from "../reading.ts";
import { denied, done, unknown } from "../requests.ts";

const recapOf = (
  part: "slack" | "redis",
  requests: Parameters<typeof renderRecap>[1],
  refused: readonly RefusedInteraction[] = [],
) => {
  const outage = { id: `${part}-1`, part, since: at, until: at + 300_000 } as const;
  const recap = renderRecap(outage, requests, refused, [restart, stop]);
  if (!recap) throw new Error("nothing to tell");
  return recap;
};

const refusal = ({ vm }: About) =>
  someOf<RefusedInteraction>({
    id: "1.1",
    channelId: "C01OPS",
    userId: "U0OLIVIA",
    teamId: "T0OURS",
    mayRun: false,
    words: `/vm restart ${vm}`,
    at: at + 60_000,
  } as never);

export const examples: readonly Example[] = [
  {
    name: "a recap",
    reader: "channel",
    make: (about) => recapOf("slack", [done(about)]),
    push: "Slack was unavailable for 5 min: 1 request ran",
  },
  {
    name: "a recap of many outcomes",
    reader: "channel",
    make: (about) =>
      recapOf("redis", [done(about), unknown(about), denied(about)], [refusal(about)]),
    push: "Redis was unavailable for 5 min: 1 request ran, 2 did not, 1 outcome unknown",
  },
];
