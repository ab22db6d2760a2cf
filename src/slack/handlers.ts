import type { View } from "@slack/types";
import type { Ask } from "./ask.ts";
import type { InputValue } from "./read-values.ts";
import type { Reply } from "./reply.ts";

export type Submission = Extract<Ask, { kind: "submission" }>;

/** What comes of looking at a submission: with `errors` it goes back to the person and is not handled. */
export interface SubmissionVerdict {
  /** By block id of the input. */
  errors?: Readonly<Record<string, string>>;
  /** Shown in place of the submitted view. */
  update?: View;
  /** Closes all of the person's views, not just this one. */
  clear?: boolean;
}

/** Somebody types into a select that loads its options from us. */
export interface SuggestRequest {
  userId: string;
  teamId: string;
  channelId: string;
  action: string;
  blockId: string;
  typed: string;
  /** Of the view it is in, if it is in one. */
  callback: string;
  privateMetadata: string;
  values: Readonly<Record<string, InputValue>>;
}

export interface Suggestion {
  label: string;
  /** At most 75 characters. Whatever comes back later may be anything: check it again. */
  value: string;
  description?: string;
}

/** What is done with what reached us. Everything but `submit` and `suggest` runs after the ack. */
export interface Handlers {
  /** May run twice for one ask, when a gateway dies over it: it must know its asks by `ask.id`. */
  handle(ask: Ask, reply: Reply): Promise<void>;
  /** The same delivery came again: nothing is done, the person may hear how the first one stands. */
  repeated(ask: Ask, reply: Reply): Promise<void>;
  /** Runs before the ack, so it has about two seconds; later than that its answer can't be shown. */
  submit(ask: Submission): Promise<SubmissionVerdict | undefined>;
  /** Runs before the ack. What fails, takes over two seconds or is missing suggests nothing. */
  suggest?(request: SuggestRequest): Promise<readonly Suggestion[]>;
  /** Whether this may be answered though it could not be written down: it changes nothing. */
  mayGoWithoutRedis?(ask: Ask): boolean;
  /** Answers such an ask. */
  readWithoutRedis?(ask: Ask, reply: Reply): Promise<void>;
  /** A gateway died over this ask, too long ago to do it now. */
  tooLate(reply: Reply): Promise<void>;
  /** Groups or their members changed: what is remembered about people may be wrong. */
  peopleChanged(): void;
}
