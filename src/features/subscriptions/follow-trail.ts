import type { Config } from "../../config/config.ts";
import { scopeOfChannel } from "../../core/permit/access.ts";
import type { Events } from "../../core/events/read-events.ts";
import type { NewsLine } from "../../monitor/news.ts";
import type { Subscription } from "./subscriptions.ts";
import type { TrailPosition } from "./trail-position.ts";

/**
 * How long events wait for a source that can't be read (ms). After that the others are told without
 * it, and the night and digests still have what it tells.
 */
const sourceWithinMs = 10 * 60_000;

/**
 * Tells subscribed channels of the events that the audit trail alone proves. Any process may do it
 * at any time: a line has the same key in each, and the position moves only once every line is
 * stored. So a process that dies in between leaves the same records to the next one.
 */
export function trailFollower(on: {
  config: Pick<Config, "policy">;
  events: Pick<Events, "end" | "recordsAfter" | "underTopic">;
  position: TrailPosition;
  /** All subscriptions. */
  all(): Promise<readonly Subscription[]>;
  /** Posts lines in a channel, each once by its key. */
  post(channelId: string, lines: readonly (NewsLine & { key: string })[]): Promise<void>;
  /** Redis time (ms). */
  now(): number;
}) {
  const { events, position } = on;
  type Records = Awaited<ReturnType<typeof events.recordsAfter>>["entries"];

  /** False where something could not be read. */
  async function tellOf(records: Records, subscription: Subscription): Promise<boolean> {
    const { channelId, glob, at, events: topics } = subscription;
    const scope = scopeOfChannel(on.config.policy, channelId);
    const since = records.filter((record) => record.at >= at);
    let isWhole = true;
    for (const topic of topics) {
      const news = await events.underTopic(since, { topic, scope, targets: [glob] });
      const lines = news.events.map(({ id, text, button }) => ({
        key: `${topic} ${id}`,
        text: text.value,
        ...(button ? { button } : {}),
      }));
      if (lines.length > 0) await on.post(channelId, lines);
      if (news.unread.length > 0) isWhole = false;
    }
    return isWhole;
  }

  const begin = async () => position.begin(await events.end());

  return {
    /** Whoever subscribes later than this is told of every event after it. */
    begin,
    async follow(): Promise<void> {
      const from = await position.read();
      if (from === undefined) return void (await begin());
      const { entries, last } = await events.recordsAfter(from);
      if (last === undefined) return;
      const subscriptions = entries.length > 0 ? await on.all() : [];
      const isWhole = await Promise.all(
        subscriptions.map((subscription) => tellOf(entries, subscription)),
      );
      const [oldest] = entries;
      const isLate = oldest !== undefined && on.now() - oldest.at > sourceWithinMs;
      if (isLate || isWhole.every(Boolean)) await position.move(last);
    },
  };
}
