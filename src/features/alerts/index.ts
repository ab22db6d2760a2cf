import { readStoredPolicy } from "../../audit/stored-policy.ts";
import { sectionOf } from "../../config/policy-section.ts";
import { isChange } from "../../registry/define.ts";
import type { MadeRequest } from "../../talk/contributions.ts";
import { alertPartOf, isRemedy, remedyPartOf } from "../alert-part.ts";
import { defineFeature } from "../define-feature.ts";
import { digestPartsOf } from "../digest-part.ts";
import { homePartsOf } from "../home-part.ts";
import { type Untold, gatehouseFactsOf, untoldOf } from "../status-part.ts";
import { alertSource, heldAlerts } from "./alert-source.ts";
import { alertPart } from "./tell-features.ts";
import { createAlerts } from "./alerts.ts";
import { createChannelCalls } from "./channel-calls.ts";
import { judgeSources } from "./judge-sources.ts";
import { pressAlert } from "./press-alert.ts";
import { alertRoute } from "./receive-alerts.ts";
import { createRefusals } from "./refusals.ts";
import { type AlertSources, sourcesSection } from "./sources.ts";
import { alertFacts, alertsAtHome, alertsInDigests } from "./tell-alerts.ts";
import { alertEvents } from "./alert-events.ts";

/** How often Gatehouse looks for alerts whose source went silent (ms). */
const unheardEveryMs = 60_000;
/** How often a process tries again to store which deliveries it refused (ms). */
const reportEveryMs = 5_000;

/**
 * Shows alerts of Alertmanager, Grafana, PagerDuty and other sources in Slack, with buttons that
 * run ordinary commands.
 */
export const alerts = defineFeature({
  name: "alerts",
  policy: [sourcesSection],
  judgePolicy: judgeSources,
  needs: [
    "config",
    "log",
    "redis",
    "key",
    "store",
    "inventory",
    "compute",
    "commands",
    "attestationNote",
    "factsAbout",
    "projectName",
    "announce",
    "owed",
    "repeat",
    "services",
    "editMs",
  ],
  start(on) {
    const { config, redis, key } = on;
    const groups = createAlerts(redis, key);
    const calls = createChannelCalls(redis, key);
    const refusals = createRefusals(on);
    on.repeat("alert-refusals", reportEveryMs, refusals.report);
    const remedies = () => remedyPartOf.ifAny(on);

    /** The sources of the policy in force; undefined where this process can't read it. */
    async function sourcesInForce(): Promise<AlertSources | undefined> {
      const stored = await readStoredPolicy(redis, key);
      const inForce = stored && config.policyFile.parse(stored.text);
      return inForce && sectionOf(inForce.policy, sourcesSection);
    }

    const part = alertPart({ ...on, alerts: groups });

    async function untoldGroups(): Promise<readonly Untold[]> {
      const untold = await groups.untold();
      return untold.map(({ record }) => ({
        source: record.source,
        words: ["alert group", "alert groups"],
      }));
    }

    /** Notes a request on the alerts that it tries to end. */
    async function noteAttempt(made: MadeRequest): Promise<void> {
      const { id, origin, command, target, createdAt } = made;
      if (origin.kind === "alert") return groups.note(origin.alert, id);
      // A change of a VM that an alert names is an attempt to end it, wherever it was asked for.
      const change = on.commands.find(({ name }) => name === command);
      if (!change || !isChange(change) || !isRemedy(change)) return;
      for (const alert of await part.firingOn(target, createdAt)) await groups.note(alert, id);
    }

    return {
      provides: [
        alertPartOf.providedBy(part),
        homePartsOf.providedBy(alertsAtHome(groups)),
        digestPartsOf.providedBy(alertsInDigests(groups)),
        gatehouseFactsOf.providedBy({ kind: "Alerts", read: refusals.find }),
        untoldOf.providedBy(untoldGroups),
      ],
      presses: { alert: pressAlert(groups) },
      messages: [
        alertSource({ ...on, alerts: groups, calls, remedies }),
        heldAlerts({ alerts: groups }),
      ],
      schedules: [
        {
          name: "alerts-unheard",
          repeat: { every: unheardEveryMs },
          run: () => groups.endUnheard(sectionOf(config.policy, sourcesSection), sourcesInForce),
        },
      ],
      facts: alertFacts(groups),
      events: alertEvents(groups),
      on: {
        requestMade: noteAttempt,
        async requestEnded({ record }) {
          await noteAttempt(record);
          // The last change of its VM is on the message of an alert.
          await groups.touchOn(record.target.id);
        },
        freezeChanged: groups.refresh,
      },
      api: { routes: (behind) => [alertRoute(groups, refusals, behind)] },
    };
  },
});
