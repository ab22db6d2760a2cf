import { linkTo } from "../../core/deliver/permalink.ts";
import { defineFeature } from "../define-feature.ts";
import { createFeeds } from "./feeds.ts";
import { trailFollower } from "./follow-trail.ts";
import { renderFeed } from "./render-feed.ts";
import { subscribe } from "./subscribe.ts";
import { createSubscriptions, subscriptionsOf } from "./subscriptions.ts";
import { tellElsewhere } from "./tell-elsewhere.ts";
import { createTrailPosition } from "./trail-position.ts";
import { unsubscribe } from "./unsubscribe.ts";

/** How soon a channel is told of what only the trail says (ms). */
const followEveryMs = 2_000;

/** Tells subscribed channels when VMs fail, drift, or are changed from another channel. */
export const subscriptions = defineFeature({
  name: "subscriptions",
  commands: [subscribe, unsubscribe],
  needs: [
    "config",
    "redis",
    "key",
    "events",
    "projectName",
    "web",
    "attestationNote",
    "now",
    "repeat",
    "at",
  ],
  start(on) {
    const { projectName, web, attestationNote } = on;
    const feeds = createFeeds({ ...on, render: renderFeed });
    const trail = trailFollower({
      ...on,
      position: createTrailPosition(on.redis, on.key),
      all: async () => all.all(),
      post: feeds.post,
    });
    const all = createSubscriptions({ ...on, begin: trail.begin, post: feeds.post });
    on.repeat(
      "subscriptions",
      Math.min(followEveryMs, on.config.policy.timing.sweepMs),
      trail.follow,
    );
    return {
      provides: [subscriptionsOf.providedBy(all)],
      messages: [feeds.source],
      on: {
        troubleChanged: all.follow,
        resultPosted: (request, command) =>
          tellElsewhere(request, command, {
            projectName,
            attestationNote,
            linkTo: (message) => linkTo(message, { web }),
            follow: all.follow,
          }),
      },
    };
  },
});
