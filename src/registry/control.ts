import type { Message } from "../messages/message.ts";
import type { Answer } from "./define.ts";

/** What administering commands and those about requests may do; joined in `slack/`. */
export interface Control {
  /** Throws UserError unless this person is an administrator. */
  mustAdminister(): void;
  /** False when it was frozen already. */
  freeze(reason: string): Promise<boolean>;
  /** False when it was not frozen. */
  thaw(): Promise<boolean>;
  /** Whether these words could be run, which rule decides, and who would have to approve. */
  canI(words: string): Promise<Message>;
  /** The story of a request: each step, and which rule asked for what. */
  why(requestId: string): Promise<Message>;
  /** What waits for approval; `mine` by this person's vote. */
  approvals(): Promise<Message>;
  /** The audit trail, about a target or a person. */
  audit(words: string): Promise<Answer>;
  /** Digests of this channel, or of another one named in `words`. Without an action: how they stand. */
  digest(action: "on" | "off" | "now" | "handover" | undefined, words: string): Promise<Message>;
}
