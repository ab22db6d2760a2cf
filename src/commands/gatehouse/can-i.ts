import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";

export const canI = defineCommand({
  kind: "read",
  name: "gatehouse can-i",
  summary: "Say whether you may run a command, which rule decides, and who would approve",
  example: "/gatehouse can-i vm restore db-1",
  class: "read",
  args: z.object({
    command: z.string().max(500).meta({ rest: true, description: "the words you would type" }),
  }),
  answer: ({ command }, { control }) => control.canI(command),
});
