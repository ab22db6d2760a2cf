import * as z from "zod";
import { defineCommand, rest, takesBreakGlass } from "../../registry/define.ts";
import { isListed } from "../../core/permit/permit.ts";
import { renderHelp } from "../../registry/help.ts";
import type { ReadContext } from "../context.ts";
import { examplesHere } from "../examples.ts";

export const help = defineCommand({
  name: "gatehouse help",
  summary: "Show what you can run",
  example: "/gatehouse help vm restart",
  class: "read",
  // The answer depends on the requester.
  audience: "asker",
  isHelp: true,
  startLabel: "Help",
  args: z.object({
    command: rest(100, "a command, for its details; `all` for all of them").optional(),
  }),
  answer: async ({ command }, context: ReadContext) => {
    const { commands, person } = context;
    const exampleOf = await examplesHere(context);
    const inEmergency = isListed(person, "breakGlass", context)
      ? context.emergency?.help
      : undefined;
    const runnable = commands.filter((one) => context.mayRun(one));
    const inEmergencies = commands.filter(
      (one) => inEmergency && takesBreakGlass(one) && !runnable.includes(one),
    );
    return renderHelp(runnable, command, exampleOf, inEmergency, inEmergencies);
  },
});
