import { ConfigError } from "./config-error.ts";
import { callerNames, type Env, Environment } from "./environment.ts";
import { type Proxies, proxiesIn, proxyNames } from "./proxy.ts";
import { processEnv } from "./process-env.ts";

export interface ApiAccess {
  url: string;
  token: string;
  authorities?: string | undefined;
  proxies?: Proxies | undefined;
}

/**
 * For programs that call the API from a terminal: its address and the token of a service. Throws
 * ConfigError.
 */
export function loadApiAccess(env: Env = processEnv): ApiAccess {
  const from = new Environment(env);
  const read = from.readVariables("CA_FILE", ...callerNames, ...proxyNames);
  if (from.problems.length > 0) throw new ConfigError(from.problems);
  const { GATEHOUSE_URL: url, GATEHOUSE_TOKEN: token, CA_FILE: authorities } = read;
  return { url, token, authorities, proxies: proxiesIn(read) };
}

/** Tells people where the token of `loadApiAccess` comes from. */
export function describeTokenSource(env: Env = processEnv): string {
  const file = env["GATEHOUSE_TOKEN_FILE"]?.trim();
  return file ? `${file} (GATEHOUSE_TOKEN_FILE)` : "GATEHOUSE_TOKEN";
}
