import * as z from "zod";
import { message, readable, section, sentence } from "../../messages/message.ts";
import { md, name, when } from "../../messages/text.ts";
import { voteRefusal } from "../../policy/vote.ts";
import { defineCommand } from "../../registry/define.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import type { ReadContext } from "../context.ts";

const maxShown = 15;

export const approvals = defineCommand({
  kind: "read",
  name: "gatehouse approvals",
  summary: "Show requests that wait for approval, yours to decide first",
  example: "/gatehouse approvals",
  class: "read",
  args: z.object({}),
  async answer(_args, { person, policy, ourTeamId, journal }: ReadContext) {
    const open = await journal.getMany(await journal.openIds());
    const drafts = open.filter(({ state, record }) => state === "draft" && record.approval);
    if (drafts.length === 0) return sentence(md`No requests are waiting for approval.`);
    const isMine = ({ record, votes }: StoredRequest) =>
      !voteRefusal({ policy, voter: person, ourTeamId, requester: record.requester }) &&
      !votes.some(({ voterId }) => voterId === person.id);
    const sorted = drafts.toSorted((a, b) => Number(isMine(b)) - Number(isMine(a)));
    const mine = sorted.filter(isMine).length;
    const title = md`${drafts.length} waiting for approval, ${mine} for you. The buttons are on each request's message, with the facts.`;
    return message(
      readable(title),
      section(title),
      ...sorted.slice(0, maxShown).map((request) => section(row(request, isMine(request)))),
    );
  },
});

function row({ record, votes }: StoredRequest, isMine: boolean) {
  const yes = votes.filter(({ vote }) => vote === "approve").length;
  return md`${isMine ? "👉 " : ""}*${record.command}* ${name(record.target.name)}, requested by ${record.requester.name}${record.reason ? md`: “${record.reason}”` : ""}. ${yes} of ${record.approval?.required ?? 1}, until ${when(record.approval?.expiresAt ?? 0, "{time}")}.`;
}
