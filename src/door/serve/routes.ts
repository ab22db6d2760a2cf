import { UserError } from "../../errors.ts";
import type { Behind } from "./behind.ts";
import type { Route } from "./door.ts";
import { mcpRoute, type Proposing } from "./mcp.ts";
import { readRoutes } from "./reads.ts";
import { alertRoute } from "./receive-alerts.ts";

export { createDoor } from "./door.ts";

const notYet = async (): Promise<never> => {
  throw new UserError("Proposals aren't taken here yet. Nothing was done.");
};
const proposing: Proposing = { propose: notYet, stateOf: notYet };

export function doorRoutes(behind: Behind): readonly Route[] {
  return [alertRoute(behind), ...readRoutes(behind), mcpRoute(behind, proposing)];
}
