import type { Seen, SeenChannel, SeenNotification, SeenOption } from "./seen.ts";

/**
 * What a person can do in the workspace: one set of functions, used by the page and by tests alike.
 * They throw when a real person couldn't do it at all (a button that isn't there, a channel they can't see);
 * what the app answered, or failed to, comes back as an `Outcome`.
 * Types only, so that a browser can import this file too; `person.ts` makes it.
 */

/** What came of handing one thing to the app. */
export interface Outcome {
  /** The app answered in time with a 2xx (or an envelope's ack). True where nothing had to be delivered. */
  acked: boolean;
  /** From the moment of sending to the ack; 0 when nothing was sent. */
  ackMs: number;
  /** HTTP status, with a request URL. */
  status?: number;
  /** What Slack would say: operation_timeout, dispatch_failed, invalid_command, not_supported_in_threads, confirm_denied, … */
  error?: string;
  /** To repeat or look up the delivery; missing when nothing was sent. */
  deliveryId?: string;
  /** Field errors of a submission, by block id. */
  errors?: Record<string, string>;
  /** The message this person wrote. */
  ts?: string;
  /** The address a button with a `url` opened. */
  opened?: string;
}

export interface Where {
  /**
   * Where to look: the ts of a message, `latest` (the newest message), `modal` or `home`. Without it: the open modal if
   * there is one, else this person's messages, newest first.
   */
  in?: string;
  /** Only in this channel (id or name). */
  channel?: string;
  /** Tells apart buttons with equal labels: their `value`. */
  value?: string;
}

export interface TypeOptions {
  threadTs?: string;
  /** As a phone types: quotes and dashes become “ ” ’ and —. */
  phone?: boolean;
  /** With a file of this name. */
  file?: string;
  /** A reply that is “also sent to the channel”. */
  alsoInChannel?: boolean;
}

/** By label, block id or action id of the input; lists for what takes several. A select takes the option's label or value. */
export type FormValues = Record<string, string | readonly string[] | number | null>;

export interface PersonActions {
  readonly id: string;
  readonly name: string;
  /** Writes a message, or runs a slash command when the text begins with `/`. `channel` is an id or a name. */
  types(channel: string, text: string, options?: TypeOptions): Promise<Outcome>;
  /** Presses a button, by label or action id. A confirm dialog is answered with yes unless told. */
  presses(button: string, options?: Where & { confirm?: "yes" | "no" }): Promise<Outcome>;
  /** Chooses in a select, overflow menu, radio group, checkboxes or picker, or fills a text input, without submitting. */
  chooses(
    element: string,
    choice: string | readonly string[] | number | null,
    options?: Where,
  ): Promise<Outcome>;
  /** Types into a select that loads its options from the app. */
  suggests(
    element: string,
    typed: string,
    options?: Where,
  ): Promise<Outcome & { options: SeenOption[] }>;
  /** Fills the modal on top and submits it. Required inputs left empty are refused by the client, like in Slack. */
  submits(values?: FormValues): Promise<Outcome>;
  /** Closes the modal on top (`all`: the whole stack, like the × does). */
  closes(options?: { all?: boolean }): Promise<Outcome>;
  opensHome(): Promise<Outcome>;
  /** A global shortcut, by name or callback id; `channel` is what this person looks at. */
  picksShortcut(shortcut: string, channel?: string): Promise<Outcome>;
  /** A message shortcut on a message this person sees. */
  picksMessageShortcut(shortcut: string, ts: string): Promise<Outcome>;
  deletesMessage(ts: string): Promise<Outcome>;
  dismissesToasts(): void;
  /** Everything this person sees. */
  sees(): Seen;
  /** One channel as this person sees it, by id or name. Throws when they can't see it. */
  seesChannel(channel: string): SeenChannel;
  /** Notifications for mentions of this person, oldest first. */
  mentions(): SeenNotification[];
  /**
   * Resolves with what is seen as soon as `wanted` holds (at once if it does). Rejects, saying what was seen instead, when nothing
   * changes any more.
   */
  until(wanted: (seen: Seen) => boolean): Promise<Seen>;
}
