import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import { openPlace } from "../../core/deliver/open-place.ts";
import { type Relocation, anewMark, isSaid } from "../../core/deliver/post-once.ts";
import type { Log } from "../../log/log.ts";
import type { Alerts, StoredAlert } from "./alerts.ts";
import { sourcesSection } from "./sources.ts";

/** How often a group whose card stands in another channel tries its own one again (ms). */
export const homeAgainMs = 30_000;

/** Creates what decides in which channel the card of a group of alerts stands. */
export function createAlertPlaces(options: {
  alerts: Pick<Alerts, "close" | "outbox">;
  config: { readonly policy: Policy };
  log: Log;
}) {
  const { alerts } = options;

  /**
   * The group's own channel. gatehouse.yml may name one now that it didn't name when the group
   * began.
   */
  function ownChannelOf({ record }: StoredAlert): string | undefined {
    const { policy } = options.config;
    const { channel } = sectionOf(policy, sourcesSection)[record.source] ?? {};
    return record.channelId || channel || policy.alerts?.channel;
  }

  /** The channel in which the card stands or can stand now (`openPlace`). */
  function placeOf(alert: StoredAlert, now: number): string | undefined {
    const { delivered, closed } = alert;
    const own = ownChannelOf(alert);
    const isMoving = delivered.card !== undefined && !isSaid(delivered.marks["card"]);
    if (isMoving && own) return own;
    return delivered.card?.channelId ?? openPlace(own, options.config.policy, closed, now);
  }

  /**
   * Decides whether a card that stands in another channel is posted again in its own one. While the
   * group fires, that is tried from time to time until the channel takes it. Resolves with true
   * when the mark of the card was changed.
   */
  async function isToMove(alert: StoredAlert, now: number): Promise<boolean> {
    const { id, delivered, closed, state } = alert;
    const { card, marks } = delivered;
    const own = ownChannelOf(alert);
    if (!card || own === undefined || card.channelId === own) return false;
    const { card: mark = "" } = marks;
    const isDue = state === "firing" && now - (closed[own] ?? -Infinity) >= homeAgainMs;
    if (isDue && isSaid(mark)) return alerts.outbox.mark(id, "said:card", mark, anewMark);
    return !isDue && mark === anewMark && alerts.outbox.mark(id, "said:card", mark, card.ts);
  }

  /**
   * Notes that the channel is closed. The message is read again at once to find another channel.
   */
  const whenClosed =
    (id: string, channelId: string) =>
    async (error: string): Promise<Relocation> => {
      options.log.warn("alert.channel-closed", { alert: id, channel: channelId, error });
      await alerts.close(id, channelId);
      return "moved";
    };

  return { ownChannelOf, placeOf, isToMove, whenClosed };
}
