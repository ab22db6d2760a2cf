import type { Route } from "../../api/server.ts";
import { defineFeature } from "../define-feature.ts";

/** Model Context Protocol: agents read what commands tell, and call the tools of features. */
export const mcp = defineFeature({
  name: "mcp",
  start: () => ({
    routes: (behind) => [
      {
        name: "mcp",
        path: /^\/mcp$/,
        methods: ["POST"],
        // Its library is large, and most processes answer no agent
        handle: async (...call: Parameters<Route["handle"]>) =>
          (await import("./mcp.ts")).answerAgent(behind, ...call),
      },
    ],
  }),
});
