import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import type { Journal } from "../requests/journal/journal.ts";
import type { GatewayContext } from "../slack/conversation/gateway-context.ts";
import type { Proposals } from "../proposals/proposals.ts";

/** What the routes of the API answer from. */
export interface Behind {
  config: Config;
  store: Journal;
  proposals: Proposals;
  log: Log;
  /** A caller is over its limit, such as `60 calls a minute`: whoever operates Gatehouse is told. */
  onLimit(caller: string, limit: string): Promise<void>;
  /** Failpoint around the write of an alert or a proposal. */
  at?: ((point: string, what: string) => Promise<void>) | undefined;
  /** What people in Slack are answered from, by the rules of this moment. */
  gatewayNow(): GatewayContext;
}
