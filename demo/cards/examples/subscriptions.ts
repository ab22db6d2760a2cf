import { list } from "../../../src/commands/vm/list.ts";
import { renderFeed } from "../../../src/features/subscriptions/render-feed.ts";
import { subscribe } from "../../../src/features/subscriptions/subscribe.ts";
import { subscriptionsOf } from "../../../src/features/subscriptions/subscriptions.ts";
import { unsubscribe } from "../../../src/features/subscriptions/unsubscribe.ts";
import { md } from "../../../src/messages/markdown.ts";
import type { Command } from "../../../src/registry/define.ts";
import type { Input } from "../../../src/registry/invocation.ts";
import { type About, type Example, at } from "../example.ts";
import { longName, longReason } from "../long-lists.ts";
import { answerOf, readingOf, someOf } from "../reading.ts";
import { each } from "../requests.ts";

const subscribed = {
  channelId: "C01OPS",
  glob: "web-*",
  events: ["trouble", "drift"] as const,
  by: "U0OLIVIA",
  at,
};

const answers =
  (command: Command, input: Input, all = [subscribed]) =>
  (about: About) => {
    const stored = someOf<ReturnType<typeof subscriptionsOf>>({
      of: async () => all,
      set: async () => undefined as never,
      remove: async () => all.map(({ glob }) => glob) as never,
    } as never);
    const services = new Map([subscriptionsOf.providedBy(stored)]);
    return answerOf(command, input, readingOf(about, [list, subscribe, unsubscribe], { services }));
  };

export const examples: readonly Example[] = [
  {
    name: "what a channel is subscribed to, one event",
    reader: "channel",
    make: ({ who, vm }) =>
      renderFeed([{ text: `✅ Restarted \`${vm}\`. In payments, requested by ${who}.` }]),
    push: "✅ Restarted db-1. In payments, requested by olivia.",
  },
  {
    name: "what a channel is subscribed to, 40 events",
    make: () =>
      renderFeed(
        each(40, (n) => ({ text: md`🔴 *${longName(n)}* failed: ${longReason.repeat(12)}`.value })),
      ),
    long: { many: 40, rest: (left) => `… and ${left} more.` },
  },
  { name: "/gatehouse subscribe", make: answers(subscribe, {}) },
  { name: "/gatehouse subscribe, without any", make: answers(subscribe, {}, []) },
  {
    name: "/gatehouse subscribe, to more",
    make: answers(subscribe, { targets: "web-*", events: "trouble" }),
  },
  { name: "/gatehouse unsubscribe", make: answers(unsubscribe, { targets: "web-*" }) },
];
