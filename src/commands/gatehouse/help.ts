import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";
import { lists } from "../../policy/access.ts";
import { renderHelp } from "../../registry/help.ts";
import type { ReadContext } from "../context.ts";
import { examplesHere } from "../examples.ts";

export const help = defineCommand({
  kind: "read",
  name: "gatehouse help",
  summary: "Show what you can run",
  example: "/gatehouse help vm restart",
  class: "read",
  // It depends on the requester
  audience: "asker",
  isHelp: true,
  args: z.object({
    command: z
      .string()
      .max(100)
      .optional()
      .meta({ isRest: true, description: "a command, for its details; `all` for all of them" }),
  }),
  answer: async ({ command }, context: ReadContext) => {
    const { commands, policy, person, ourTeamId } = context;
    const exampleOf = await examplesHere(context);
    const hasBreakGlass = lists(policy, person, ourTeamId).includes("breakGlass");
    return renderHelp(
      commands.filter((one) => context.mayRun(one)),
      command,
      exampleOf,
      hasBreakGlass,
    );
  },
});
