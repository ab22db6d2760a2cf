import type { Behind } from "./api-context.ts";
import type { Route } from "./server.ts";
import { mcpRoute } from "./mcp.ts";
import { proposalRoutes } from "./propose.ts";
import { readRoutes } from "./reads.ts";

export { createApi } from "./server.ts";

export function apiRoutes(behind: Behind): readonly Route[] {
  return [...proposalRoutes(behind), ...readRoutes(behind), mcpRoute(behind)];
}
