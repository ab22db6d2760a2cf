import { readAllProjects } from "../inventory/replica.ts";
import { silentLog } from "../log/log.ts";
import { firstFew } from "../messages/message.ts";
import { connectRedis, createKeys, type Keys, type RedisClient } from "../redis/redis.ts";
import { runProgram, UsageError } from "../text/terminal.ts";

export const retentionUsage = `usage: node gatehouse.mjs retention
  lists what Gatehouse keeps in Redis: how many keys of each kind, how large (from a sample), and for how long; then what you
  can delete, and how. It only reads.
  ends with 0, or with 1 when Redis can't be read`;

interface Kind {
  what: string;
  /** Of the key behind its prefix. */
  pattern: RegExp;
  kept: string;
}

/** Everything that stands in Redis. The first that fits counts. */
export const kinds: readonly Kind[] = [
  {
    what: "open requests, and lists",
    pattern: /^requests:(open|recent)$/,
    kept: "while open; the list 90 days",
  },
  {
    what: "requests with their history",
    pattern: /^(request|requests:(person|target)):/,
    kept: "90 days after their end",
  },
  {
    what: "cards of several requests",
    pattern: /^(shared|sharing|shared-cards)(:|$)/,
    kept: "7 days after their last change",
  },
  { what: "same words again", pattern: /^(same|ask):/, kept: "a day" },
  { what: "rollouts", pattern: /^rolls?:/, kept: "90 days after their end" },
  {
    what: "messages to Slack",
    pattern: /^(outbox|notices?|feeds?|feed-(open|told)|pace|line|turns)(:|$)/,
    kept: "until sent; notices and subscriptions 7 days",
  },
  { what: "deliveries from Slack", pattern: /^intake:/, kept: "11 minutes, or until handled" },
  { what: "audit trail", pattern: /^audit(:|$)/, kept: "forever" },
  { what: "pins that people approved", pattern: /^pins$/, kept: "until dropped" },
  { what: "policy versions", pattern: /^policy:/, kept: "forever" },
  { what: "its stored format", pattern: /^format$/, kept: "forever" },
  { what: "snapshots Gatehouse knows", pattern: /^snapshot(s|-owners)(:|$)/, kept: "forever" },
  {
    what: "names of projects and VMs",
    pattern: /^inventory:/,
    kept: "while they exist; read again and again",
  },
  { what: "evidence of VMs", pattern: /^evidence(:|$)/, kept: "90 days" },
  {
    what: "digests and what they compare",
    pattern: /^(digest-|drift$|seen-statuses$|status-watch:)/,
    kept: "schedules until off; slots 7 days; the rest as long as its VM",
  },
  { what: "subscriptions of channels", pattern: /^subscriptions$/, kept: "until unsubscribed" },
  { what: "outages and recaps", pattern: /^outages:/, kept: "a day after their end" },
  {
    what: "alerts and proposals",
    pattern: /^(alerts?|alert-of|proposals?)(:|$)/,
    kept: "7 days after their end; which message a group has, 30 days",
  },
  { what: "when programs last called", pattern: /^door:last$/, kept: "forever" },
  { what: "limits", pattern: /^(rate|used|throttled)(:|$)/, kept: "an hour; drafts 30 days" },
  {
    what: "freeze, reviews, and locks",
    pattern: /^(freeze|reviews(-signed)?|lock:.*|fence|lates|sends:.*|watch:.*|polls)$/,
    kept: "until ended by a person or the request",
  },
  { what: "signs of life", pattern: /^(workers?|turn|probe)(:|$)/, kept: "seconds" },
  { what: "the queues", pattern: /^(requests|watches):/, kept: "while a job waits or runs" },
];

/** Undefined: of no kind that is known. */
export function kindOf(key: string, { prefix }: Keys): Kind | undefined {
  const rest = key.slice(prefix.length + 1);
  return kinds.find(({ pattern }) => pattern.test(rest));
}

/** Of so many keys of a kind the size is measured. */
const sampled = 100;

/** `retention` in a terminal. */
export function runRetention(
  words: readonly string[],
  on: { redisUrl: () => string; namespace?: string; write: (text: string) => void },
): Promise<number> {
  const { redisUrl, namespace, write } = on;
  const program = { usage: retentionUsage, options: {}, failed: 1, write };
  return runProgram(words, program, async () => {
    if (words.length > 0) throw new UsageError();
    const key = createKeys(namespace);
    const redis = await connectRedis(redisUrl(), "waits", silentLog(), key);
    try {
      write(await report(redis, key));
      return 0;
    } finally {
      redis.disconnect();
    }
  });
}

async function report(redis: RedisClient, key: Keys): Promise<string> {
  const keys = await keysOf(redis, key);
  const rows = [["what", "keys", "size", "kept"]];
  for (const [kind, all] of Map.groupBy(keys, (one) => kindOf(one, key))) {
    const { what, kept } = kind ?? { what: "of no known kind", kept: "" };
    rows.push([what, all.length.toLocaleString("en"), await sizeOf(all, redis), kept]);
  }
  const prefix = key("snapshots", "");
  const withSnapshots = keys.flatMap((one) =>
    one.startsWith(prefix) && one !== prefix ? one.slice(prefix.length) : [],
  );
  const lists = await readAllProjects({ redis, key });
  const vms = new Set(lists.flatMap((list) => list?.vms.map(({ id }) => id) ?? []));
  const gone = vms.size === 0 ? [] : withSnapshots.filter((vm) => !vms.has(vm));
  const named = gone.length === 0 ? "" : `: ${firstFew(gone, 5)}`;
  return `${table(rows)}

What you can delete:
  audit trail   nothing directly; \`audit export\`, then \`audit erase\` removes the contents of records
  snapshots     of ${gone.length} VMs that are gone${named}. Their keys are ${key("snapshots", "<VM>")};
                without them Gatehouse accepts these snapshots only by a typed ID
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
