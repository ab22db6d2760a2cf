import type { View } from "@slack/types";
import type { Message } from "../messages/message.ts";

/** The ways to answer whoever asked. Each resolves when Slack took it; a failure is logged, never thrown on. */
export interface Reply {
  /** Only the asker sees it: response URL first (works without membership), else an ephemeral post. */
  privately(message: Message): Promise<void>;
  /** Replaces the ephemeral message whose button was pressed; where that can't be, it is told privately. */
  instead(message: Message): Promise<void>;
  /** The same for what must not be shown where it can't be replaced again: false when nothing was replaced. */
  replace(message: Message): Promise<boolean>;
  /** Takes that ephemeral message away. */
  remove(): Promise<void>;
  /** Opens a modal with the ask's trigger; false when the trigger was too old. Returns the view's id and hash. */
  open(view: View): Promise<{ id: string; hash: string } | undefined>;
  update(viewId: string, view: View, hash?: string): Promise<boolean>;
}
