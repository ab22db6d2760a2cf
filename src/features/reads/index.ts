import { defineFeature } from "../define-feature.ts";
import { readRoutes } from "./read-routes.ts";

/**
 * Serves the answers of commands as JSON to programs that gatehouse.yml names, at the addresses
 * that OpenAPI describes.
 */
export const reads = defineFeature({
  name: "reads",
  start: () => ({ api: { routes: readRoutes } }),
});
