import type { SandboxEndpoint } from "./endpoints.ts";

/** Which endpoint a call means, or whether there is one with another method. */
export function createRouter(endpoints: readonly SandboxEndpoint[]) {
  const table = endpoints.map((endpoint) => ({
    endpoint,
    pattern: new RegExp(`^${endpoint.route.replaceAll(/\{\w+\}/g, "([^/]+)")}$`),
  }));
  return (
    method: string,
    path: string,
  ): { endpoint: SandboxEndpoint; ids: string[] } | "no-path" | "no-method" => {
    let known = false;
    for (const { endpoint, pattern } of table) {
      const found = pattern.exec(path);
      if (!found) continue;
      known = true;
      if (endpoint.method === method) return { endpoint, ids: found.slice(1).map(decode) };
    }
    return known ? "no-method" : "no-path";
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
