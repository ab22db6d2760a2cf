import type { LookupFunction } from "node:net";
import { UserError } from "../errors.ts";
import { parseBaseUrl } from "./address.ts";
import type { Compute } from "./compute.ts";
import { createConnector } from "./connect.ts";
import { createHttp, type CallReport, type Http } from "./http.ts";
import { createProjects } from "./projects.ts";
import { createRetryBudget, defaultDelays, type RetryBudget, type RetryDelays } from "./retry.ts";
import { createVms } from "./vms.ts";

export interface ComputeOptions {
  /** `https://host[/prefix]`; http only for hosts that are loopback or private by name. */
  baseUrl: string;
  apiKey: string;
  /** For one try as a whole: connecting, sending, and the last byte of the answer. */
  timeoutMs: number;
  /** Most reads at the same time; default 32. Changes have connections of their own. */
  connections?: number;
  /** Of a record; default 1 MiB. Lists may have 16 times as much. */
  maxResponseBytes?: number;
  /**
   * Lets a public host name resolve to private addresses. Link-local addresses (metadata services) are refused always,
   * loopback unless the base URL itself names a loopback host.
   */
  allowPrivate?: boolean;
  /** PEM of a private authority. */
  ca?: string;
  log?: (event: object) => void;
  /** Told after each try. */
  onCall?: (call: CallReport) => void;
  /** Shared between clients of one service; default: one of its own. */
  retryBudget?: RetryBudget;
  retryDelays?: Partial<RetryDelays>;
  /** Stands in for DNS. */
  lookup?: LookupFunction;
}

/** A client for the service's sixteen endpoints. Throws UserError for a base URL or key that can't be used. */
export function createCompute(options: ComputeOptions): Compute {
  const { apiKey, timeoutMs } = options;
  // What HTTP allows in a header value, without spaces (RFC 6750 allows less).
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new UserError("The compute service's key is empty or has characters no key has");
  const base = parseBaseUrl(options.baseUrl, options.allowPrivate ?? false);
  const log = options.log ?? (() => {});
  const http = createHttp({
    base,
    apiKey,
    timeoutMs,
    connections: options.connections ?? 32,
    maxResponseBytes: options.maxResponseBytes ?? 1024 * 1024,
    connect: createConnector({
      reach: base.reach,
      timeoutMs,
      ca: options.ca,
      lookup: options.lookup,
    }),
    budget: options.retryBudget ?? createRetryBudget(),
    delays: { ...defaultDelays, ...options.retryDelays },
    log,
    onCall: options.onCall ?? (() => {}),
  });
  const callsOver = (by: Http): Compute => ({
    projects: createProjects(by, log),
    vms: createVms(by),
    onlyWhile: (mayGoOn) =>
      callsOver({ ...http, change: (call) => http.change({ ...call, mayGoOn }) }),
    close: () => http.close(),
  });
  return callsOver(http);
}
