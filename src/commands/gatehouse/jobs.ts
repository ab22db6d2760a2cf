import * as z from "zod";
import { message, readable, section, sentence } from "../../messages/message.ts";
import { duration, md } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";
import { shownTable } from "../shown-table.ts";
import { stateWords } from "../state-words.ts";

const most = 60;

export const jobs = defineCommand({
  kind: "read",
  name: "gatehouse jobs",
  summary: "Show what runs and what waits, yours first",
  example: "/gatehouse jobs",
  class: "read",
  args: z.object({}),
  async answer(_args, { person, recentRequests, now }) {
    const [mine, newest] = await Promise.all([
      recentRequests({ open: true, requesterId: person.id, most }),
      recentRequests({ open: true, most }),
    ]);
    const others = newest.filter(({ requesterId }) => requesterId !== person.id);
    const open = [...mine, ...others];
    if (open.length === 0) return sentence(md`Nothing runs, and nothing waits.`);
    const { block, shown } = shownTable(
      ["what", "on", "state", "since", "request"],
      open.map((one) => [
        one.command,
        one.target.name,
        stateWords(one.state),
        duration(Math.max(1000, now() - one.createdAt)),
        one.id,
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
