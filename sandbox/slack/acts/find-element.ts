import type { Where } from "../actions.ts";
import { elementsIn, type Found, labelOf } from "../blocks/walk.ts";
import type { Place } from "../deliver/payloads.ts";
import { type Fields, fieldsOf, textOf, wordsOf } from "../fields.ts";
import { maySee } from "../state/channels.ts";
import { messagesIn } from "../state/messages.ts";
import type { Ephemeral, Message } from "../state/records.ts";
import { topModal } from "../state/views.ts";
import { type Act, visibleChannel } from "./act.ts";

/** An element and the place it is in. */
export interface Spot extends Found {
  place: Place;
}

/**
 * The element a person means by a label or action id. Looks where told; else in the open modal when there is one, else
 * through the person's messages, newest first. Throws, naming what there is, when it isn't there.
 */
export function findElement(
  act: Act,
  wanted: string,
  where: Where,
  fits: (element: Fields) => boolean,
): Spot {
  const seen: string[] = [];
  for (const place of placesOf(act, where)) {
    const found = elementsIn(place.kind === "view" ? place.view.blocks : place.message.blocks);
    const fitting = found.filter(({ element }) => fits(element));
    const match = fitting.find((spot) => isMeant(spot, wanted, where));
    if (match) return { ...match, place };
    seen.push(
      ...fitting.map(({ element, block, actionId }) => labelOf(element, block) || actionId),
    );
  }
  const there =
    seen.length > 0
      ? `There ${seen.length === 1 ? "is" : "are"} ${[...new Set(seen)].slice(0, 30).join(", ")}.`
      : "There are none.";
  throw new Error(
    `${act.person.name} sees no ${wanted}${where.in === undefined ? "" : ` in ${where.in}`}. ${there}`,
  );
}

function isMeant(
  { element, block, actionId, blockId }: Found,
  wanted: string,
  { value }: Where,
): boolean {
  if (value !== undefined && textOf(element["value"]) !== value) return false;
  if (element["type"] === "feedback_buttons") return feedbackLabels(element).includes(wanted);
  return actionId === wanted || blockId === wanted || labelOf(element, block) === wanted;
}

export function feedbackLabels(element: Fields): string[] {
  return ["positive_button", "negative_button"].map((key) =>
    wordsOf(fieldsOf(element[key])["text"]),
  );
}

function placesOf(act: Act, where: Where): Place[] {
  const { workspace, person } = act;
  const modal = topModal(workspace, person.id);
  if (where.in === "home") {
    const home = workspace.homes.get(person.id);
    return home ? [{ kind: "view", view: home }] : [];
  }
  if (where.in === "modal" || (where.in === undefined && modal))
    return modal ? [{ kind: "view", view: modal }] : [];
  const messages = messagesFor(act, where);
  if (where.in === "latest") return messages.slice(0, 1);
  return where.in === undefined
    ? messages
    : messages.filter((place) => place.kind === "message" && place.message.ts === where.in);
}

/** This person's messages, newest first. */
function messagesFor(act: Act, where: Where): Place[] {
  const { workspace, person } = act;
  const channels =
    where.channel === undefined
      ? [...workspace.channels.values()].filter((channel) => maySee(channel, person))
      : [visibleChannel(act, where.channel)];
  const places = channels.flatMap((channel) => {
    const mine = workspace.ephemerals.filter(
      ({ toUserId, channelId }) => toUserId === person.id && channelId === channel.id,
    );
    const all: (Message | Ephemeral)[] = [...messagesIn(workspace, channel.id), ...mine];
    return all.map((message) => ({
      kind: "message" as const,
      message,
      ephemeral: "toUserId" in message,
      channel,
    }));
  });
  return places.toSorted((one, other) => (one.message.ts > other.message.ts ? -1 : 1));
}
