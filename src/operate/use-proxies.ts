import { Agent, ProxyAgent, setGlobalDispatcher } from "undici";
import { type Proxies, proxyFor } from "../config/proxy.ts";

/**
 * From now on, connections go through the proxies, each as `proxyFor` decides. Slack's Web API,
 * uploads, endorsements, and calls of the API from a terminal use the process's dispatcher
 * automatically; the gateway passes it to the WebSocket. The client of the compute service has its
 * own connections.
 */
export function useProxies(proxies: Proxies): void {
  const options = { allowH2: false };
  const agents = new Map<string, ProxyAgent>();
  const agentOf = (uri: string): ProxyAgent => {
    const agent = agents.get(uri) ?? new ProxyAgent({ ...options, uri });
    agents.set(uri, agent);
    return agent;
  };
  const dispatcher = new Agent(options).compose((dispatch) => (request, handler) => {
    const proxy = proxyFor(String(request.origin), proxies);
    return proxy === undefined
      ? dispatch(request, handler)
      : agentOf(proxy).dispatch(request, handler);
  });
  setGlobalDispatcher(dispatcher);
}
