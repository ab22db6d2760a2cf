import * as z from "zod";
import { defineCommand } from "../../registry/define.ts";

export const approvals = defineCommand({
  kind: "read",
  name: "gatehouse approvals",
  summary: "Show what waits for approval, what waits for you first",
  example: "/gatehouse approvals",
  class: "read",
  args: z.object({}),
  answer: (_args, { control }) => control.approvals(),
});
