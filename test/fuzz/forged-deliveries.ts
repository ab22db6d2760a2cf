import { createHmac } from "node:crypto";
import { createRandom } from "../../sandbox/random.ts";

/** What somebody posts to the address that Slack uses. */
export interface Delivery {
  kind: string;
  body: Buffer;
  /** Twice the same name where there are two of them. */
  headers: Record<string, string | string[]>;
  /** What it must be answered with. */
  status: number;
  /** Under which reason /metrics counts it. */
  reason: string;
}

/** A delivery that was genuine, and the secret with which a few of the forged ones are signed all the same. */
export interface Genuine {
  body: string;
  seconds: number;
  signature: string;
  secret: string;
}

const form = { "content-type": "application/x-www-form-urlencoded" };

const sign = (secret: string, seconds: number | string, body: Buffer | string) =>
  `v0=${createHmac("sha256", secret).update(`v0:${seconds}:`).update(body).digest("hex")}`;

/** So many of them, of every kind in turn; none may be let in. The replays are byte for byte the genuine one. */
export function* forgedDeliveries(
  count: number,
  seed: number,
  genuine: Genuine,
): Generator<Delivery> {
  const random = createRandom(seed);
  const pick = (below: number) => Math.floor(random() * below);
  for (let n = 0; n < count; n += 1) {
    const make = kinds[n % kinds.length];
    if (make) yield make({ n: Math.floor(n / kinds.length), pick, genuine });
  }
}

interface From {
  n: number;
  pick: (below: number) => number;
  genuine: Genuine;
}

function flipped(text: Buffer, at: number, bit: number): Buffer {
  const bytes = Buffer.from(text);
  bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ (1 << bit);
  return bytes;
}

/** Signed right and of just now. */
function signed(
  kind: string,
  body: string,
  secret: string,
  status: number,
  reason: string,
  at = 0,
): Delivery {
  const seconds = Math.floor(Date.now() / 1000) + at;
  return {
    kind,
    body: Buffer.from(body),
    headers: {
      ...form,
      "x-slack-request-timestamp": String(seconds),
      "x-slack-signature": sign(secret, seconds, body),
    },
    status,
    reason,
  };
}

/** The words of the genuine one, as if asked anew: under another trigger. */
const anew = (
  { genuine, n }: From,
  change: (params: URLSearchParams) => void = () => undefined,
): string => {
  const params = new URLSearchParams(genuine.body);
  params.set("trigger_id", `9.${n}.forged`);
  change(params);
  return params.toString();
};

const kinds: ((from: From) => Delivery)[] = [
  ({ genuine: { body, seconds, signature } }) => ({
    kind: "replayed",
    body: Buffer.from(body),
    headers: {
      ...form,
      "x-slack-request-timestamp": String(seconds),
      "x-slack-signature": signature,
    },
    status: 200,
    reason: "replay",
  }),
  // Every byte of it in turn, each with one of its bits turned over
  ({ genuine: { body, seconds, signature }, n, pick }) => ({
    kind: "one bit of the body",
    body: flipped(Buffer.from(body), n, pick(8)),
    headers: {
      ...form,
      "x-slack-request-timestamp": String(seconds),
      "x-slack-signature": signature,
    },
    status: 401,
    reason: "signature",
  }),
  ({ genuine: { body, seconds, signature }, n }) => {
    const at = 3 + (n % 64);
    const other = signature[at] === "0" ? "1" : "0";
    return {
      kind: "one digit of the signature",
      body: Buffer.from(body),
      headers: {
        ...form,
        "x-slack-request-timestamp": String(seconds),
        "x-slack-signature": signature.slice(0, at) + other + signature.slice(at + 1),
      },
      status: 401,
      reason: "signature",
    };
  },
  // Still within the five minutes, so that only the signature is wrong
  ({ genuine: { body, seconds, signature }, pick }) => ({
    kind: "another second",
    body: Buffer.from(body),
    headers: {
      ...form,
      "x-slack-request-timestamp": String(seconds + 1 + pick(100)),
      "x-slack-signature": signature,
    },
    status: 401,
    reason: "signature",
  }),
  (from) => signed("another secret", anew(from), `not-${from.genuine.secret}`, 401, "signature"),
  (from) =>
    signed("too old", anew(from), from.genuine.secret, 401, "timestamp", -302 - from.pick(100_000)),
  (from) =>
    signed(
      "of the future",
      anew(from),
      from.genuine.secret,
      401,
      "timestamp",
      302 + from.pick(100_000),
    ),
  (from) => {
    const one = signed(
      "a header missing, doubled or odd",
      anew(from),
      from.genuine.secret,
      401,
      "header",
    );
    const [time, signature] = [
      String(one.headers["x-slack-request-timestamp"]),
      String(one.headers["x-slack-signature"]),
    ];
    const { "x-slack-request-timestamp": _t, ...noTime } = one.headers;
    const { "x-slack-signature": _s, ...noSignature } = one.headers;
    const odd: Delivery["headers"][] = [
      noTime,
      noSignature,
      form,
      { ...one.headers, "x-slack-signature": [signature, signature] },
      { ...one.headers, "x-slack-signature": [`v0=${"0".repeat(64)}`, signature] },
      { ...one.headers, "x-slack-request-timestamp": [time, time] },
      { ...one.headers, "x-slack-signature": `${signature}, ${signature}` },
      { ...one.headers, "x-slack-signature": signature.toUpperCase() },
      { ...one.headers, "x-slack-signature": signature.replace("v0=", "v1=") },
      { ...one.headers, "x-slack-request-timestamp": "NaN" },
      { ...one.headers, "x-slack-request-timestamp": `-${time}` },
    ];
    return { ...one, headers: odd[from.pick(odd.length)] ?? {} };
  },
  (from) =>
    signed(
      "of another team",
      anew(from, (params) => params.set("team_id", `T0EVIL${from.pick(9)}`)),
      from.genuine.secret,
      403,
      "team",
    ),
  (from) =>
    signed(
      "of another app",
      anew(from, (params) => params.set("api_app_id", `A0EVIL${from.pick(9)}`)),
      from.genuine.secret,
      403,
      "app",
    ),
  (from) => {
    const body = `payload=${encodeURIComponent(deep(1000 + from.pick(20_000)))}`;
    return signed("deep, and of no kind", body, from.genuine.secret, 200, "unhandled");
  },
  // Large bodies are dear, so only a few of these are
  (from) => {
    if (from.n % 20 === 0) {
      const body = `${anew(from)}&text=${"x".repeat(1024 * 1024)}`;
      return signed("too large", body, from.genuine.secret, 413, "too-large");
    }
    const one = signed(
      "of a type Slack never sends",
      anew(from),
      from.genuine.secret,
      400,
      "content-type",
    );
    return { ...one, headers: { ...one.headers, "content-type": "text/plain" } };
  },
];

const deep = (depth: number) =>
  `{"type":"block_actions","actions":${"[".repeat(depth)}${"]".repeat(depth)}}`;
