import type { Topic } from "../core/events/event.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { Target } from "../registry/define.ts";

/** A line about one event. `text` is mrkdwn. */
export interface NewsLine {
  text: string;
  /** The link to a message with more details. */
  link?: string | undefined;
  button?: ButtonSpec;
}

export type Followed = Pick<Target, "kind" | "id" | "name" | "projectId" | "projectName"> & {
  /** The project's current name, if it may have been renamed. */
  projectNameNow?: string | undefined;
};

/** One event that subscribed channels may be told. */
export interface News {
  topic: Topic;
  /** An event has the same key in any process. */
  key: string;
  about: readonly Followed[];
  /** The line for a channel. `about` are the targets that it follows and may see. */
  line(about: readonly Followed[]): NewsLine | Promise<NewsLine>;
  /** The channels that have been told already. */
  saidIn?: readonly (string | undefined)[];
}

/**
 * Tells the subscribed channels. It may be called several times for one event; each channel is told
 * once.
 */
export type Follow = (news: readonly News[]) => Promise<void>;
