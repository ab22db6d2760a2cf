import { openPlace } from "../../core/deliver/open-place.ts";
import type { Announce, OwedNotices } from "../../core/deliver/notices.ts";
import type { ApiProblem } from "../../api/server.ts";
import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Log } from "../../log/log.ts";
import { type Finding, ill, well } from "../../messages/finding.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { counted, firstFew, md, name } from "../../messages/markdown.ts";
import { type Fields, type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import { type AlertSource, sourcesSection } from "./sources.ts";
import { messageOf } from "../../errors.ts";

/** How long the sender of a repeated delivery has until people are told that it was refused (ms). */
const repeatedWithinMs = 60_000;
const hourMs = 3_600_000;

/** Why a delivery of a proven source was refused. It never contains what the delivery says. */
interface Refusal {
  status: number;
  /** The reason, as a sentence. */
  why: string;
  /** True if its sender repeats it, so that it may still be taken. */
  isRepeated: boolean;
}

export type Refusals = ReturnType<typeof createRefusals>;

/**
 * Tells people that deliveries of a proven source are refused, because nothing else shows what they
 * would have said: once for each reason in the source's channel, and in `/gatehouse status` until
 * one is taken again. While Redis is away, this process keeps what it has to tell.
 */
export function createRefusals(on: {
  redis: RedisClient;
  key: Keys;
  config: { readonly policy: Policy };
  announce: Announce;
  owed: Pick<OwedNotices, "withdraw">;
  log: Log;
}) {
  const { redis, key, config, announce, owed, log } = on;
  /** What Redis doesn't know yet, by source. */
  const unstored = new Map<string, Refusal>();
  const hashOf = (source: string) => key("alerts", "refused", source);
  const sourcesNow = () => sectionOf(config.policy, sourcesSection);

  async function store(source: string, { status, why, isRepeated }: Refusal): Promise<void> {
    const now = await redisNow(redis);
    const hash = hashOf(source);
    await redis
      .multi()
      .hsetnx(hash, "since", now)
      .hincrby(hash, "count", 1)
      .hset(hash, { status, why })
      .exec();
    const kind = `${isRepeated ? "later" : "now"}:${status}`;
    const fields = await redis.hgetall(hash);
    if (fields[kind] !== undefined) return;
    const rule = sourcesNow()[source];
    const channelId = rule && openPlace(rule.channel, config.policy, {}, now);
    if (!channelId) return;
    // A source of which one delivery is taken and the next one refused is told of once an hour.
    const id = isRepeated
      ? laterId(source, fields, status)
      : `alerts-refused-${source}-${status}-${Math.floor(now / hourMs)}`;
    const message = renderRefusal(source, rule, { status, why });
    await announce({ id, channelId, message }, isRepeated ? { inMs: repeatedWithinMs } : {});
    await redis.hset(hash, kind, id);
  }

  /** Stores what this process saw. It stays in memory until Redis has it. */
  async function report(): Promise<void> {
    const all = [...unstored];
    unstored.clear();
    for (const [source, refusal] of all) {
      try {
        await store(source, refusal);
      } catch (error) {
        if (!unstored.has(source)) unstored.set(source, refusal);
        log.debug("alert.refusal-kept", { source, why: messageOf(error) });
      }
    }
  }

  return {
    report,

    /** Notes that a delivery was refused, and tells people. Never rejects. */
    async note(source: string, problem: ApiProblem, { isRepeated = false } = {}): Promise<void> {
      const why = [problem.message, problem.detail].filter(Boolean).join(" ");
      unstored.set(source, { status: problem.status, why, isRepeated });
      await report();
    },

    /** Notes that a delivery was taken. Never rejects. */
    async forget(source: string): Promise<void> {
      unstored.delete(source);
      try {
        const fields = await redis.hgetall(hashOf(source));
        if (fields["since"] === undefined) return;
        for (const [field, id] of Object.entries(fields))
          if (field.startsWith("later:")) await owed.withdraw(id);
        await redis.del(hashOf(source));
      } catch (error) {
        log.debug("alert.refusal-kept", { source, why: messageOf(error) });
      }
    },

    /** The line of `/gatehouse status`. */
    async find(): Promise<Finding> {
      const sources = sourcesNow();
      const all = await Promise.all(
        Object.keys(sources).map(async (source) => ({
          source,
          fields: await redis.hgetall(hashOf(source)),
        })),
      );
      const refused = all.filter(({ fields }) => fields["since"] !== undefined);
      const [first] = refused;
      const rule = first && sources[first.source];
      if (!first || !rule) return well("no delivery was refused since the last one was taken");
      const { status = "", why = "", count = "" } = first.fields;
      const problem = `${counted(Number(count), "delivery", "deliveries")} of ${first.source} refused, the last one with ${status}: ${why}`;
      const others = firstFew(
        refused.slice(1).map(({ source }) => source),
        3,
      );
      const also = others === "" ? "" : ` Refused, too: ${others}.`;
      const mend = `${wayOut(rule, Number(status))}${also}`;
      const since = Math.min(...refused.map(({ fields }) => Number(fields["since"])));
      return { ...ill(problem.replace(/\.$/, ""), mend), since };
    },
  };
}

/** A streak of refusals that may end by itself has a notice of its own, which can be withdrawn. */
const laterId = (source: string, { since = "" }: Fields, status: number) =>
  `alerts-refused-${source}-${status}-since-${since}`;

export const renderRefusal = (
  source: string,
  rule: AlertSource,
  { status, why }: Pick<Refusal, "status" | "why">,
): Message =>
  sentence(
    md`⚠️ Gatehouse refuses what ${name(source)} sends, so alerts may be missing here. ${why} ${wayOut(rule, status)} \`/gatehouse status\` shows it until a delivery is taken again.`,
  );

/** What to do about a refused delivery. */
function wayOut({ format }: AlertSource, status: number): string {
  if (status === 413)
    return "Let its groups be smaller: name more labels in its `group_by`, so that each message has fewer alerts.";
  if (status === 422)
    return `Check that it sends the format that gatehouse.yml names: \`${format}\`.`;
  if (status >= 500) return "Let its sender repeat them; `api.refused` in the log says more.";
  return "Check the sender and each proxy on the way: the body didn't arrive as it was sent.";
}
