import type { Route } from "../../api/server.ts";
import { defineFeature } from "../define-feature.ts";

/**
 * Serves the Model Context Protocol: agents read what commands tell and call the tools of features.
 */
export const mcp = defineFeature({
  name: "mcp",
  start: () => ({
    api: {
      routes: (behind) => [
        {
          name: "mcp",
          path: /^\/mcp$/,
          methods: ["POST"],
          // Load the library on the first call: it is large, and most processes serve no agent.
          handle: async (...call: Parameters<Route["handle"]>) =>
            (await import("./mcp.ts")).answerAgent(behind, ...call),
        },
      ],
    },
  }),
});
