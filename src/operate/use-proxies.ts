import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
import { type Proxies, proxyOptions } from "../config/proxy.ts";

/**
 * From now on what speaks to Slack and to vendors goes through the proxies: Slack's Web API, uploads, and endorsements use the
 * dispatcher of this process by themselves, the gateway hands it to the WebSocket. The client of the compute service has its own connections (`proxyFor`).
 */
export function useProxies(proxies: Proxies): void {
  setGlobalDispatcher(new EnvHttpProxyAgent({ allowH2: false, ...proxyOptions(proxies) }));
}
