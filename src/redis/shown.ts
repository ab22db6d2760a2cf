import { type Fields, fieldsNamed } from "./redis.ts";

/** Parses `<channel> <ts>`, which is how `createPostOnce` stores the place of a message. */
export function placeIn(field = ""): { channelId: string; ts: string } | undefined {
  const [channelId, ts] = field.split(" ");
  return channelId && ts ? { channelId, ts } : undefined;
}

/**
 * Reads from a record's hash what Slack shows of it: the marks of its messages by key (`marks`),
 * where its card is, and what a card that is edited over time shows now (`shown`). `formerCard` is
 * the card before, if it was posted again because Slack no longer allowed edits.
 */
export function shownIn(fields: Fields) {
  const { card: at, "was:card": was, shown = "" } = fields;
  const [card, formerCard] = [placeIn(at), placeIn(was)];
  return {
    marks: Object.fromEntries(fieldsNamed("said:", fields)),
    shown,
    ...(card ? { card } : {}),
    ...(formerCard ? { formerCard } : {}),
  };
}
