import { permitOfForm } from "../../talk/form.ts";
import { rehearseAction } from "../../talk/form-view.ts";
import { openRehearsal } from "../../talk/open-rehearsal.ts";
import { rehearsalOf } from "../../talk/service-keys.ts";
import { defineFeature } from "../define-feature.ts";
import { createRehearsal } from "./rehearse.ts";

/** Tells what would happen to a change before it is requested, in forms and for `can-i`. */
export const rehearsal = defineFeature({
  name: "rehearsal",
  start: () => ({
    provides: [rehearsalOf.providedBy(createRehearsal())],
    presses: { [rehearseAction]: async (act) => openRehearsal(await permitOfForm(act), act) },
  }),
});
