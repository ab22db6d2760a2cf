import { isRemedy } from "../alert-part.ts";
import { defineFeature } from "../define-feature.ts";
import { remedyPart } from "./advise.ts";
import { createRemedies } from "./remedies.ts";
import { remedySource } from "./remedy-source.ts";

/**
 * Follows an alert after a press on its message: whether it ended, what to say if it didn't, and
 * what that tells about the next alert of the kind. It advises, and decides nothing.
 */
export const remedies = defineFeature({
  name: "remedies",
  needs: ["config", "redis", "key", "store", "changes", "inventory", "running"],
  start(on) {
    const { store, changes } = on;
    const all = createRemedies(on.redis, on.key);
    const alerts = () => on.running().find((feature) => feature.alerts)?.alerts;
    return {
      messages: [remedySource({ ...on, remedies: all, alerts })],
      remedies: remedyPart({ remedies: all, changes }),
      async afterRequest({ id, origin }) {
        if (origin.kind !== "alert") return;
        // It is called again at the end of the request, which is when the alert's time begins.
        if (await all.get(id)) return all.touch(id);
        const request = await store.get(id);
        const command = changes.find(({ name }) => name === request?.record.command);
        if (!request || !command || !isRemedy(command)) return;
        const told = await alerts()?.find(origin.alert, origin.vm);
        const fired = told?.alerts.filter(({ state }) => state === "firing") ?? [];
        if (fired.length === 0) return;
        await all.follow({
          request: id,
          alert: origin.alert,
          vmId: origin.vm,
          project: { id: request.record.target.projectId, name: request.record.target.projectName },
          command: command.name,
          fired: Object.fromEntries(fired.map(({ name, since }) => [name, since])),
        });
      },
    };
  },
});
