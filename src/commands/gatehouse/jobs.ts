import * as z from "zod";
import { message, readable, section, sentence, shownTable } from "../../messages/message.ts";
import { duration, md } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";
import { recentRequests } from "../../requests/recent-requests.ts";
import { stateWords } from "../../requests/journal/record.ts";
import type { ReadContext } from "../context.ts";

const most = 60;

export const jobs = defineCommand({
  kind: "read",
  name: "gatehouse jobs",
  aliases: ["requests"],
  everyday: true,
  summary: "Show running and waiting requests, yours first",
  example: "/gatehouse jobs",
  class: "read",
  args: z.object({}),
  async answer(_args, { person, journal, now }: ReadContext) {
    const [mine, newest] = await Promise.all([
      recentRequests({ open: true, requesterId: person.id, most }, journal),
      recentRequests({ open: true, most }, journal),
    ]);
    const others = newest.filter(({ record }) => record.requester.id !== person.id);
    const open = [...mine, ...others];
    if (open.length === 0) return sentence(md`No requests are running or waiting.`);
    const { block, shown } = shownTable(
      ["Command", "Target", "State", "Age", "Request"],
      open.map(({ record, state }) => [
        record.command,
        record.target.name,
        stateWords(state),
        duration(Math.max(1000, now() - record.createdAt)),
        record.id,
      ]),
    );
    const isMore = mine.length === most || newest.length === most;
    const head = md`*${open.length}${isMore ? " or more" : ""} open*, ${mine.length} of them yours`;
    return message(
      readable(head),
      section(shown < open.length ? md`${head}. The first ${shown} are shown.` : head),
      block,
    );
  },
});
