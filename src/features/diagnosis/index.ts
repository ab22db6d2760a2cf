import { diagnosis as service } from "../../commands/diagnosis.ts";
import { defineFeature } from "../define-feature.ts";
import { diagnose } from "./diagnose.ts";

/** Has `/gatehouse why` say what is wrong with a VM, since when, and what ends it. */
export const diagnosis = defineFeature({
  name: "diagnosis",
  start: () => ({ provides: [service.providedBy(diagnose)] }),
});
