import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";

export const audit = defineCommand({
  kind: "read",
  name: "gatehouse audit",
  summary: "Show the audit trail, or check and export it (verify, export)",
  example: "/gatehouse audit db-1",
  class: "administer",
  args: z.object({
    target: z.string().max(300).optional().meta({
      description:
        "a VM, a project or a request; `verify` checks the chain, `export` gives it as a file",
    }),
  }),
  answer: ({ target = "" }, { control }) => control.audit(target),
});
