import * as z from "zod";
import { type SaidPart, paragraph, waysRow } from "../../messages/parts.ts";
import { rowsOverTable, sentence } from "../../messages/card.ts";
import { md, name } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { askerIn } from "../../core/request/open-seats.ts";
import { needsOf, voteRefusal } from "../../core/permit/approval-rule.ts";
import { calledName, defineCommand, requestable } from "../../registry/define.ts";
import { recentRequests } from "../../core/request/lists.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords } from "../../core/request/stage.ts";
import { askingRow, describeChange, openIt, whyButton } from "../../core/cards/asking.ts";
import { cancelButton, cardButtons, waitingLine } from "../../core/cards/render-card.ts";
import { changesSince } from "../../core/cards/since-request.ts";
import { type ReadContext, agoOrAt } from "../context.ts";
import { viewLimit } from "../view-limit.ts";

const most = 60;
/** More don't fit into a message, because each has three blocks or more. */
const maxWithButtons = 10;
const columns = ["Target", "Command", "State", "Requested", "Request"];

export const jobs = defineCommand({
  name: "gatehouse jobs",
  aliases: ["requests"],
  roles: ["everyday"],
  summary: "Show running and waiting requests, yours first",
  example: "/gatehouse jobs",
  class: "read",
  args: z.object({}),
  async answer(_args, context: ReadContext) {
    const { person, journal } = context;
    const [mine, newest] = await Promise.all([
      recentRequests({ open: true, requesterId: person.id, most }, journal),
      recentRequests({ open: true, most }, journal),
    ]);
    const others = newest.filter(({ record }) => record.requester.id !== person.id);
    const open = [...mine, ...others];
    const within = (await viewLimit(context))?.within ?? "";
    if (open.length === 0) return sentence(md`No requests${within} are running or waiting.`);
    const first = open.slice(0, maxWithButtons);
    const rows = await Promise.all(first.map((request) => rowOf(request, context)));
    const cells = open.map(({ record, state }) => [
      calledName(record.target),
      record.command,
      stateWords(state),
      { at: record.createdAt },
      record.id,
    ]);
    const isMore = mine.length === most || newest.length === most;
    const yours = context.isShared ? "" : yoursWords(mine.length, open.length);
    const head = md`*${open.length}${isMore ? " or more" : ""} ${open.length === 1 ? `request${within} is` : `requests${within} are`} open*${yours}.`;
    return rowsOverTable(head, open.length, rows, (from, room) =>
      table("More open requests", columns, cells.slice(from), room),
    );
  },
});

/**
 * One request, with a link to its message and the buttons of its card. A shared list has no such
 * buttons, because they would be refused to its readers.
 */
async function rowOf(request: StoredRequest, context: ReadContext): Promise<SaidPart[]> {
  const { commands, linkTo, person, policy, ourTeamId, isShared, mayRun } = context;
  const { record, state, delivered } = request;
  const link = await linkTo(delivered.card);
  const command = requestable(commands).find(({ name: called }) => called === record.command);
  const deed = command
    ? describeChange(record, command)
    : `${record.command} of ${record.target.name}`;
  const asked = md`requested by ${record.requester.name} ${agoOrAt(record.createdAt, context)} (${name(record.id)})`;
  const waits = command && waitingLine(request, command);
  const text = waits
    ? md`*${deed}*, ${asked}. ${waits}${openIt(link)}`
    : md`*${deed}*: ${stateWords(state)}, ${asked}${openIt(link)}`;
  if (isShared) return [paragraph(text, whyButton(request))];
  const block = paragraph(text);
  if (!command) return [block];
  const { requester, approval } = record;
  const votes = approval && needsOf(policy, approval);
  const vote = votes && { votes, voter: person, ourTeamId, requester, ...askerIn(record) };
  if (state === "draft" && vote && !voteRefusal(vote))
    return askingRow(request, command, {
      mayVote: true,
      link,
      since: await changesSince(request, context),
    });
  if (!mayRun(command, [record.target])) return [block];
  const own = cardButtons(request, command, { commands });
  // The card of a request that is about to be sent has no buttons, because they would soon be too late.
  return [
    block,
    waysRow(own.length === 0 && state === "authorized" ? [cancelButton(request)] : own),
  ];
}

function yoursWords(mine: number, all: number): string {
  if (mine === 0) return all === 1 ? ", not yours" : ", none of them yours";
  if (mine < all) return `, ${mine} of them yours`;
  return all === 1 ? ", yours" : ", all of them yours";
}
