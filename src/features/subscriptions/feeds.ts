import * as z from "zod";
import type { Message } from "../../messages/blocks.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
import type { NewsLine } from "../../monitor/news.ts";
import { createBoards, parseBoard } from "../../redis/board.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { createOutbox } from "../../redis/outbox.ts";
import type { Fields, Keys, RedisClient } from "../../redis/redis.ts";
import type { Owes, Source } from "../../core/deliver/deliver.ts";

const style = z.enum(["primary", "danger"]).exactOptional();

const button = objectOf<ButtonSpec>({
  label: z.string(),
  about: z.string().exactOptional(),
  action: z.string(),
  value: z.string(),
  style,
  confirm: z
    .looseObject({ title: z.string(), text: z.string(), confirm: z.string(), style })
    .exactOptional(),
  url: z.string().exactOptional(),
});

export const feedLineRecord = defineRecord({
  name: "line of a feed",
  schema: objectOf<NewsLine>({
    text: z.string(),
    link: z.string().exactOptional(),
    button: button.exactOptional(),
  }),
});

const keptMs = 7 * 24 * 3600_000;
/** How many lines are written to Redis at a time. */
const linesAtOnce = 200;

/**
 * Posts the lines that a channel is subscribed to, each once, however often it is brought and by
 * whichever process. A channel takes about one message a second; while a message waits for that,
 * further lines join it. Right before it is posted it is closed, and it never changes afterwards.
 */
export function createFeeds(options: {
  redis: RedisClient;
  key: Keys;
  render(lines: readonly NewsLine[]): Message;
  at?: ((point: "posting" | "posted", subject: "feed") => Promise<void>) | undefined;
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

  async function prepareFeed(id: string, fields: Fields): Promise<Owes | undefined> {
    const feed = parseBoard(id, fields);
    if (!feed) return undefined;
    const { createdAt, revision, place, delivered } = feed;
    return {
      createdAt,
      revision,
      messages: [
        {
          key: "feed",
          mark: delivered.marks["feed"],
          place,
          // `render` runs after the wait for the channel, right before the post.
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

  async function linesOf(ids: readonly string[]): Promise<NewsLine[]> {
    const lines = await Promise.all(
      ids.map(async (id) => {
        const text = await redis.hget(lineKey(id), "line");
        return text === null ? undefined : feedLineRecord.parse(text, lineKey(id));
      }),
    );
    return lines.filter((line) => line !== undefined);
  }

  /**
   * Stores a line and adds it to the open message. If the process dies in between, the line joins a
   * message when it is brought again.
   */
  async function add(channelId: string, { key: named, ...line }: NewsLine & { key: string }) {
    const id = `${channelId} ${named}`;
    const stored = redis.multi().hsetnx(lineKey(id), "line", feedLineRecord.write(line));
    await stored.pexpire(lineKey(id), keptMs).exec();
    await feeds.join(id, { channelId });
  }

  return {
    /**
     * Stores these lines. A line whose key was brought to the channel before, by any process, is
     * left out.
     */
    async post(channelId: string, lines: readonly (NewsLine & { key: string })[]): Promise<void> {
      for (let from = 0; from < lines.length; from += linesAtOnce) {
        const some = lines.slice(from, from + linesAtOnce);
        await Promise.all(some.map((line) => add(channelId, line)));
      }
    },
    source: {
      outbox,
      owedSince: "at",
      prepareMessages: prepareFeed,
      at: async (point) => options.at?.(point, "feed"),
    } satisfies Source,
  };
}
