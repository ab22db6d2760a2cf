import type { Behind } from "./behind.ts";
import type { Route } from "./door.ts";
import { mcpRoute } from "./mcp.ts";
import { proposalRoutes } from "./propose.ts";
import { readRoutes } from "./reads.ts";
import { alertRoute } from "./receive-alerts.ts";

export { createDoor } from "./door.ts";

export function doorRoutes(behind: Behind): readonly Route[] {
  return [alertRoute(behind), ...proposalRoutes(behind), ...readRoutes(behind), mcpRoute(behind)];
}
