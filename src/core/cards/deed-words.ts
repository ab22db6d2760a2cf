import { type Markdown, dayAndTime, md, name, when } from "../../messages/message.ts";
import { type ChangeCommand, nounOf } from "../../registry/define.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { sentAtOf } from "../request/stored-request.ts";

/** A time of day alone is clear for this long (ms). */
const clearForMs = 12 * 3600_000;

const isOfToday = (at: number, now: number) => Math.abs(now - at) < clearForMs;

/** `11:54 AM`, and the day where the time alone isn't clear. */
export const timeWords = (at: number, now: number): Markdown =>
  isOfToday(at, now) ? when(at, "{time}") : dayAndTime(at);

/** `at 11:54 AM`, or `yesterday 11:54 AM`. */
export const atWords = (at: number, now: number): Markdown =>
  isOfToday(at, now) ? md`at ${timeWords(at, now)}` : timeWords(at, now);

/** `olivia resized it at 11:54 AM (r-7fk3m9q2xw)`, of a change that was made. */
export function deedWords(request: StoredRequest, command: ChangeCommand, now: number): Markdown {
  const { requester, id } = request.record;
  const { done } = command.say;
  const verb = `${done.slice(0, 1).toLowerCase()}${done.slice(1)}`;
  return md`${requester.name} ${verb} it ${atWords(sentAtOf(request), now)} (${name(id)})`;
}

/** `olivia's resize (r-7fk3m9q2xw)`, of a request in any state. */
export const requestWords = ({ record }: StoredRequest, command: ChangeCommand): Markdown =>
  md`${record.requester.name}'s ${nounOf(command)} (${name(record.id)})`;
