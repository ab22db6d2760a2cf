import { isChannel, isDecidedElsewhere } from "../cards/render-result.ts";
import { isChannelClosed } from "./placements.ts";
import { isSaid } from "./post-once.ts";
import type { Journal } from "../request/journal.ts";
import type { RequestIn, StoredRequest } from "../request/stored-request.ts";
import { endUnsent } from "../perform/perform.ts";

/** Whether it waits for approval, and its card is posted where only the requester sees it. */
export function isUnapprovable(request: StoredRequest): request is RequestIn<"draft"> {
  return (
    request.state === "draft" &&
    isSaid(request.delivered.marks["card"]) &&
    isOnlyForRequester(request)
  );
}

/**
 * Cancels a request whose card only the requester sees. No one can approve it, so it is canceled
 * now instead of when its time is over.
 */
export async function cancelUnapprovable(
  request: RequestIn<"draft">,
  store: Pick<Journal, "move">,
): Promise<void> {
  const isTeams = request.record.teamChannel !== undefined;
  const where = isTeams ? "the channel of its team" : "this channel";
  const why = `Gatehouse can't post in ${where}, so no one can approve it`;
  const hint =
    "Use /invite @gatehouse there, then request again; sharedChannels in gatehouse.yml must name a channel that another company shares.";
  await endUnsent(request, { state: "cancelled", why, hint }, { store });
}

/** Whether only the requester sees the card. */
function isOnlyForRequester(request: StoredRequest): boolean {
  const { record, delivered } = request;
  if (isDecidedElsewhere(request)) return false;
  return (
    isChannelClosed(request) || (delivered.isTeamClosed === true && !isChannel(record.channelId))
  );
}
