import { type Markdown, atTime, md, name } from "../../messages/markdown.ts";
import { type ChangeCommand, nounOf } from "../../registry/define.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { sentAtOf } from "../request/stored-request.ts";
import { lowerFirst } from "../../text/letter-case.ts";

/** `olivia resized it at 11:54 AM (r-7fk3m9q2xw)`, of a change that was made. */
export function deedWords(request: StoredRequest, command: ChangeCommand, now: number): Markdown {
  const { requester, id } = request.record;
  const { done } = command.say;
  const verb = lowerFirst(done);
  return md`${requester.name} ${verb} it ${atTime(sentAtOf(request), now)} (${name(id)})`;
}

/** `olivia's resize (r-7fk3m9q2xw)`, of a request in any state. */
export const requestWords = ({ record }: StoredRequest, command: ChangeCommand): Markdown =>
  md`${record.requester.name}'s ${nounOf(command)} (${name(record.id)})`;
