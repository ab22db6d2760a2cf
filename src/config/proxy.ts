import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The proxies of this machine, as given by `HTTPS_PROXY`, `HTTP_PROXY`, and `NO_PROXY`. */
export interface Proxies {
  /** Addresses like `http://user:password@proxy.example:3128`. */
  readonly https: string | undefined;
  readonly http: string | undefined;
  readonly no: string;
}

export const proxyNames = ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] as const;

/** Undefined when no proxy is named. */
export function proxiesIn(read: {
  HTTPS_PROXY?: string | undefined;
  HTTP_PROXY?: string | undefined;
  NO_PROXY: string;
}): Proxies | undefined {
  const [https, http, no] = [read.HTTPS_PROXY, read.HTTP_PROXY, read.NO_PROXY];
  return https === undefined && http === undefined ? undefined : { https, http, no };
}

/** The passwords in the proxies' addresses, which must not be printed. */
export function passwordsIn(proxies: Proxies | undefined): readonly string[] {
  return [proxies?.https, proxies?.http].flatMap((address) => {
    const password = address === undefined ? "" : new URL(address).password;
    return password === "" ? [] : [decodeURIComponent(password)];
  });
}

/**
 * The proxy for an address, or undefined to connect directly. Everything decides by this function.
 * `NO_PROXY` has hosts separated by commas or spaces. `example.com` and `.example.com` include the
 * hosts below them, `*.example.com` means only those below, `10.0.0.0/8` and `fd00::/8` mean the
 * addresses in that range, `host:port` means that port alone, and `*` means all. http:// to this
 * machine never goes through a proxy, which would ask its own machine.
 */
export function proxyFor(address: string, proxies: Proxies | undefined): string | undefined {
  const url = URL.parse(address);
  if (!proxies || !url) return undefined;
  const isTls = url.protocol === "https:" || url.protocol === "wss:";
  if (!isTls && isLoopback(url.hostname)) return undefined;
  const proxy = isTls ? (proxies.https ?? proxies.http) : proxies.http;
  return proxy === undefined || isExempt(url, isTls ? "443" : "80", proxies.no) ? undefined : proxy;
}

function isExempt(url: URL, usualPort: string, no: string): boolean {
  const host = hostIn(url.hostname);
  const port = url.port === "" ? usualPort : url.port;
  return no
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      const parts = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+)(?::(\d+))?$/.exec(entry);
      const [, name = entry, only] = parts ?? [];
      return (only === undefined || only === port) && includesHost(name, host);
    });
}

/** Whether an entry of `NO_PROXY` without its port includes the host. */
function includesHost(entry: string, host: string): boolean {
  if (entry === "") return false;
  if (isIP(host) !== 0) return entry === "*" || includesAddress(entry, host);
  const base = entry.replace(/^\*?\./, "").replace(/\.$/, "");
  if (entry === "*" || host.endsWith(`.${base}`)) return true;
  return host === base && !entry.startsWith("*");
}

/** Whether an address, or a range of addresses, includes the address. */
function includesAddress(written: string, address: string): boolean {
  const entry = written.replaceAll(/[[\]]/g, "");
  // ipaddr.js alone would read 010.0.0.1 as octal.
  if (isIP(entry.split("/")[0] ?? "") === 0) return false;
  // An IPv4 address may be written as an IPv6 one: ::ffff:10.0.0.7.
  const host = ipaddr.process(address);
  if (!entry.includes("/")) return ipaddr.process(entry).toString() === host.toString();
  if (!ipaddr.isValidCIDR(entry)) return false;
  const range = ipaddr.parseCIDR(entry);
  return host.kind() === range[0].kind() && host.match(range);
}

/** The host of an address as it is compared: without brackets, and without the dot at its end. */
const hostIn = (hostname: string) =>
  hostname
    .replace(/^\[(.+)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();

/** Whether the host of an address is this machine. */
export function isLoopback(hostname: string): boolean {
  const host = hostIn(hostname);
  if (host === "::1" || host === "localhost" || host.endsWith(".localhost")) return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
