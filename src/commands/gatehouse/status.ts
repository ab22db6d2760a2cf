import * as z from "zod";
import { message, readable, section } from "../../messages/message.ts";
import { lines, md, plain } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";

const mostLines = 10;

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
    const head = bad === 0 ? md`*All is well.*` : md`*${bad} of ${rows.length} need a look.*`;
    return message(
      readable(head),
      section(
        lines(
          head,
          ...rows
            .slice(0, mostLines)
            .map(
              ({ name, ok, detail }) =>
                md`${ok ? "✅" : "⚠️"} *${plain(name, 60)}*: ${plain(detail, 200)}`,
            ),
        ),
      ),
    );
  },
});
