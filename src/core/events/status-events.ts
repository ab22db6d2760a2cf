import { vmEvents } from "./event.ts";

/** VMs that failed, stopped, or recovered without a request to Gatehouse, as the monitor saw it. */
export const statusEvents = vmEvents(
  "statuses",
  "status",
  {
    words: ["VM that changed by itself", "VMs that changed by themselves"],
    weight: "decision",
  },
  ({ move }) => move === "ERROR",
);
