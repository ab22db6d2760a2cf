import { defineFeature } from "../define-feature.ts";
import { readRoutes } from "./read-routes.ts";

/** What commands tell, as JSON for programs that gatehouse.yml names, at the addresses that OpenAPI describes. */
export const reads = defineFeature({
  name: "reads",
  start: () => ({ routes: readRoutes }),
});
