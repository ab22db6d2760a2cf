/**
 * Removes secrets from what is about to be logged, at any depth. It finds them by shape (Slack
 * tokens, bearer headers, addresses with a query or a password, keys named like secrets) and by
 * value (`hideSecret`).
 *
 * Each pattern is anchored on a literal or always succeeds where it begins, so that one pass is
 * linear in the length of the text.
 */

const removed = "[removed]";
const longestText = 8_000;
const longestScanned = 20_000;
const deepest = 6;
const maxEntries = 100;
const maxValues = 2_000;

/**
 * Exact values to remove wherever they appear, because configuration says that they are secret. The
 * longest comes first.
 */
let hidden: readonly string[] = [];

/**
 * From now on, `value` and its URL-encoded form are removed from every log line. A value shorter
 * than 6 characters isn't treated as a secret.
 */
export function hideSecret(value: string): void {
  if (value.length < 6) return;
  hidden = [...new Set([...hidden, value, encodeURIComponent(value)])].toSorted(
    (a, b) => b.length - a.length,
  );
}

const secretName =
  /token|secret|passw|passphrase|authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|credential|signature|response_?url|upload_?url|console_?url|trigger_?id|webhook/i;

/**
 * Words that follow the name of a secret in sentences that contain no secret: "SLACK_BOT_TOKEN: is
 * not a Slack token: the bot token from …". No secret is one of these words; any other word may be
 * one.
 */
const sentenceWords: ReadonlySet<string> = new Set(
  "has is it looks the Slack must names begins contains isn can not no a an".split(" "),
);

const shapes: readonly [RegExp, string | ((match: string, ...groups: string[]) => string)][] = [
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}-----)?/g, removed],
  // Every address loses its password, query, and fragment, and also its path when the path itself
  // is the secret.
  [/:\/\/([^\s"'<>\\`|]*)/g, (_match, rest) => `://${address(rest)}`],
  [/hooks\.slack(?:-gov)?\.com\/[^\s"'<>\\`|]*/g, `hooks.slack.com/${removed}`],
  // Slack tokens: https://docs.slack.dev/authentication/tokens/
  [/(?<![A-Za-z0-9])(?:xox[a-z]|xapp|xwfp)[-.][A-Za-z0-9._~+/%=-]{2,}/gi, removed],
  [
    /(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|sk_live_|sk-)[A-Za-z0-9_-]{10,}/g,
    removed,
  ],
  // A JSON Web Token.
  [/(?<![\w-])eyJ[\w-]*(?:\.[\w-]*){0,4}/g, removed],
  [/(?<![A-Za-z0-9])v0=[0-9a-f]{16,}/gi, `v0=${removed}`],
  // "a bearer token" is a sentence about one.
  [
    /(?<![A-Za-z0-9])(bearer)(?:\s{1,4}|%20|\+)(?!(?:tokens?|auth|authentication)(?![A-Za-z0-9._~+/=-]))[A-Za-z0-9._~+/=-]{3,}/gi,
    `$1 ${removed}`,
  ],
  // "Basic Information" is excluded: it is the page where Slack shows an app's secrets.
  [
    /(?<![A-Za-z0-9])(basic)\s{1,4}(?!(?:Information|authentication)(?![A-Za-z0-9+/=]))[A-Za-z0-9+/]{8,}={0,2}/gi,
    `$1 ${removed}`,
  ],
  // Matches name=value, name: value, and "name": "value".
  [
    /(token|secret|password|passwd|passphrase|api[-_]?key|access[-_]?key|private[-_]?key|authorization|signature|credentials?|cookie)(\\?["']?\s{0,4}(?:=|:|%3D)\s{0,4})(\\?"[^"\\]*\\?"?|\\?'[^'\\]*\\?'?|[^\s"'&,;{}[\]()<>]+)/gi,
    (match, name = "", between = "", value = "") =>
      between === ": " && sentenceWords.has(value) ? match : name + between + removed,
  ],
];

/** `rest` is what follows `://`. */
function address(rest: string): string {
  const [, authority = "", path = "", query] = /^([^/?#]*)([^?#]*)(.*)$/.exec(rest) ?? [];
  const at = authority.lastIndexOf("@");
  const host = at < 0 ? authority : `${removed}@${authority.slice(at + 1)}`;
  const pathIsSecret = /^hooks\.slack|^files\.slack(?:-gov)?\.com$/i.test(host) && path.length > 1;
  return pathIsSecret ? `${host}/${removed}` : host + path + (query ? `?${removed}` : "");
}

/** Returns `text` without secrets, cut at 8,000 characters. */
export function scrubText(text: string): string {
  let left = text;
  for (const secret of hidden) left = left.replaceAll(secret, removed);
  left = left.slice(0, longestScanned);
  for (const [shape, replaced] of shapes)
    left =
      typeof replaced === "string" ? left.replace(shape, replaced) : left.replace(shape, replaced);
  return left.length > longestText ? `${left.slice(0, longestText)}…` : left;
}

/**
 * A copy of `value` that is safe to print as JSON: no secrets, no cycles, bounded depth and size.
 */
export function scrub(value: unknown, options: { stacks?: boolean } = {}): unknown {
  return clean(value, { stacks: options.stacks ?? false, left: maxValues, above: [] });
}

interface Walk {
  stacks: boolean;
  /** How many values may still be visited. */
  left: number;
  /** The objects that contain the current one. Meeting one of them again would be a cycle. */
  above: object[];
}

function clean(value: unknown, walk: Walk): unknown {
  if (typeof value === "string") return scrubText(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint" || typeof value === "symbol") return scrubText(String(value));
  if (typeof value === "function") return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    return `[${value.byteLength} bytes]`;
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (value instanceof URL || value instanceof RegExp) return scrubText(String(value));
  if (walk.above.includes(value)) return "[circular]";
  if (walk.above.length >= deepest) return "[deeper]";
  walk.above.push(value);
  const copy = cleanInside(value, walk);
  walk.above.pop();
  return copy;
}

function cleanInside(value: object, walk: Walk): unknown {
  if (value instanceof Error) return cleanError(value, walk);
  if (Array.isArray(value) || value instanceof Set)
    return few<unknown>(value, walk).map((inner) => clean(inner, walk));
  const entries: Iterable<[unknown, unknown]> =
    value instanceof Map ? value : Object.keys(value).map((key) => [key, readProperty(value, key)]);
  return Object.fromEntries(
    few(entries, walk).map(([key, inner]) => cleanEntry(textOf(key), inner, walk)),
  );
}

/** As many of the values as the bounds allow. */
function few<T>(values: Iterable<T>, walk: Walk): readonly T[] {
  const kept = Iterator.from(values).take(Math.min(maxEntries, walk.left)).toArray();
  walk.left -= kept.length;
  return kept;
}

function cleanEntry(key: string, value: unknown, walk: Walk): [string, unknown] {
  const nothing = value === undefined || value === null || typeof value === "boolean";
  return [scrubText(key), secretName.test(key) && !nothing ? removed : clean(value, walk)];
}

/**
 * The properties of an error that are known to be harmless. Clients attach whole requests, with
 * their headers, to their errors.
 */
const errorKeys = [
  "code",
  "kind",
  "status",
  "statusCode",
  "endpoint",
  "syscall",
  "hint",
  "retryAfterMs",
] as const;

function cleanError(error: Error, walk: Walk): unknown {
  const kept: [string, unknown][] = [
    ["name", scrubText(textOf(readProperty(error, "name")))],
    ["message", scrubText(textOf(readProperty(error, "message")))],
  ];
  for (const key of errorKeys) {
    const value = readProperty(error, key);
    if (typeof value === "string" || typeof value === "number")
      kept.push([key, clean(value, walk)]);
  }
  const stack = readProperty(error, "stack");
  if (walk.stacks && typeof stack === "string") kept.push(["stack", trimStack(stack)]);
  if (error instanceof AggregateError)
    kept.push(["errors", clean(readProperty(error, "errors"), walk)]);
  const cause = readProperty(error, "cause");
  if (cause !== undefined) kept.push(["cause", clean(cause, walk)]);
  return Object.fromEntries(kept);
}

/**
 * The stack frames without the message, which is logged already, and without frames of Node.js
 * itself.
 */
function trimStack(stack: string): string[] {
  const frames = stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !line.includes("node:internal"));
  return frames.slice(0, 8).map((frame) => scrubText(frame.trim()));
}

function readProperty(object: object, key: string): unknown {
  try {
    return Reflect.get(object, key);
  } catch {
    return "[unreadable]";
  }
}

/**
 * Turns anything into text. Keys of a Map and names of errors can be objects that have no text
 * form.
 */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? `${value}` : "[object]";
}
