import { messageOf, UserError } from "../errors.ts";
import { createInventoryStore } from "../inventory/store.ts";
import { silentLog } from "../log/log.ts";
import { connectRedis, createKeys, type Keys, type RedisClient } from "../redis/redis.ts";

export const retentionUsage = `usage: node gatehouse.mjs retention
  lists what Gatehouse keeps in Redis: how many keys of each kind, how large (from a sample), and for how long; then what may
  go, and how. It reads, and deletes nothing.
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
  { what: "limits", pattern: /^(rate|used|throttled)(:|$)/, kept: "an hour; drafts 30 days" },
  {
    what: "freeze, reviews, and locks",
    pattern: /^(freeze|reviews(-signed)?|lock:.*|fence|lates|sends:.*|watch:.*|polls|pollers)$/,
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

interface Tally {
  keys: number;
  /** Some of them, whose size is measured. */
  sample: string[];
}

const sampled = 100;

/** `retention` in a terminal. */
export async function runRetention(
  words: readonly string[],
  {
    redisUrl,
    namespace,
    write,
  }: { redisUrl: () => string; namespace?: string; write: (text: string) => void },
): Promise<0 | 1 | 64> {
  if (words.length > 0) {
    write(`${retentionUsage}\n`);
    return 64;
  }
  try {
    const key = createKeys(namespace);
    const redis = await connectRedis(redisUrl(), "waits", silentLog(), key);
    try {
      write(await report(redis, key));
      return 0;
    } finally {
      redis.disconnect();
    }
  } catch (error) {
    const hint = error instanceof UserError && error.hint ? `\n${error.hint}` : "";
    write(`${messageOf(error)}${hint}\n`);
    return 1;
  }
}

async function report(redis: RedisClient, key: Keys): Promise<string> {
  const tallies = new Map<string, Tally>();
  const withSnapshots: string[] = [];
  for await (const found of keysOf(redis, key)) {
    const what = kindOf(found, key)?.what ?? "of no known kind";
    const tally = tallies.get(what) ?? { keys: 0, sample: [] };
    tallies.set(what, tally);
    tally.keys += 1;
    if (tally.sample.length < sampled) tally.sample.push(found);
    const vm = found.startsWith(key("snapshots", ""))
      ? found.slice(key("snapshots", "").length)
      : "";
    if (vm !== "") withSnapshots.push(vm);
  }
  const rows = [["what", "keys", "size", "kept"]];
  for (const [what, tally] of tallies) {
    const kept = kinds.find((kind) => kind.what === what)?.kept ?? "";
    rows.push([what, tally.keys.toLocaleString("en"), await sizeOf(tally, redis), kept]);
  }
  const vms = await knownVms(redis, key);
  const gone = vms.size === 0 ? [] : withSnapshots.filter((vm) => !vms.has(vm));
  return `${table(rows)}

What may go:
  audit trail   nothing by itself; \`audit export\`, then \`audit erase\` takes the contents of records
  snapshots     of ${gone.length} VMs that are gone${gone.length === 0 ? "" : `: ${gone.slice(0, 5).join(", ")}${gone.length > 5 ? ", …" : ""}`}. Their keys are ${key("snapshots", "<VM>")};
                without them Gatehouse takes their IDs only typed
  the rest      goes when its time has come. Never empty Redis, and delete no requests, locks, or policy versions:
                what was sent would be forgotten, and changes freeze
`;
}

/** The IDs of all VMs that stood in the last list. */
async function knownVms(redis: RedisClient, key: Keys): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (const contents of await createInventoryStore(redis, key).readAll())
    for (const { id } of contents?.vms ?? []) ids.add(id);
  return ids;
}

async function* keysOf(redis: RedisClient, { prefix }: Keys): AsyncGenerator<string> {
  const pattern = `${prefix.replaceAll(/[[\]*?\\]/g, "\\$&")}:*`;
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", pattern, "COUNT", 1_000);
    yield* keys;
    cursor = next;
  } while (cursor !== "0");
}

async function sizeOf({ keys, sample }: Tally, redis: RedisClient): Promise<string> {
  const pipeline = redis.pipeline();
  for (const one of sample) pipeline.memory("USAGE", one);
  const sizes = ((await pipeline.exec()) ?? []).map(([, size]) => size);
  const known = sizes.filter((size) => typeof size === "number");
  if (known.length === 0) return "?";
  const bytes = (known.reduce((sum, size) => sum + size, 0) / known.length) * keys;
  const about = keys > sample.length ? "~" : "";
  return bytes < 2 ** 20
    ? `${about}${Math.ceil(bytes / 1024)} KiB`
    : `${about}${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = [0, 1, 2].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map(([what = "", keys = "", size = "", kept = ""]) =>
      `${what.padEnd(widths[0] ?? 0)}  ${keys.padStart(widths[1] ?? 0)}  ${size.padStart(widths[2] ?? 0)}  ${kept}`.trimEnd(),
    )
    .join("\n");
}
