import { renderFeed } from "../../../src/features/subscriptions/render-feed.ts";
import { md } from "../../../src/messages/markdown.ts";
import { each, judgeLongLists, nameOf } from "../../messages/judge-long-lists.ts";
import { judgeOnLockedPhone } from "../../messages/locked-phone.ts";

const why = "the compute service reports a failure of the host, and says what it was at length. ";

judgeOnLockedPhone([
  [
    "what a channel is subscribed to",
    "channel",
    ({ who, vm }) =>
      renderFeed([{ text: `✅ Restarted \`${vm}\`. In payments, requested by ${who}.` }]),
    "✅ Restarted db-1. In payments, requested by olivia.",
  ],
]);

judgeLongLists([
  [
    "what a channel is subscribed to",
    40,
    renderFeed(each(40, (n) => ({ text: md`🔴 *${nameOf(n)}* failed: ${why.repeat(12)}`.value }))),
    (left) => `… and ${left} more.`,
  ],
]);
