import { UserError } from "../errors.ts";

/**
 * One server, the first nodes of a Cluster, or the sentinels that know the primary called `name`.
 */
export interface RedisAddress {
  mode: "single" | "cluster" | "sentinel";
  nodes: readonly { host: string; port: number }[];
  name?: string;
  login: { username?: string; password?: string };
  db: number;
  tls: boolean;
  /** The address for people and logs, without a password. */
  shown: string;
}

const forms =
  "redis://host:6379, rediss://<user>:<password>@host:6379/0, several with commas between them for a Cluster, or redis-sentinel://host:26379,host:26379/name";

/**
 * Parses `REDIS_URL`: `redis://` or `rediss://` (TLS); a comma-separated list for a Cluster, whose
 * nodes share the first user and password given; or `redis-sentinel://` or `rediss-sentinel://`
 * with the primary's name and database after the sentinels. Throws a UserError that never repeats
 * the value.
 */
export function parseRedisUrl(text: string): RedisAddress {
  const sentinel = /^(rediss?)-sentinel:\/\/([^/]*)\/?(.*)$/.exec(text.trim());
  if (sentinel === null) return parseNodes(text, 6379);
  const [, scheme = "", hosts = "", path = ""] = sentinel;
  const [name = "", db = "", ...rest] = path.split("/");
  if (!/^[\w.-]+$/.test(name) || rest.length > 0)
    throw new UserError("the name of the primary must follow the sentinels", `write ${forms}`);
  const { shown, ...sentinels } = parseNodes(`${scheme}://${hosts}`, 26_379);
  return {
    ...sentinels,
    mode: "sentinel",
    name,
    db: readDatabase(db),
    shown: `${name} of ${shown}`,
  };
}

function parseNodes(text: string, defaultPort: number): RedisAddress {
  const parts = text.split(",").map((part) => part.trim());
  const scheme = parts[0]?.startsWith("rediss://") ? "rediss" : "redis";
  // In a list, nodes after the first can be host:port.
  const urls = parts.map((part, index) =>
    readUrl(index > 0 && bareNode.test(part) ? `${scheme}://${part}` : part),
  );
  const cluster = urls.length > 1;
  const db = urls.map(({ pathname }) => readDatabase(pathname.slice(1))).find((n) => n !== 0) ?? 0;
  if (cluster && db !== 0)
    throw new UserError("a Cluster has only database 0", "omit the number at the end");
  const tls = urls[0]?.protocol === "rediss:";
  if (urls.some(({ protocol }) => (protocol === "rediss:") !== tls))
    throw new UserError("the nodes of a Cluster must all be redis:// or all be rediss://");
  const nodes = urls.map((url) => ({
    host: url.hostname.replaceAll(/[[\]]/g, ""),
    port: Number(url.port || defaultPort),
  }));
  const named = urls.find((url) => url.password !== "" || url.username !== "");
  const { username = "", password = "" } = named ?? {};
  return {
    mode: cluster ? "cluster" : "single",
    nodes,
    login: {
      ...(username !== "" && { username: decode(username) }),
      ...(password !== "" && { password: decode(password) }),
    },
    db,
    tls,
    shown: nodes.map((node) => `${node.host}:${node.port}`).join(", "),
  };
}

const bareNode = /^([\w.-]+|\[[\d:a-f]+\])(:\d+)?$/i;

function readUrl(text: string): URL {
  const [, secret = ""] = /^rediss?:\/\/([^@]*)@/.exec(text) ?? [];
  const [wrong] = /[#?/]/.exec(secret) ?? [];
  if (wrong !== undefined)
    throw new UserError(
      `the user or password contains a ${wrong}, which ends it in an address`,
      `write ${wrong} as ${encodeURIComponent(wrong)}`,
    );
  const url = URL.parse(text);
  if (url === null || url.hostname === "" || !/^rediss?:$/.test(url.protocol))
    throw new UserError("isn't an address of Redis", `write ${forms}`);
  if (url.search !== "" || url.hash !== "")
    throw new UserError("takes no ?options", `write ${forms}`);
  return url;
}

function readDatabase(text: string): number {
  if (text === "") return 0;
  if (!/^\d{1,4}$/.test(text))
    throw new UserError("the database at the end must be a number", `write ${forms}`);
  return Number(text);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UserError(
      "the password contains a % without two hex digits after it",
      "write % as %25",
    );
  }
}
