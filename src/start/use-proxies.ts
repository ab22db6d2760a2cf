import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
import type { Proxies } from "../config/proxy.ts";

/**
 * From now on what speaks to Slack goes through the proxies: its Web API and uploads use the dispatcher of this process by
 * themselves, the gateway hands it to the WebSocket. The client of the compute service has its own connections (`proxyFor`).
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
