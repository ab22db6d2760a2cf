import { Trail } from "../../audit/trail.ts";
import { createMonitor } from "../../monitor/monitor.ts";
import { defineFeature } from "../define-feature.ts";
import { digestPartsOf } from "../digest-part.ts";
import { attest } from "./attest.ts";
import { driftProbe, rememberVerdicts, withdrawTold } from "./drift-probe.ts";
import { findTellingRequest } from "./telling-request.ts";
import { pinsDrop } from "./pins-drop.ts";
import { pinsPropose } from "./pins-propose.ts";
import { pins } from "./pins.ts";
import { attestationFacts } from "./attestation-facts.ts";
import { driftInDigests } from "./tell-drift.ts";
import { attestationEvents } from "./attestation-events.ts";
import { createDriftRecords } from "../../monitor/drift-records.ts";
import { createAlarms } from "../../monitor/alarms.ts";

/** Lets people check and pin what VMs run, and reports pinned VMs that no longer verify. */
export const attestation = defineFeature({
  name: "attest",
  commands: [attest, pins, pinsPropose, pinsDrop],
  needs: [
    "config",
    "log",
    "redis",
    "key",
    "inventory",
    "appraiser",
    "announce",
    "owed",
    "store",
    "changes",
    "follow",
    "stopping",
    "now",
  ],
  start(on) {
    const { config } = on;
    const records = createDriftRecords(on.redis, on.key);
    const telling = {
      ...on,
      records,
      alarms: createAlarms(on),
      trail: new Trail(on.redis, on.key),
      tellingRequest: findTellingRequest(on),
    };
    const probe = driftProbe({
      ...telling,
      pins: () => config.policy.attestation.pins,
      everyMs: config.policy.timing.driftWatchMs,
      signal: on.stopping,
    });
    return {
      schedules: createMonitor([probe]).schedules,
      on: { appraised: rememberVerdicts(telling), failurePosted: withdrawTold(telling) },
      provides: [digestPartsOf.providedBy(driftInDigests(records))],
      facts: attestationFacts({ records, appraiser: on.appraiser }),
      events: attestationEvents,
    };
  },
});
