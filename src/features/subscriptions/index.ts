import { linkTo } from "../../core/deliver/permalink.ts";
import { defineFeature } from "../define-feature.ts";
import { createFeeds } from "./feeds.ts";
import { renderFeed } from "./render-feed.ts";
import { subscribe } from "./subscribe.ts";
import { createSubscriptions, subscriptionsOf } from "./subscriptions.ts";
import { tellElsewhere } from "./tell-elsewhere.ts";
import { unsubscribe } from "./unsubscribe.ts";

/** Tells subscribed channels when VMs fail, drift, or are changed from another channel. */
export const subscriptions = defineFeature({
  name: "subscriptions",
  commands: [subscribe, unsubscribe],
  needs: ["config", "redis", "key", "projectName", "web", "attestationNote", "at"],
  start(on) {
    const { projectName, web, attestationNote } = on;
    const feeds = createFeeds({ ...on, render: renderFeed });
    const all = createSubscriptions({ ...on, post: feeds.post });
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
