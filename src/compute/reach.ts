import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/**
 * How near the configured host may be, by its own name. A public name whose DNS answer points into the inner network
 * is how a request gets forged (SSRF), so what a name resolves to is checked before connecting.
 */
export type Reach = "public" | "private" | "loopback";

/** Link-local holds the clouds' metadata services; the others are no destinations at all. */
const never = blockList(
  ["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"],
  ["::/128", "fe80::/10", "ff00::/8", "64:ff9b::a9fe:0/112"],
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
  ["fc00::/7"],
);

function blockList(v4: readonly string[], v6: readonly string[]): BlockList {
  const list = new BlockList();
  for (const [ranges, family] of [
    [v4, "ipv4"],
    [v6, "ipv6"],
  ] as const) {
    for (const range of ranges) {
      const [net = "", bits = "0"] = range.split("/");
      list.addSubnet(net, Number(bits), family);
    }
  }
  return list;
}

function isIn(list: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 6 ? "ipv6" : "ipv4");
}

export function isNeverReached(host: string): boolean {
  return isIn(never, host);
}

export function isLoopbackHost(host: string): boolean {
  return isIn(loopback, host) || host === "localhost" || host.endsWith(".localhost");
}

/** A private address, a name without a dot (a container, a neighbour), or a name in a zone that is never public. */
export function isPrivateHost(host: string): boolean {
  if (isIP(host) !== 0) return isIn(inner, host);
  return (
    !host.includes(".") || /\.(internal|local|lan|intranet|private|home\.arpa|svc)\.?$/.test(host)
  );
}

/** Whether a host of this reach may resolve to this address. */
export function mayReach(address: string, reach: Reach): boolean {
  if (isIP(address) === 0 || isIn(never, address)) return false;
  if (isIn(loopback, address)) return reach === "loopback";
  return reach !== "public" || !isIn(inner, address);
}

/** The name leads where it must not. Nothing was sent. */
export class ForbiddenAddressError extends Error {
  override readonly name = "ForbiddenAddressError";
  readonly code = "FORBIDDEN_ADDRESS";
}

/** Looks a name up like the system does, and fails when any of its addresses is out of reach. */
export function createGuardedLookup(
  reach: Reach,
  lookup: LookupFunction = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "");
      const addresses: LookupAddress[] = Array.isArray(found)
        ? found
        : [{ address: found, family: isIP(found) }];
      const first = addresses[0];
      if (!first || addresses.some((each) => !mayReach(each.address, reach))) {
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
