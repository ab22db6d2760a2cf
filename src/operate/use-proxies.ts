import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
import { type Proxies, proxyOptions } from "../config/proxy.ts";

/**
 * From now on, connections to Slack and to vendors go through the proxies. Slack's Web API,
 * uploads, and endorsements use the process's dispatcher automatically; the gateway passes it to
 * the WebSocket. The client of the compute service has its own connections (`proxyFor`).
 */
export function useProxies(proxies: Proxies): void {
  setGlobalDispatcher(new EnvHttpProxyAgent({ allowH2: false, ...proxyOptions(proxies) }));
}
