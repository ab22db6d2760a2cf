import * as z from "zod";
import { message, section, sentence, table } from "../../messages/message.ts";
import { duration, md } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";

const states: Readonly<Record<string, string>> = {
  draft: "waits for approval",
  authorized: "waits to begin",
  sending: "being sent",
  accepted: "running",
  unclear: "being looked into",
  "not-applied": "did not happen",
  unknown: "❓ outcome unknown",
};

export const jobs = defineCommand({
  kind: "read",
  name: "gatehouse jobs",
  summary: "Show what runs and what waits, yours first",
  example: "/gatehouse jobs",
  class: "read",
  args: z.object({}),
  async answer(_args, { person, recentRequests, now }) {
    const open = await recentRequests({ open: true, most: 60 });
    if (open.length === 0) return sentence(md`Nothing runs, and nothing waits.`);
    const isMine = (one: (typeof open)[number]) => Number(one.requesterId === person.id);
    const sorted = [...open].toSorted((a, b) => isMine(b) - isMine(a) || b.createdAt - a.createdAt);
    const mine = sorted.filter((one) => one.requesterId === person.id).length;
    return message(
      `${open.length} requests are open, ${mine} of them yours`,
      section(md`*${open.length} open*, ${mine} of them yours`),
      table(
        ["what", "on", "state", "since", "request"],
        sorted.map((one) => [
          one.command,
          one.target.name,
          states[one.state] ?? one.state,
          duration(Math.max(1000, now() - one.createdAt)),
          one.id,
        ]),
      ),
    );
  },
});
