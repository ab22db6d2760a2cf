import { readerWithin } from "../../core/facts/reader-within.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import { createAlarms } from "../../monitor/alarms.ts";
import { placesOf } from "../../core/permit/access.ts";
import type { Schedule } from "../../queue/schedules.ts";
import { digestPartsOf, handoverPartsOf } from "../digest-part.ts";
import { defineFeature } from "../define-feature.ts";
import { createStatusRecords } from "../../monitor/status-records.ts";
import { judgeMemory, readMemory } from "../../redis/check.ts";
import { createDigests, digestsOf } from "./create-digests.ts";
import { createDigestStore } from "./digest-store.ts";
import { digest } from "./digest.ts";
import { digestsSection } from "./digests-section.ts";
import { createPostDue } from "./post-due.ts";
import { pressesOfDigests } from "./press-digest.ts";
import { openRequestsIn } from "./open-requests.ts";
import { cronOf, scheduleName } from "./schedules.ts";

/**
 * Lease of a digest while one process builds it, in multiples of the longest call to the service;
 * usually a minute in all.
 */
const leaseInCalls = 4;
/** How often Gatehouse looks for missed digests (ms). */
const missedEveryMs = 60_000;

/** Posts digests in channels at set times and on request, and hands over to the next shift. */
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
    "store",
    "announce",
    "events",
    "factsAbout",
    "projectName",
    "schedulesChanged",
    "services",
    "at",
    "now",
  ],
  start(on) {
    const { config, store, now } = on;
    const { timing } = config.policy;
    const statuses = createStatusRecords(on.redis, on.key);
    const all = createDigests({
      ...on,
      store: createDigestStore(on),
      freeze: () => store.freezeState(),
      statusSince: statuses.since,
      async memory() {
        const memory = await readMemory(on.redis);
        return memory && judgeMemory(memory);
      },
      openRequests: openRequestsIn(store),
      // VMs of several projects stand beside each other, so their names are whole.
      factsOf: (vms, scope) =>
        on.factsAbout(
          vms.map((vm) => ({ ...targetOf(vm), sharesName: true })),
          { reader: readerWithin(scope, on) },
        ),
      parts: () => digestPartsOf(on),
      handoverParts: () => handoverPartsOf(on),
      now,
    });
    const alarms = createAlarms(on);
    const postDue = createPostDue({
      ...on,
      digests: all,
      alarm: (channelId, id, message) =>
        alarms.sendAlarm(id, message, placesOf(config.policy, channelId)[0] ?? ""),
      now,
      leaseMs: leaseInCalls * timing.httpTimeoutMs,
    });

    async function schedules(): Promise<readonly Schedule[]> {
      const rules = await all.schedules.all();
      // Two digests of one channel may be due at the same time and share a job, which posts
      // everything that is due.
      const named = new Map(rules.map((rule) => [scheduleName(rule), rule]));
      return [
        // This job finds digests whose own job failed or was removed by hand; they are late by this
        // interval at most.
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
      provides: [digestsOf.providedBy(all)],
      presses: pressesOfDigests(all),
      schedules,
    };
  },
});
