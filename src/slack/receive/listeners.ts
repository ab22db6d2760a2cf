import type { App, ViewSubmitAction } from "@slack/bolt";
import { linkFamily } from "../../messages/buttons.ts";
import { textAt } from "../json.ts";
import type { BotIdentity } from "../people/identity.ts";
import type { Deliveries } from "./deliveries.ts";
import type { InteractionHandlers } from "./interaction.ts";
import {
  readCommand,
  readHome,
  readMention,
  readPress,
  readShortcut,
  readSubmission,
} from "./read-interaction.ts";

/**
 * Names that Slack sends back: of forms, of shortcuts, and of families of buttons (`vote` for
 * `vote:approve`).
 */
export interface ListenedTo {
  forms: readonly string[];
  shortcuts: readonly string[];
  buttons: readonly string[];
}

interface ListenerOptions {
  deliveries: Deliveries;
  handlers: Pick<InteractionHandlers, "peopleChanged">;
  identity: BotIdentity;
  names: ListenedTo;
  /** The time by Redis's clock, by which the age of an interaction is decided (ms). */
  now(): number;
}

/**
 * Registers listeners for everything that people do in Slack, and for events. Work is stored before
 * it is acknowledged.
 */
export function registerListeners(app: App, options: ListenerOptions): void {
  const { deliveries, handlers, identity, names, now } = options;

  type OnCommand = Parameters<typeof app.command>[1];
  const onCommand: OnCommand = ({ command, ack }) =>
    deliveries.takeCommand(readCommand(command, now()), ack);
  app.command("/vm", onCommand);
  app.command("/project", onCommand);
  app.command("/gatehouse", onCommand);
  // A workspace may have had to give its commands other names.
  app.command(/^\/(?!(?:vm|project|gatehouse)$)/, onCommand);

  app.event("app_mention", ({ body }) =>
    deliveries.takeInteraction(readMention(body, identity, now())),
  );
  app.event("message", ({ body }) =>
    deliveries.takeInteraction(readMention(body, identity, now())),
  );
  app.event("app_home_opened", ({ body }) =>
    deliveries.takeInteraction(readHome(body, identity, now())),
  );

  type OnAction = Parameters<typeof app.action>[1];
  const onPress: OnAction = ({ body, ack }) =>
    deliveries.takeInteraction(readPress(body, now()), ack);
  for (const family of names.buttons) app.action(new RegExp(`^${family}(:|$)`), onPress);
  // Slack opens the address by itself, so nothing is stored or answered.
  app.action(new RegExp(`^${linkFamily}(:|$)`), ({ ack }) => ack());
  // Messages stay in Slack for longer than their buttons do here: a feature may be taken away.
  const ours = [...names.buttons, linkFamily].join("|");
  app.action(new RegExp(`^(?!(?:${ours})(?::|$))`), onPress);

  for (const form of names.forms)
    app.view<ViewSubmitAction>(form, ({ body, view, ack }) =>
      deliveries.takeSubmission(readSubmission(body, now()), view, ack),
    );
  app.view({ type: "view_closed" }, ({ ack }) => ack());

  for (const callback of names.shortcuts)
    app.shortcut(callback, ({ shortcut, ack }) =>
      deliveries.takeInteraction(readShortcut(shortcut, now()), ack),
    );

  app.options<"block_suggestion">({ type: "block_suggestion" }, async ({ options: typed, ack }) => {
    const request = {
      userId: textAt(typed, "user", "id"),
      teamId: textAt(typed, "user", "team_id") || textAt(typed, "team", "id"),
      action: textAt(typed, "action_id"),
      typed: textAt(typed, "value"),
      privateMetadata: textAt(typed, "view", "private_metadata"),
    };
    await ack(await deliveries.suggest(request));
  });

  // This starts before the acknowledgment, so that a right that was removed doesn't outlast it.
  type OnEvent = Parameters<typeof app.event>[1];
  const onGroup: OnEvent = async ({ event, body }) => {
    const id = body.event_id || textAt(event, "event_ts");
    void deliveries.background.run(() => handlers.peopleChanged(event, id));
  };
  app.event("subteam_members_changed", onGroup);
  app.event("subteam_updated", onGroup);
}
