import type { LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { createGuardedLookup, type Reach } from "./reach.ts";

/** Opens connections to the service: addresses checked, certificates always verified, TLS 1.2 at least. */
export function createConnector(options: {
  reach: Reach;
  timeoutMs: number;
  /** PEM of a private authority to trust instead of the system's. */
  ca?: string | undefined;
  lookup?: LookupFunction | undefined;
}): buildConnector.connector {
  return buildConnector({
    allowH2: false,
    timeout: options.timeoutMs,
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
    lookup: createGuardedLookup(options.reach, options.lookup),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
}

/** Whether a connection stood: from then on bytes of the request may have left us. */
export interface Wire {
  connected: boolean;
}

/**
 * For calls that change something: one connection and no second one, so that the request can't be written twice
 * whatever the client library does when a connection breaks. `mayGoOn` is asked once more when the connection stands:
 * whoever was frozen meanwhile sends nothing.
 */
export function connectOnce(
  connect: buildConnector.connector,
  wire: Wire,
  mayGoOn: () => boolean = () => true,
): buildConnector.connector {
  let used = false;
  return (options, callback) => {
    if (used) return callback(new Error("a second connection is not allowed"), null);
    used = true;
    connect(options, (...result) => {
      const [failed, socket] = result;
      if (failed === null && !mayGoOn()) {
        socket.destroy();
        return callback(new Error("too late: nothing was sent"), null);
      }
      if (failed === null) wire.connected = true;
      callback(...result);
    });
  };
}
