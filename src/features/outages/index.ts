import { defineFeature } from "../define-feature.ts";
import { gatehouseFactsOf } from "../status-part.ts";
import { judgeOutages } from "./judge-outages.ts";
import { createOutageStore } from "./outages.ts";
import { recapWork, reportEveryMs } from "./post-recaps.ts";

/**
 * Keeps what was unavailable, as all processes saw it, and posts a recap in each affected channel
 * afterwards.
 */
export const outages = defineFeature({
  name: "outages",
  needs: [
    "config",
    "log",
    "redis",
    "key",
    "store",
    "inventory",
    "events",
    "changes",
    "announce",
    "at",
    "watch",
    "redisProblem",
    "repeat",
  ],
  start(on) {
    const { watch, redisProblem } = on;
    const { outageMs } = on.config.policy.timing;
    const store = createOutageStore(on.redis, on.key);
    // Reports what this process saw. While Redis is away it is kept, and reported later.
    on.repeat("outages", reportEveryMs(outageMs), () => watch.report(store).catch(() => undefined));
    return {
      work: {
        inProcesses: [recapWork({ ...on, commands: on.changes, outages: store, outageMs })],
      },
      provides: [
        gatehouseFactsOf.providedBy({
          kind: "Outages",
          read: () => judgeOutages({ outages: store, now: on.store.now, watch, redisProblem }),
        }),
      ],
    };
  },
});
