import type { Message } from "../../messages/message.ts";
import { createBoards, parseBoard } from "../../redis/board.ts";
import { createOutbox } from "../../redis/outbox.ts";
import type { Fields, Keys, RedisClient } from "../../redis/redis.ts";
import type { Owes, Source } from "../../core/deliver/deliver.ts";

const keptMs = 7 * 24 * 3600_000;
/** Lines that are on their way to Redis at a time. */
const linesAtOnce = 200;

/**
 * Lines that a channel is subscribed to. Each is told once, whoever brings it and however often. While the message that lines
 * came into can't be posted yet, because the channel takes about one a second, further lines join it. Right before it is posted
 * it is closed, and stays as it is.
 */
export function createFeeds<Line extends object>(options: {
  redis: RedisClient;
  key: Keys;
  render(lines: readonly Line[]): Message;
  at?: ((point: "posting" | "posted", what: "feed") => Promise<void>) | undefined;
}) {
  const { redis, key, render } = options;
  const outbox = createOutbox(redis, key, "feed", (id) => key("feed", id));
  const lineKey = (id: string) => key("feed-line", id);
  const feeds = createBoards(redis, {
    outbox,
    memberKey: lineKey,
    openKey: (...place) => key("feed-open", ...place),
    letter: "f",
    opensForMs: keptMs,
    keptMs,
  });

  async function readFeed(id: string, fields: Fields): Promise<Owes | undefined> {
    const feed = parseBoard(id, fields);
    if (!feed) return undefined;
    const { createdAt, revision, place, delivered } = feed;
    return {
      createdAt,
      revision,
      messages: [
        {
          key: "feed",
          mark: delivered.said["feed"],
          place,
          // After the wait for the channel, right before the post
          growsUntilMarked: true,
          async render() {
            await feeds.close(id);
            const closed = parseBoard(id, await outbox.get(id)) ?? feed;
            return render(await linesOf(closed.memberIds));
          },
          urgency: "card",
        },
      ],
    };
  }

  async function linesOf(ids: readonly string[]): Promise<Line[]> {
    const texts = await Promise.all(ids.map((id) => redis.hget(lineKey(id), "line")));
    return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as Line]));
  }

  /** A process that dies in between leaves a line on no feed, which joins one when it is brought again. */
  async function add(channelId: string, { key: named, ...line }: Line & { key: string }) {
    const id = `${channelId} ${named}`;
    const stored = redis.multi().hsetnx(lineKey(id), "line", JSON.stringify(line));
    await stored.pexpire(lineKey(id), keptMs).exec();
    await feeds.join(id, { channelId });
  }

  return {
    /** Stored when it resolves. What the channel was notified about before, by its key in any process, is left out. */
    async post(channelId: string, lines: readonly (Line & { key: string })[]): Promise<void> {
      for (let from = 0; from < lines.length; from += linesAtOnce) {
        const some = lines.slice(from, from + linesAtOnce);
        await Promise.all(some.map((line) => add(channelId, line)));
      }
    },
    source: {
      outbox,
      owedSince: "at",
      readSubject: readFeed,
      at: async (point) => options.at?.(point, "feed"),
    } satisfies Source,
  };
}
