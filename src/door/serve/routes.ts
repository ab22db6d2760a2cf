import type { Behind } from "./behind.ts";
import type { Route } from "./door.ts";
import { proposalRoutes } from "./propose.ts";
import { alertRoute } from "./receive-alerts.ts";

export { createDoor } from "./door.ts";

export function doorRoutes(behind: Behind): readonly Route[] {
  return [alertRoute(behind), ...proposalRoutes(behind)];
}
