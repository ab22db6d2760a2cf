import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
import type { Proxies } from "../config/proxy.ts";

/**
 * From now on everything that speaks to Slack goes through the proxies: its Web API, its WebSocket, and uploads all use the
 * dispatcher of this process. The client of the compute service has connections of its own (`proxyFor`).
 */
export function useProxies({ https, http, no }: Proxies): void {
  setGlobalDispatcher(
    new EnvHttpProxyAgent({
      allowH2: false,
      ...(https === undefined ? {} : { httpsProxy: https }),
      ...(http === undefined ? {} : { httpProxy: http }),
      noProxy: no,
    }),
  );
}
