import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import ipaddr from "ipaddr.js";
import { buildConnector } from "undici";
import { addedAuthorities } from "../../config/authorities.ts";
import type { ComputeTls } from "../../config/compute-tls.ts";
import { UserError } from "../../errors.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [net: Address, bits: number];

/**
 * Addresses that are never allowed: link-local ones (the clouds' metadata services), and those that
 * are no destination. Teredo and a network's own NAT64 prefix (RFC 8215) are among them, because
 * they hide an IPv4 address in a way that can't be decoded here.
 */
const never = parseRanges(
  ["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  ["::/128", "fe80::/10", "ff00::/8", "2001::/32", "64:ff9b:1::/48"],
);
const loopback = parseRanges(["127.0.0.0/8"], ["::1/128"]);
const inner = parseRanges(
  ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
  ["100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15"],
  ["fc00::/7", "fec0::/10"],
);
/**
 * IPv6 ranges that lead to the IPv4 address in their last four bytes: compatible, mapped,
 * translated, NAT64.
 */
const around4 = parseRanges(["::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"]);
/** 6to4: the IPv4 address follows the prefix. */
const sixToFour = parseRanges(["2002::/16"]);

function parseRanges(...texts: readonly (readonly string[])[]): readonly Range[] {
  return texts.flat().map((text) => ipaddr.parseCIDR(text.replace(/%[^/]*/, "")));
}

/**
 * The address, and the IPv4 address that it leads to, if any. Empty for a text that isn't an
 * address.
 */
function addressesIn(text: string): readonly Address[] {
  // The library alone would also accept forms that no resolver returns: 0x7f.1, 2130706433.
  if (isIP(text) === 0) return [];
  const address = ipaddr.parse(text.replace(/%.*/, ""));
  const held = heldBy(address);
  return held ? [address, held] : [address];
}

function heldBy(address: Address): Address | undefined {
  // ::1 and :: are in ::/96, but lead to no IPv4 address.
  if (isAmong([address], [...loopback, ...never])) return undefined;
  const bytes = address.toByteArray();
  if (isAmong([address], around4)) return ipaddr.fromByteArray(bytes.slice(12));
  if (isAmong([address], sixToFour)) return ipaddr.fromByteArray(bytes.slice(2, 6));
  return undefined;
}

function isAmong(addresses: readonly Address[], ranges: readonly Range[]): boolean {
  const list = { among: [...ranges] };
  return addresses.some((address) => ipaddr.subnetMatch(address, list, "not") === "among");
}

/** Whether the address, or the IPv4 address that it leads to, is in one of the ranges. */
function isIn(ranges: readonly Range[], address: string): boolean {
  return isAmong(addressesIn(address), ranges);
}

function isLoopbackHost(host: string): boolean {
  return isIn(loopback, host) || host === "localhost" || host.endsWith(".localhost");
}

/**
 * A private address, a name without a dot (a container or a neighboring host), or a name in a zone
 * that is never public.
 */
function isPrivateHost(host: string): boolean {
  if (isIP(host) !== 0) return isIn(inner, host);
  return (
    !host.includes(".") || /\.(internal|local|lan|intranet|private|home\.arpa|svc)\.?$/.test(host)
  );
}

export interface BaseAddress {
  origin: string;
  /** The path of the base URL without a trailing slash. `/v1/…` is appended to it. */
  prefix: string;
  /**
   * Derived from the host name alone. A public name that resolves into the internal network would
   * be SSRF, so its addresses are checked before connecting.
   */
  reach: "public" | "private" | "loopback";
  /** Private addresses that a public name may resolve to nevertheless. */
  allowed: readonly Range[];
}

/**
 * Parses an address that `COMPUTE_API_URL` allows. Throws UserError for one to which no connection
 * is allowed.
 */
export function parseBaseUrl(
  baseUrl: string,
  allowPrivate: boolean | readonly string[],
): BaseAddress {
  const url = new URL(baseUrl);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIn(never, host))
    throw new UserError("The compute service's base URL names a link-local or unusable address");
  const isPrivate = allowPrivate === true || isPrivateHost(host);
  const reach = isLoopbackHost(host) ? "loopback" : isPrivate ? "private" : "public";
  const ranges = typeof allowPrivate === "boolean" ? [] : allowPrivate;
  const prefix = url.pathname.replace(/\/+$/, "");
  return { origin: url.origin, prefix, reach, allowed: parseRanges(ranges) };
}

/** Whether a host of this reach may resolve to this address. */
export function mayReach(
  address: string,
  { reach, allowed }: Pick<BaseAddress, "reach" | "allowed">,
): boolean {
  if (isIP(address) === 0 || isIn(never, address)) return false;
  if (isIn(loopback, address)) return reach === "loopback";
  return reach !== "public" || !isIn(inner, address) || isIn(allowed, address);
}

/** The error for a connection that wasn't opened, so that nothing was sent. */
function unsent(
  code: "FORBIDDEN_ADDRESS" | "PROXY_REFUSED" | "PROXY_LOGIN_REFUSED",
  message: string,
): Error {
  return Object.assign(new Error(message), { code });
}

/** A DNS lookup that fails when any address of the name isn't allowed. */
function createGuardedLookup(
  base: BaseAddress,
  lookup: LookupFunction = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, answer) => {
      if (error) return callback(error, "");
      const addresses: LookupAddress[] = Array.isArray(answer)
        ? answer
        : [{ address: answer, family: isIP(answer) }];
      const first = addresses[0];
      if (!first || addresses.some((each) => !mayReach(each.address, base))) {
        const why = "the name leads to an address that is not allowed";
        return callback(unsent("FORBIDDEN_ADDRESS", why), "");
      }
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/**
 * A connector that checks addresses, always verifies certificates, and requires TLS 1.2. `tls` is
 * read for each connection, because a certificate may be replaced while the process runs; texts
 * that don't fit together are ignored and the former ones kept. Through a proxy, the proxy resolves
 * names.
 */
export function createConnector(options: {
  base: BaseAddress;
  timeoutMs: number;
  tls?: (() => ComputeTls) | undefined;
  /** The proxy's address. */
  proxy?: string | undefined;
  lookup?: LookupFunction | undefined;
}): buildConnector.connector {
  const { base, timeoutMs, tls, proxy } = options;
  const lookup = createGuardedLookup(base, options.lookup);
  const build = (secureContext: SecureContext) => {
    const connect = buildConnector({
      allowH2: false,
      timeout: timeoutMs,
      rejectUnauthorized: true,
      minVersion: "TLSv1.2",
      lookup,
      secureContext,
    });
    return proxy === undefined ? connect : throughProxy(new URL(proxy), timeoutMs, connect);
  };
  let read = "";
  let connect: buildConnector.connector | undefined;
  return (to, callback) => {
    const texts = tls?.();
    const now = JSON.stringify({ ...texts, added: addedAuthorities() });
    try {
      if (now !== read) connect = build(createSecureContext({ ...texts, minVersion: "TLSv1.2" }));
      read = now;
    } catch (error) {
      if (connect === undefined) throw error;
    }
    connect?.(to, callback);
  };
}

/**
 * Opens a tunnel (CONNECT) for each connection, and inside it the same TLS as without a proxy. The
 * proxy learns the host and port, and nothing else.
 */
function throughProxy(
  proxy: URL,
  timeoutMs: number,
  connect: buildConnector.connector,
): buildConnector.connector {
  const login = [proxy.username, proxy.password].map((part) => decodeURIComponent(part)).join(":");
  const authorization = { "proxy-authorization": `Basic ${Buffer.from(login).toString("base64")}` };
  const send = proxy.protocol === "https:" ? tlsRequest : plainRequest;
  return (options, callback) => {
    const port = options.port === "" ? "443" : options.port;
    const target = `${options.hostname}:${port}`;
    const asked = send(new URL(proxy.origin), {
      method: "CONNECT",
      path: target,
      headers: { host: target, ...(proxy.username === "" ? {} : authorization) },
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const fail = (error: Error) => callback(error, null);
    asked.once("error", fail);
    asked.once("connect", (answer, socket) => {
      asked.off("error", fail);
      if (answer.statusCode !== 200) {
        socket.destroy();
        const code = answer.statusCode === 407 ? "PROXY_LOGIN_REFUSED" : "PROXY_REFUSED";
        return fail(unsent(code, `the proxy answered ${answer.statusCode}`));
      }
      connect({ ...options, httpSocket: socket as Socket }, callback);
    });
    asked.end();
  };
}

/**
 * A connector for a change. It allows a single connection, so that the request can't be written
 * twice, whatever the client library does when a connection breaks. From `wire.connected` on, bytes
 * may have been sent. Before that, `mayGoOn` is asked; unless it resolves to true, nothing is sent.
 */
export function connectOnce(
  connect: buildConnector.connector,
  wire: { connected: boolean },
  mayGoOn: () => Promise<boolean> = async () => true,
): buildConnector.connector {
  let used = false;
  async function askFirst(socket: Socket, callback: buildConnector.Callback): Promise<void> {
    const may = await mayGoOn().catch(() => false);
    // The connection may have broken meanwhile.
    wire.connected = may && !socket.destroyed;
    if (wire.connected) return callback(null, socket);
    socket.destroy();
    callback(new Error("nothing was sent"), null);
  }
  return (options, callback) => {
    if (used) return callback(new Error("a second connection is not allowed"), null);
    used = true;
    connect(options, (...result) => {
      const [failed, socket] = result;
      if (failed === null) void askFirst(socket, callback);
      else callback(...result);
    });
  };
}
