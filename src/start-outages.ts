import { commands } from "./commands/index.ts";
import type { Connected } from "./connect.ts";
import { patienceFor } from "./outages/outage.ts";
import { createOutageStore, type OutageStore } from "./outages/store.ts";
import { startTellingOutages } from "./outages/tell-outages.ts";
import { isChange } from "./slack/talk.ts";

/** Notices when Slack, Redis or the service is away, and tells each channel afterwards what became of its requests. */
export function startOutages(on: Connected): OutageStore {
  const outages = createOutageStore(on.redis, on.key);
  on.opened(
    startTellingOutages({
      ...on,
      outages,
      commands: commands.filter(isChange),
      patience: patienceFor(on.config.policy.timing.outageMs),
    }),
    (it) => it.close(),
  );
  return outages;
}
