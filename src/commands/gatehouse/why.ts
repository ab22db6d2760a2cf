import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";

export const why = defineCommand({
  kind: "read",
  name: "gatehouse why",
  summary: "Tell the story of a request, step by step",
  example: "/gatehouse why r-7fk3m9q2xw",
  class: "read",
  args: z.object({
    request: z
      .string()
      .regex(/^r-[a-z0-9]{4,20}$/, {
        error: "must look like r-7fk3m9q2xw; it stands at the foot of every request",
      })
      .meta({ description: "its id, as it stands at the foot of its message" }),
  }),
  answer: ({ request }, { control }) => control.why(request),
});
