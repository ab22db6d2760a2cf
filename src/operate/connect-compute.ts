import type { Compute } from "../fleet/compute/compute.ts";
import { type ComputeOptions, createCompute } from "../fleet/compute/create-compute.ts";
import type { Config } from "../config/config.ts";
import { proxyFor } from "../config/proxy.ts";

/** Creates a client of the compute service from the configuration. */
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
