import * as z from "zod";
import { message, section } from "../../messages/message.ts";
import { lines, md } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";

export const status = defineCommand({
  kind: "read",
  name: "gatehouse status",
  summary: "Show whether Gatehouse, Slack, Redis and the service are well",
  example: "/gatehouse status",
  class: "read",
  args: z.object({}),
  async answer(_args, context) {
    const rows = await context.status();
    const bad = rows.filter(({ ok }) => !ok).length;
    return message(
      bad === 0 ? "All is well" : `${bad} of ${rows.length} need a look`,
      section(
        lines(
          bad === 0 ? md`*All is well.*` : md`*${bad} of ${rows.length} need a look.*`,
          ...rows.map(({ name, ok, detail }) => md`${ok ? "✅" : "⚠️"} *${name}*: ${detail}`),
        ),
      ),
    );
  },
});
