import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { BlockList, isIP, type LookupFunction, type Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { buildConnector } from "undici";
import type { ComputeTls } from "../config/compute-tls.ts";
import { UserError } from "../errors.ts";
import { throughProxy } from "./proxy.ts";

/** By the host's own name. A public name that resolves into the inner network is SSRF: checked before connecting. */
type Reach = "public" | "private" | "loopback";

/**
 * Link-local (the clouds' metadata services), and what is no destination at all. Teredo and a network's own NAT64 prefix
 * (RFC 8215) hide an IPv4 address in ways that can't be told from outside, so they are none either.
 */
const never = blockList(
  ["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  ["::/128", "fe80::/10", "ff00::/8", "2001::/32", "64:ff9b:1::/48"],
);
const loopback = blockList(["127.0.0.0/8"], ["::1/128"]);
const inner = blockList(
  [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "192.0.0.0/24",
    "198.18.0.0/15",
  ],
  ["fc00::/7", "fec0::/10"],
);
/** IPv6 addresses that lead to the IPv4 address which stands in them, from this byte on. */
const around4: readonly (readonly [list: BlockList, firstByte: number])[] = [
  [blockList([], ["::/96"]), 12],
  [blockList([], ["::ffff:0:0/96"]), 12],
  [blockList([], ["::ffff:0:0:0/96"]), 12],
  [blockList([], ["64:ff9b::/96"]), 12],
  [blockList([], ["2002::/16"]), 2],
];

function blockList(v4: readonly string[], v6: readonly string[]): BlockList {
  return addRanges(new BlockList(), [...v4, ...v6]);
}

function addRanges(list: BlockList, ranges: readonly string[]): BlockList {
  for (const range of ranges) {
    const [net = "", bits = "0"] = range.split("/");
    list.addSubnet(net, Number(bits), range.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
}

/** Whether it, or the IPv4 address that it leads to, is in the list. */
function isIn(list: BlockList, address: string): boolean {
  return isIP(address) !== 0 && [address, ...inside(address)].some((one) => check(list, one));
}

function check(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

function inside(address: string): readonly string[] {
  if (isIP(address) !== 6 || /^(0*:)*:?0*[01]?$/.test(address)) return [];
  const bytes = bytesOf(address);
  return around4.flatMap(([list, from]) =>
    check(list, address) ? [bytes.slice(from, from + 4).join(".")] : [],
  );
}

/** The sixteen bytes of an IPv6 address. */
function bytesOf(address: string): readonly number[] {
  // Written in one way, without a dotted end
  const url = new URL("http://localhost");
  url.hostname = `[${address.replace(/%.*/, "")}]`;
  const hex = url.hostname.slice(1, -1);
  const [left = [], right = []] = hex
    .split("::")
    .map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function isLoopbackHost(host: string): boolean {
  return isIn(loopback, host) || host === "localhost" || host.endsWith(".localhost");
}

/** A private address, a name without a dot (a container, a neighbor), or a name in a zone that is never public. */
function isPrivateHost(host: string): boolean {
  if (isIP(host) !== 0) return isIn(inner, host);
  return (
    !host.includes(".") || /\.(internal|local|lan|intranet|private|home\.arpa|svc)\.?$/.test(host)
  );
}

export interface BaseAddress {
  origin: string;
  /** Path of the base URL without a trailing slash; `/v1/…` is appended to it. */
  prefix: string;
  reach: Reach;
  /** Private addresses that a public name may lead to all the same. */
  allowed: BlockList;
}

/**
 * Plain http is only for hosts that are loopback or private by name, because the key would travel in clear text. Throws
 * UserError, whose text never repeats the URL: it may contain a password.
 */
export function parseBaseUrl(
  baseUrl: string,
  allowPrivate: boolean | readonly string[],
): BaseAddress {
  const url = URL.parse(baseUrl);
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new UserError(
      "The compute service's base URL is not an http(s) address",
      "For example https://compute.example.com",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new UserError(
      "The compute service's base URL contains a user name or password",
      "The key belongs in COMPUTE_API_KEY",
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw new UserError(
      "The compute service's base URL has a query or a fragment",
      "Remove them: paths are appended to it",
    );
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIn(never, host)) {
    throw new UserError("The compute service's base URL names a link-local or unusable address");
  }
  const reach: Reach = isLoopbackHost(host)
    ? "loopback"
    : allowPrivate === true || isPrivateHost(host)
      ? "private"
      : "public";
  if (url.protocol === "http:" && reach === "public") {
    throw new UserError(
      "The compute service's base URL must be https",
      "Plain http would show the key to the network",
    );
  }
  const ranges = typeof allowPrivate === "boolean" ? [] : allowPrivate;
  const allowed = addRanges(new BlockList(), ranges);
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, ""), reach, allowed };
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

/** Nothing was sent. */
class ForbiddenAddressError extends Error {
  override readonly name = "ForbiddenAddressError";
  readonly code = "FORBIDDEN_ADDRESS";
}

/** Fails when any of the name's addresses is not allowed. */
function createGuardedLookup(
  base: BaseAddress,
  lookup: LookupFunction = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "");
      const addresses: LookupAddress[] = Array.isArray(found)
        ? found
        : [{ address: found, family: isIP(found) }];
      const first = addresses[0];
      if (!first || addresses.some((each) => !mayReach(each.address, base))) {
        return callback(
          new ForbiddenAddressError("the name leads to an address that is not allowed"),
          "",
        );
      }
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/**
 * Checks addresses, always verifies certificates, TLS 1.2 at least. `tls` is read for each connection: a certificate may be
 * replaced while the process runs. Texts that don't fit together leave the former ones. Through a proxy it is the proxy that
 * looks names up.
 */
export function createConnector(options: {
  base: BaseAddress;
  timeoutMs: number;
  tls?: ComputeTls | undefined;
  /** Its address. */
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
    const texts = { ca: tls?.ca, cert: tls?.cert, key: tls?.key };
    const now = JSON.stringify(texts);
    if (connect === undefined || now !== read) {
      try {
        connect = build(createSecureContext({ ...texts, minVersion: "TLSv1.2" }));
        read = now;
      } catch (error) {
        if (connect === undefined) throw error;
      }
    }
    connect(to, callback);
  };
}

/**
 * For changes: a single connection, so that the request can't be written twice whatever the client library does when a
 * connection breaks. From `wire.connected` on, bytes may have been sent. Before that, `mayGoOn` is asked: unless it says
 * true, nothing is sent.
 */
export function connectOnce(
  connect: buildConnector.connector,
  wire: { connected: boolean },
  mayGoOn: () => Promise<boolean> = async () => true,
): buildConnector.connector {
  let used = false;
  async function askFirst(socket: Socket, callback: buildConnector.Callback): Promise<void> {
    const may = await mayGoOn().catch(() => false);
    // It may have broken meanwhile
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
