import { hash } from "node:crypto";
import type { Policy } from "../../config/policy-file.ts";
import { closedIn, openPlace, tryAgainMs } from "../../core/deliver/open-place.ts";
import type { Board } from "../../redis/board.ts";
import type { Fields } from "../../redis/redis.ts";
import { lookAgainMs, pacedEdit, soonest } from "./alert-pace.ts";
import type { Now } from "./alert-view.ts";
import type { AlertMessageParts } from "./group-messages.ts";
import { groupsByVm, renderOverview } from "./render-overview.ts";

const mostListed = 20;

/**
 * Creates the function that returns what an overview of many groups of alerts owes: its card, and
 * the message that calls people.
 */
export function createOverviewMessages(
  options: AlertMessageParts & { config: { readonly policy: Policy } },
) {
  const { alerts, calls, places, viewOf } = options;

  return async function messagesOfOverview(overview: Board, fields: Fields, present: Now) {
    const { now, frozen } = present;
    const { delivered, memberIds, place } = overview;
    const { policy } = options.config;
    const channelId =
      delivered.card?.channelId ?? openPlace(place.channelId, policy, closedIn(fields), now);
    if (channelId === undefined) return { messages: [], waitMs: tryAgainMs };
    const members = await alerts.getMany(memberIds);
    const firing = members.filter(({ state }) => state === "firing");
    const ended = members.length - firing.length;
    const facts = [frozen?.at, ...members.map(({ id, revision }) => [id, revision])];
    const version = hash("sha256", JSON.stringify(facts)).slice(0, 16);
    const shown = { version, look: "overview" };
    const { waitMs, shows } = pacedEdit(overview, shown, now, options.editMs);
    const render = async () => {
      const rows = groupsByVm(firing).slice(0, mostListed);
      const views = rows.map(async (together) => {
        const [first] = together;
        const viewedAs = { channelId, present, reads: 1, together };
        return first ? [{ groups: together, view: await viewOf(first, viewedAs) }] : [];
      });
      return renderOverview((await Promise.all(views)).flat(), { firing: firing.length, ended });
    };
    const { marks, card: standsAt } = delivered;
    const card = {
      key: "card",
      mark: marks["card"],
      // The overview replaces many cards, so it is more urgent than one.
      urgency: "result" as const,
      onClosed: places.whenClosed(overview.id, channelId),
      place: { channelId },
      render,
      shows,
    };
    if (!standsAt) return { messages: [card], waitMs };
    const uncalled = firing.flatMap((alert) => calls.uncalledOnOverview(alert, marks));
    const own = [overview.id, ...memberIds];
    const { calling, isWaiting } = await calls.claimed(overview.id, uncalled, channelId, own);
    const callers = firing
      .filter(({ id }) => calling.some(({ alert }) => alert === id))
      .slice(0, mostListed);
    const thread = { channelId, threadTs: standsAt.ts };
    const toCall = calls.callsBy(overview.id, calling);
    const called = calls.callsOwed(toCall, marks, thread, async () =>
      Promise.all(callers.map((caller) => viewOf(caller, { channelId, present, reads: 0 }))),
    );
    return {
      messages: [card, ...called],
      waitMs: soonest(waitMs, isWaiting && lookAgainMs),
    };
  };
}
