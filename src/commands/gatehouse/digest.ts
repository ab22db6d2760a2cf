import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";

export const digest = defineCommand({
  kind: "read",
  name: "gatehouse digest",
  summary: "Post a digest here every day, or now; or hand over to the next shift",
  example: "/gatehouse digest on 09:00 Europe/Paris mon-fri",
  class: "change",
  args: z.object({
    action: z.enum(["on", "off", "now", "handover"]).optional().meta({
      description: "`handover` shows it only to you, with what runs and which consoles are open",
    }),
    when: z
      .string()
      .max(200)
      .optional()
      .meta({ rest: true, description: "for `on`: a time, a time zone and days, in any order" }),
  }),
  answer: ({ action, when = "" }, { control }) => control.digest(action, when),
});
