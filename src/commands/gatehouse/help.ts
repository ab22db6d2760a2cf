import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";
import { renderHelp } from "../../registry/help.ts";

export const help = defineCommand({
  kind: "read",
  name: "gatehouse help",
  summary: "Show what you may run",
  example: "/gatehouse help vm restart",
  class: "read",
  args: z.object({
    command: z
      .string()
      .max(100)
      .optional()
      .meta({ rest: true, description: "a command, for its details" }),
  }),
  answer: async ({ command }, { commands, mayRun }) => renderHelp(commands.filter(mayRun), command),
});
