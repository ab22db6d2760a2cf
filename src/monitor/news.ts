import type { ButtonSpec } from "../messages/message.ts";
import type { Target } from "../registry/define.ts";

/** What can happen: VMs go to ERROR and out of it, attestation fails, and changes are made. */
export const events = ["trouble", "drift", "changes"] as const;
export type Event = (typeof events)[number];

/** What one reads of one thing that happened. `text` is mrkdwn. */
export interface NewsLine {
  text: string;
  /** The address of a message that has more. */
  link?: string | undefined;
  button?: ButtonSpec;
}

export type Followed = Pick<Target, "kind" | "id" | "name" | "projectId" | "projectName"> & {
  /** Where the project may have another name by now. */
  projectNameNow?: string | undefined;
};

/** One thing that happened. */
export interface News {
  event: Event;
  /** The same news has the same key, in any process. */
  key: string;
  about: readonly Followed[];
  /** About those of them that a channel follows, and may see. */
  line(about: readonly Followed[]): NewsLine | Promise<NewsLine>;
  /** These channels know already. */
  saidIn?: readonly (string | undefined)[];
}

/** At least once for each thing that happened: each channel is told once. */
export type Follow = (news: readonly News[]) => Promise<void>;
