import { byRight, onRequest } from "../../talk/press.ts";
import { defineFeature } from "../define-feature.ts";
import { handoverPartsOf } from "../digest-part.ts";
import { console } from "./console.ts";
import { consoleFacts, consolesInHandovers } from "./open-consoles.ts";
import { consoleEvents } from "./console-events.ts";
import { offerApproved, openConsole } from "./open-console.ts";

/** Opens consoles on VMs, once, for the requester alone, and tells the channel. */
export const consoles = defineFeature({
  name: "consoles",
  commands: [console],
  needs: ["redis", "key", "personName", "now"],
  start: (on) => ({
    provides: [handoverPartsOf.providedBy(consolesInHandovers(on))],
    facts: consoleFacts(on),
    events: consoleEvents(on.personName),
    presses: {
      "console:open": openConsole,
      "request:open": onRequest(byRight(offerApproved)),
    },
  }),
});
