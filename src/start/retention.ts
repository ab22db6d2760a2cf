import type { ClientCertificate } from "../config/compute-tls.ts";
import { type Keys, type RedisClient, withRedis } from "../redis/redis.ts";
import { runProgram, UsageError } from "../text/terminal.ts";

export const retentionUsage = `usage: node gatehouse.mjs retention
  lists what Gatehouse keeps in Redis: how many keys of each kind, how large (from a sample), and for how long; then what you
  can delete, and how. It only reads.
  ends with 0, or with 1 when Redis can't be read`;

type Kind = readonly [what: string, behindPrefix: RegExp, kept: string];

/** Everything that stands in Redis. The first that fits counts. */
const kinds: readonly Kind[] = [
  ["open requests, and lists", /^requests:(open|recent)$/, "while open; the list 90 days"],
  [
    "requests with their history",
    /^(request|requests:(person|target)):/,
    "90 days after their end",
  ],
  [
    "cards of several requests",
    /^(shared|sharing|shared-cards)(:|$)/,
    "7 days after their last change",
  ],
  ["same words again", /^(same|ask):/, "a day"],
  ["rollouts", /^rolls?:/, "90 days after their end"],
  [
    "messages to Slack",
    /^(outbox|notices?|feeds?|feed-(open|told)|pace|line|turns)(:|$)/,
    "until sent; notices and subscriptions 7 days",
  ],
  ["deliveries from Slack", /^(seen|interactions)(:|$)/, "11 minutes, or until handled"],
  ["audit trail", /^audit(:|$)/, "forever"],
  ["pins that people approved", /^pins$/, "until dropped"],
  ["policy versions", /^policy:/, "forever"],
  ["its stored format", /^format$/, "forever"],
  ["snapshots Gatehouse knows", /^snapshot(s|-owners)(:|$)/, "forever"],
  ["names of projects and VMs", /^inventory:/, "while they exist; read again and again"],
  ["evidence of VMs", /^evidence(:|$)/, "90 days"],
  [
    "digests and what they compare",
    /^(digest-|drift$|seen-statuses$|status-watch:)/,
    "schedules until off; slots 7 days; the rest as long as its VM",
  ],
  ["subscriptions of channels", /^subscriptions$/, "until unsubscribed"],
  ["outages and recaps", /^outages:/, "a day after their end"],
  [
    "alerts and proposals",
    /^(alerts?|alert-of|proposals?)(:|$)/,
    "7 days after their end; which message a group has, 30 days",
  ],
  ["when programs last called", /^door:last$/, "forever"],
  ["limits", /^(rate|used|throttled)(:|$)/, "an hour; drafts 30 days"],
  [
    "freeze, reviews, and locks",
    /^(freeze|reviews(-signed)?|lock:.*|fence|lates|sends:.*|watch:.*|polls)$/,
    "until ended by a person or the request",
  ],
  ["who is in which user group", /^user-groups(:|$)/, "a minute"],
  ["signs of life", /^(workers?|probe)(:|$)/, "seconds"],
  ["processes, and what became of their last calls", /^processes$/, "a day after the last sign"],
  ["the queues", /^(requests|messages|polls|schedules):/, "while a job waits or runs"],
];

/** Undefined: of no kind that is known. */
export function kindOf(key: string, { prefix }: Keys): Kind | undefined {
  const rest = key.slice(prefix.length + 1);
  return kinds.find(([, behindPrefix]) => behindPrefix.test(rest));
}

/** Of so many keys of a kind the size is measured. */
const sampled = 100;

/** `retention` in a terminal. */
export function runRetention(
  words: readonly string[],
  on: {
    redisUrl: () => string;
    /** What Redis is shown over TLS. */
    certificate?: (() => ClientCertificate | undefined) | undefined;
    namespace?: string;
    write: (text: string) => void;
  },
): Promise<number> {
  const program = { usage: retentionUsage, options: {}, failed: 1, write: on.write };
  return runProgram(words, program, async () => {
    if (words.length > 0) throw new UsageError();
    on.write(await withRedis(on.redisUrl(), on, report));
    return 0;
  });
}

async function report(redis: RedisClient, key: Keys): Promise<string> {
  const keys = await keysOf(redis, key);
  const rows = [["what", "keys", "size", "kept"]];
  for (const [kind, all] of Map.groupBy(keys, (one) => kindOf(one, key))) {
    const [what, , kept] = kind ?? ["of no known kind", "", ""];
    rows.push([what, all.length.toLocaleString("en"), await sizeOf(all, redis), kept]);
  }
  return `${table(rows)}

What you can delete:
  audit trail   nothing directly; \`audit export\`, then \`audit erase\` removes the contents of records
  snapshots     of VMs that are gone: ${key("snapshots", "<VM>")}. Without them Gatehouse accepts these snapshots only by
                a typed ID
  the rest      expires by itself. Never empty Redis, and never delete requests, locks, or policy versions:
                Gatehouse would forget what it sent, and changes would freeze
`;
}

async function keysOf(redis: RedisClient, { prefix }: Keys): Promise<readonly string[]> {
  const pattern = `${prefix.replaceAll(/[[\]*?\\]/g, "\\$&")}:*`;
  const found = new Set<string>();
  for await (const keys of redis.scanStream({ match: pattern, count: 1_000 }))
    for (const one of keys as string[]) found.add(one);
  return [...found];
}

async function sizeOf(keys: readonly string[], redis: RedisClient): Promise<string> {
  const sample = keys.slice(0, sampled);
  const sizes = await Promise.all(
    sample.map((one) => redis.memory("USAGE", one).catch(() => null)),
  );
  const known = sizes.filter((size) => size !== null);
  if (known.length === 0) return "?";
  const bytes = (known.reduce((sum, size) => sum + size, 0) / known.length) * keys.length;
  const size =
    bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return keys.length > sample.length ? `~${size}` : size;
}

function table(rows: readonly (readonly string[])[]): string {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const [first, second, third] = [widthOf(0), widthOf(1), widthOf(2)];
  const lines = rows.map(([what = "", keys = "", size = "", kept = ""]) =>
    [what.padEnd(first), keys.padStart(second), size.padStart(third), kept].join("  ").trimEnd(),
  );
  return lines.join("\n");
}
