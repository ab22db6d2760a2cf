import { createAlarms } from "../../monitor/alarms.ts";
import { placesOf } from "../../core/permit/access.ts";
import type { Schedule } from "../../queue/schedules.ts";
import { defineFeature } from "../define-feature.ts";
import { createDigests, digestsOf } from "./create-digests.ts";
import { digest } from "./digest.ts";
import { digestsSection } from "./digests-section.ts";
import { createPostDue } from "./post-due.ts";
import { pressesOfDigests } from "./press-digest.ts";
import { requestsForDigest } from "./request-facts.ts";
import { cronOf, scheduleName } from "./schedules.ts";

/** How long one process has a digest to itself, in the longest calls to the service: usually a minute. */
const leaseInCalls = 4;
/** Digests that were missed are looked for this often (ms). */
const missedEveryMs = 60_000;

/** What a channel must know, at set times and on request, and what the next shift must. */
export const digests = defineFeature({
  name: "digests",
  commands: [digest],
  policy: [digestsSection],
  needs: [
    "config",
    "log",
    "redis",
    "key",
    "inventory",
    "changes",
    "store",
    "announce",
    "personName",
    "schedulesChanged",
    "running",
    "at",
  ],
  start(on) {
    const { config, store } = on;
    const { timing } = config.policy;
    const now = Date.now;
    const all = createDigests({
      ...on,
      requests: requestsForDigest(store, on.changes),
      parts: () => on.running().flatMap((feature) => feature.digest ?? []),
      handoverParts: () => on.running().flatMap((feature) => feature.handover ?? []),
      now,
    });
    const alarms = createAlarms(on);
    const postDue = createPostDue({
      ...on,
      digests: all,
      alarm: (channelId, id, message) =>
        alarms.tell(id, message, placesOf(config.policy, channelId)[0] ?? ""),
      now,
      leaseMs: leaseInCalls * timing.httpTimeoutMs,
    });

    async function schedules(): Promise<readonly Schedule[]> {
      const rules = await all.schedules.all();
      // One channel may have two digests of one time: its job looks for all that are due
      const named = new Map(rules.map((rule) => [scheduleName(rule), rule]));
      return [
        // A digest whose job was removed by hand, or that failed, is late by this at most
        {
          name: "digests-missed",
          repeat: { every: Math.min(missedEveryMs, timing.sweepMs) },
          run: postDue,
        },
        ...[...named].map(([name, rule]) => ({
          name,
          repeat: { pattern: cronOf(rule), tz: rule.timezone },
          run: postDue,
        })),
      ];
    }

    return {
      services: [digestsOf.providedBy(all)],
      presses: pressesOfDigests(all),
      schedules,
    };
  },
});
