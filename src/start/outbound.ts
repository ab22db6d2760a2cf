import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";
import type { Compute } from "../compute/compute.ts";
import { type ComputeOptions, createCompute } from "../compute/create-compute.ts";
import type { Config } from "../config/config.ts";
import { type Proxies, proxyFor, proxyOptions } from "../config/proxy.ts";

/**
 * From now on what speaks to Slack goes through the proxies: its Web API and uploads use the dispatcher of this process by
 * themselves, the gateway hands it to the WebSocket. The client of the compute service has its own connections (`proxyFor`).
 */
export function useProxies(proxies: Proxies): void {
  setGlobalDispatcher(new EnvHttpProxyAgent({ allowH2: false, ...proxyOptions(proxies) }));
}

/** A client of the compute service as the configuration says. */
export function connectCompute(
  { compute, proxies, files, policy }: Config,
  options: Pick<ComputeOptions, "log" | "onCall">,
): Compute {
  return createCompute({
    ...options,
    baseUrl: compute.url,
    apiKey: () => compute.apiKey,
    refreshKey: () => files.get("COMPUTE_API_KEY")?.reread(),
    timeoutMs: policy.timing.httpTimeoutMs,
    allowPrivate: compute.allowPrivate,
    tls: compute.tls,
    proxy: proxyFor(compute.url, proxies),
  });
}
