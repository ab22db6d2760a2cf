import { UserError } from "./errors.ts";

/** Where Redis is: one server, or the nodes of a Cluster to begin with. */
export interface RedisAddress {
  mode: "single" | "cluster";
  nodes: readonly { host: string; port: number }[];
  username?: string;
  password?: string;
  db: number;
  tls: boolean;
  /** For people and logs: no password. */
  shown: string;
}

const forms =
  "redis://host:6379, rediss://user:password@host:6379/0, or several with commas between them for a Cluster";

/**
 * Reads `REDIS_URL`: `redis://` or `rediss://` (TLS), one, or a comma-separated list that stands for a Cluster. The nodes
 * of a list share the user, password and TLS of the first one that has them. Throws a UserError that never repeats the value.
 */
export function parseRedisUrl(text: string): RedisAddress {
  const parts = text.split(",").map((part) => part.trim());
  const scheme = parts[0]?.startsWith("rediss://") ? "rediss" : "redis";
  const urls = parts.map((part, index) => readUrl(index === 0 ? part : withScheme(part, scheme)));
  const first = urls[0];
  if (first === undefined) throw refused();
  const cluster = urls.length > 1;
  const db = urls.map((url) => databaseOf(url)).find((number) => number !== 0) ?? 0;
  if (cluster && db !== 0)
    throw new UserError("a Cluster has only database 0", "leave the number at the end away");
  if (urls.some((url) => url.protocol !== first.protocol)) {
    throw new UserError("the nodes of a Cluster must all be redis:// or all be rediss://");
  }
  const nodes = urls.map((url) => ({
    host: url.hostname.replaceAll(/[[\]]/g, ""),
    port: Number(url.port || 6379),
  }));
  const named = urls.find((url) => url.password !== "" || url.username !== "");
  return {
    mode: cluster ? "cluster" : "single",
    nodes,
    ...(named && named.username !== "" && { username: decode(named.username) }),
    ...(named && named.password !== "" && { password: decode(named.password) }),
    db,
    tls: first.protocol === "rediss:",
    shown: nodes.map((node) => `${node.host}:${node.port}`).join(", "),
  };
}

/** In a list the nodes after the first may be written as host:port. */
function withScheme(part: string, scheme: string): string {
  return /^[\w.-]+:\d+$/.test(part) ? `${scheme}://${part}` : part;
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.hostname === "" || !/^rediss?:$/.test(url.protocol)) throw refused();
  if (url.search !== "" || url.hash !== "")
    throw new UserError("takes no ?options", `write ${forms}`);
  return url;
}

function refused(): UserError {
  return new UserError("isn't an address of Redis", `write ${forms}`);
}

function databaseOf(url: URL): number {
  const path = url.pathname.replace(/^\//, "");
  if (path === "") return 0;
  if (!/^\d{1,4}$/.test(path))
    throw new UserError("the database at the end must be a number", `write ${forms}`);
  return Number(path);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UserError(
      "the password holds a % that isn't followed by two hex digits",
      "write % as %25",
    );
  }
}
