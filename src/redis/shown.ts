import { type Fields, fieldsNamed } from "./redis.ts";

/** `<channel> <ts>`, as `createPostOnce` keeps it. */
export function placeIn(field = ""): { channelId: string; ts: string } | undefined {
  const [channelId, ts] = field.split(" ");
  return channelId && ts ? { channelId, ts } : undefined;
}

/**
 * What Slack shows, as a hash says: the marks of its messages by their keys, where its card is, and, of one that is edited as things
 * go on, what that shows. `formerCard`: the one before, where it was posted anew because Slack no longer lets it be edited.
 */
export function shownIn(fields: Fields) {
  const { card: at, "was:card": was, shown = "" } = fields;
  const [card, formerCard] = [placeIn(at), placeIn(was)];
  return {
    said: Object.fromEntries(fieldsNamed("said:", fields)),
    shown,
    ...(card ? { card } : {}),
    ...(formerCard ? { formerCard } : {}),
  };
}
