import { byRight, onRequest } from "../../talk/press.ts";
import { defineFeature } from "../define-feature.ts";
import { console } from "./console.ts";
import { consolesInHandovers } from "./handover-consoles.ts";
import { offerApproved, openConsole } from "./open-console.ts";

/** Consoles on VMs: for whoever asked alone, once, and told to the channel. */
export const consoles = defineFeature({
  name: "consoles",
  commands: [console],
  needs: ["redis", "key"],
  start: (on) => ({
    handover: consolesInHandovers(on),
    presses: {
      "console:open": openConsole,
      "request:open": onRequest(byRight(offerApproved)),
    },
  }),
});
