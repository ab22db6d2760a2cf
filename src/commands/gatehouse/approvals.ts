import { plainForm } from "../../text/fold.ts";
import * as z from "zod";
import { rowsOverTable, sentence } from "../../messages/card.ts";
import { counted, md, name } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { defineCommand, requestable } from "../../registry/define.ts";
import { awaitsVoteOf } from "../../core/request/open-seats.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { askingRow, describeChange } from "../../core/cards/asking.ts";
import { changesSince } from "../../core/cards/since-request.ts";
import type { ReadContext } from "../context.ts";
import { viewLimit } from "../view-limit.ts";

/** More don't fit into a message, because each has three blocks or more. */
const maxWithButtons = 15;
const columns = ["Request", "What", "Requested by", "Expires"];

export const approvals = defineCommand({
  name: "gatehouse approvals",
  summary: "Show requests that wait for approval, yours to decide first",
  example: "/gatehouse approvals",
  class: "read",
  votersToo: true,
  // The buttons are only for the asker, who may see everything that the cards say.
  audience: "asker",
  args: z.object({
    request: z.string().max(40).optional().meta({ description: "its ID, for that one alone" }),
  }),
  async answer({ request: only }, context_: ReadContext) {
    const { person, policy, ourTeamId, journal, commands, linkTo } = context_;
    const open = await journal.getMany(
      only === undefined ? await journal.openIds() : [plainForm(only)],
    );
    const drafts = open.filter(({ state, record }) => state === "draft" && record.approval);
    const within = (await viewLimit(context_))?.within ?? "";
    if (drafts.length === 0)
      return sentence(
        only === undefined
          ? md`No requests${within} are waiting for approval.`
          : md`The request ${name(only)} isn't waiting for approval.`,
      );
    const isMine = (request: StoredRequest) => awaitsVoteOf(person, request, { policy, ourTeamId });
    const sorted = drafts.toSorted((a, b) => Number(isMine(b)) - Number(isMine(a)));
    const mine = sorted.filter(isMine).length;
    const head = md`${headWords(drafts.length, mine, within)}`;
    const known = requestable(commands);
    const commandOf = ({ record }: StoredRequest) =>
      known.find((command) => command.name === record.command);
    const rows = await Promise.all(
      sorted.slice(0, maxWithButtons).map(async (request) => {
        const command = commandOf(request);
        if (!command) return [];
        const link = await linkTo(request.delivered.card);
        return askingRow(request, command, {
          mayVote: isMine(request),
          link,
          since: await changesSince(request, context_),
        });
      }),
    );
    const cells = sorted.map((request) => {
      const { record } = request;
      const command = commandOf(request);
      const deed = command
        ? describeChange(record, command)
        : `${record.command} ${record.target.name}`;
      return [record.id, deed, record.requester.name, { at: record.approval?.expiresAt ?? 0 }];
    });
    return rowsOverTable(head, drafts.length, rows, (from, room) =>
      table("More that wait", columns, cells.slice(from), room),
    );
  },
});

function headWords(all: number, mine: number, within: string): string {
  const wait = `${counted(all, "request")}${mine === all ? "" : within} ${all === 1 ? "waits" : "wait"} for`;
  if (mine === 0) return `${wait} approval by others.`;
  return mine === all ? `${wait} your approval.` : `${wait} approval, ${mine} of them for yours.`;
}
