import * as z from "zod";
import { message, readable, section } from "../../messages/message.ts";
import { hintOf, lines, md, plain } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";

const maxLines = 10;

export const status = defineCommand({
  kind: "read",
  name: "gatehouse status",
  summary: "Show whether Gatehouse, Slack, Redis, and the compute service work",
  example: "/gatehouse status",
  class: "read",
  args: z.object({}),
  async answer(_args, { status: linesOf }: ReadContext) {
    const rows = await linesOf();
    const bad = rows.filter(({ ok }) => !ok).length;
    const head =
      bad === 0 ? md`*Everything works.*` : md`*${bad} of ${rows.length} need attention.*`;
    return message(
      readable(head),
      section(
        lines(
          head,
          ...rows
            .slice(0, maxLines)
            .map(
              ({ name, ok, detail }) =>
                md`${ok ? "✅" : "⚠️"} *${plain(name, 60)}*: ${hintOf(plain(detail, 200))}`,
            ),
        ),
      ),
    );
  },
});
