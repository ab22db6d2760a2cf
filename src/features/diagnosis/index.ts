import { diagnosis as service } from "../../commands/diagnosis.ts";
import { createStatusRecords } from "../../monitor/status-records.ts";
import { defineFeature } from "../define-feature.ts";
import { diagnoseWith } from "./diagnose.ts";

/** Has `/gatehouse why` say what is wrong with a VM, since when, and what ends it. */
export const diagnosis = defineFeature({
  name: "diagnosis",
  needs: ["redis", "key", "running"],
  start(on) {
    const diagnose = diagnoseWith({
      statuses: createStatusRecords(on.redis, on.key),
      explains: () => on.running().flatMap(({ explains }) => explains ?? []),
    });
    return { services: [service.providedBy(diagnose)] };
  },
});
