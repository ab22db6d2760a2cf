import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import type { Input } from "../registry/invocation.ts";
import type { Journal } from "../core/request/journal.ts";
import type { GatewayContext } from "../talk/gateway-context.ts";
import type { Caller } from "./callers.ts";

/** The context from which the routes of the API answer. */
export interface Behind {
  config: Config;
  store: Journal;
  log: Log;
  /**
   * Called when a caller exceeds its limit, such as `60 calls a minute`, so that operators are
   * told.
   */
  onLimit(caller: string, limit: string): Promise<void>;
  /** Failpoints around writes. */
  at?: ((point: string, subject: string) => Promise<void>) | undefined;
  /** The context from which people in Slack are answered, with the current policy. */
  gatewayNow(): GatewayContext;
  /** Paths that OpenAPI describes in addition to the reads. */
  paths: OpenApiPaths;
  /** Tools that agents can call in addition to the reads. */
  tools: readonly AgentTool[];
}

/** Paths of OpenAPI 3.1. */
export type OpenApiPaths = Readonly<Record<string, object>>;

/** A tool that agents call. */
export interface AgentTool {
  name: string;
  /**
   * The description for this caller. Without a caller, it is general, because the tools are only
   * listed.
   */
  describe(caller: Caller | undefined, gateway: GatewayContext): AgentToolWords;
  /** Throws UserError and ApiProblem. A repeated call has the same `key`. */
  call(
    caller: Caller,
    input: Input,
    behind: Behind,
    how: { key?: string | undefined },
  ): Promise<{ text: string; data: object }>;
}

interface AgentToolWords {
  description: string;
  inputSchema: JsonSchema;
  outputSchema: JsonSchema;
  /** Whether it changes nothing at all. */
  isReadOnly: boolean;
}

/** The JSON Schema of an object. */
export type JsonSchema = { type: "object" } & Record<string, unknown>;
