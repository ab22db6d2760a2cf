import * as z from "zod";
import { news, md, context, message, section, sentence } from "../../messages/message.ts";
import { defineCommand, requestable } from "../../registry/define.ts";
import { waitsFor } from "../../requests/journal/limits.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import { askingRow } from "../../requests/render/asking.ts";
import { changesSince } from "../../requests/render/since-request.ts";
import type { ReadContext } from "../context.ts";

/** Three blocks for each. */
const maxShown = 15;

export const approvals = defineCommand({
  name: "gatehouse approvals",
  summary: "Show requests that wait for approval, yours to decide first",
  example: "/gatehouse approvals",
  class: "read",
  votersToo: true,
  // Its buttons are for the asker, who sees all that the cards say
  audience: "asker",
  args: z.object({}),
  async answer(_args, context_: ReadContext) {
    const { person, policy, ourTeamId, journal, commands, linkTo } = context_;
    const open = await journal.getMany(await journal.openIds());
    const drafts = open.filter(({ state, record }) => state === "draft" && record.approval);
    if (drafts.length === 0) return sentence(md`No requests are waiting for approval.`);
    const isMine = (request: StoredRequest) => waitsFor(person, request, { policy, ourTeamId });
    const sorted = drafts.toSorted((a, b) => Number(isMine(b)) - Number(isMine(a)));
    const mine = sorted.filter(isMine).length;
    const title = md`${drafts.length} waiting for approval, ${mine} for you.`;
    const known = requestable(commands);
    const rows = await Promise.all(
      sorted.slice(0, maxShown).map(async (request) => {
        const command = known.find(({ name }) => name === request.record.command);
        if (!command) return [];
        const link = await linkTo(request.delivered.card);
        return askingRow(request, command, {
          mayVote: isMine(request),
          link,
          since: await changesSince(request, context_),
        });
      }),
    );
    const more = drafts.length - maxShown;
    return message(
      news(title),
      section(title),
      ...rows,
      more > 0 ? context(md`${more} more are not shown: decide these first.`) : undefined,
    );
  },
});
