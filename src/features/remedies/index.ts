import type { MadeRequest } from "../../talk/contributions.ts";
import { alertPartOf, isRemedy, remedyPartOf } from "../alert-part.ts";
import { defineFeature } from "../define-feature.ts";
import { remedyPart } from "./advise.ts";
import { createRemedies } from "./remedies.ts";
import { remedyEvents } from "./remedy-events.ts";
import { remedyFacts } from "./remedy-facts.ts";
import { remedySource } from "./remedy-source.ts";

/**
 * Follows an alert after a change of its VM: whether it ended, what to say if it didn't, and what
 * that tells about the next alert of the kind. It advises, and decides nothing.
 */
export const remedies = defineFeature({
  name: "remedies",
  needs: ["config", "redis", "key", "store", "changes", "inventory", "services", "personName"],
  start(on) {
    const { changes } = on;
    const all = createRemedies(on.redis, on.key);
    const alerts = () => alertPartOf.ifAny(on);

    /** Follows an attempt to end an alert. What is followed already is only woken. */
    async function followAttempt(made: MadeRequest): Promise<void> {
      const { id, origin, command, target, createdAt } = made;
      // The alert's time begins when the request has ended.
      if (await all.get(id)) return all.touch(id);
      const change = changes.find(({ name }) => name === command);
      if (!change || !isRemedy(change)) return;
      // A change that was asked for elsewhere is an attempt to end what fired on its VM first.
      const alert =
        origin.kind === "alert" ? origin.alert : (await alerts()?.firingOn(target, createdAt))?.[0];
      if (alert === undefined) return;
      const alertsOnVm = await alerts()?.find(alert, target.id);
      const fired = alertsOnVm?.alerts.filter(({ state }) => state === "firing") ?? [];
      if (fired.length === 0) return;
      const projects = fired.flatMap(({ project }) => project ?? []);
      await all.follow({
        request: id,
        alert,
        vmId: target.id,
        project: { id: target.projectId, name: target.projectName },
        alertProjects: [...new Map(projects.map((project) => [project.id, project])).values()],
        command,
        fired: Object.fromEntries(fired.map(({ name, since }) => [name, since])),
      });
    }

    return {
      provides: [remedyPartOf.providedBy(remedyPart({ remedies: all, changes }))],
      on: { requestMade: followAttempt, requestEnded: ({ record }) => followAttempt(record) },
      messages: [remedySource({ ...on, remedies: all, alerts })],
      facts: remedyFacts({ ...on, remedies: all, alerts }),
      events: remedyEvents(on.personName),
    };
  },
});
