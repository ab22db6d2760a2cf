import type { MetricDefiners } from "./define-metrics.ts";

const callSeconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const ackSeconds = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3];
/** From a tenth of a second to a working day, because a person may have to approve. */
const lifeSeconds = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 28_800];

export const requestMetrics = ({ counter, histogram }: MetricDefiners) => ({
  /** Ends that this process recorded: `done`, or another final state of a request. */
  requests: counter("requests_total", "Requests that ended", ["command", "end"]),
  sentSeconds: histogram(
    "request_sent_seconds",
    "From the request to its first send, with the wait for approvals",
    ["command"],
    lifeSeconds,
  ),
  settledSeconds: histogram(
    "request_settled_seconds",
    "From the send to a known end, but for ends that a person recorded",
    ["command"],
    lifeSeconds,
  ),
  toldSeconds: histogram(
    "request_told_seconds",
    "From a request's end to Slack having its result",
    [],
    lifeSeconds,
  ),
});

export const callMetrics = ({ counter, histogram }: MetricDefiners) => ({
  slackCalls: counter("slack_calls_total", "Calls to Slack", ["method", "outcome"]),
  slackSeconds: histogram(
    "slack_call_seconds",
    "How long calls to Slack take",
    ["method"],
    callSeconds,
  ),
  /**
   * `endpoint` is the template, `POST /v1/vms/{vm_id}/restart`; `outcome` is `ok` or a kind of
   * ComputeError.
   */
  computeCalls: counter("compute_calls_total", "Calls to the compute service", [
    "endpoint",
    "outcome",
  ]),
  computeSeconds: histogram(
    "compute_call_seconds",
    "How long calls to the compute service take",
    ["endpoint"],
    callSeconds,
  ),
  /** `target` means that another request holds the target. The other values are rate limits. */
  limitWaits: histogram(
    "limit_wait_seconds",
    "How long something was told to wait, each time that it was",
    ["limit"],
    lifeSeconds,
  ),
});

export const processMetrics = ({ counter, gauge }: MetricDefiners) => ({
  build: gauge("build_info", "1; which version runs here, and as what", [
    "version",
    "node",
    "role",
  ]),
  inventoryAge: gauge(
    "inventory_age_seconds",
    "Since all names were last read from the compute service, or since the start",
  ),
  inventoryUnread: gauge(
    "inventory_unread_projects",
    "Projects that the last refresh could not read",
  ),
  inventoryGaps: gauge(
    "inventory_gaps",
    "Projects, and their list, that the compute service gives only in part or in a form that can't be read",
  ),
  policyInfo: gauge("policy_info", "1; the version of the policy that counts in this process", [
    "version",
  ]),
  policyReloads: counter("policy_reloads_total", "Policy files that were read while it ran", [
    "outcome",
  ]),
  policyUnusable: gauge(
    "policy_file_unusable",
    "1 while the policy file has a problem, so that the policy before it counts",
  ),
  policySuperseded: gauge(
    "policy_superseded",
    "1 while other processes have a newer policy than this one, which then changes nothing",
  ),
  redisUp: gauge("redis_up", "1 while Redis answers this process and takes its writes"),
  logLinesLost: counter(
    "log_lines_lost_total",
    "Log lines that standard output didn't take: its reader is gone, or its disk is full",
  ),
  redisVolatile: gauge(
    "redis_volatile",
    "1 while no change is sent, because Redis is set so that it may lose what was sent",
  ),
  dataDirFree: gauge("data_dir_free_bytes", "Free space where DATA_DIR is"),
  certificateEnd: gauge(
    "certificate_end_seconds",
    "When the first certificate in this file ends, in seconds since 1970",
    ["file"],
  ),
  /** The reasons as /readyz reports them. */
  ready: gauge("ready", "0 while this process gets no work for that reason, else 1", ["reason"]),
});

export const gatewayMetrics = ({ counter, gauge, histogram }: MetricDefiners) => ({
  /**
   * Seconds from the arrival of a command, button, or modal to its acknowledgement. Slack allows
   * 3.
   */
  acked: histogram("ack_seconds", "From arrival to acknowledgement", ["command"], ackSeconds),
  /** Deliveries that were refused, by reason: `signature`, `timestamp`, `replay`, `team`, … */
  refusals: counter("refused_deliveries_total", "Deliveries turned away", ["reason"]),
  /**
   * `outcome` is `ok` or the HTTP status of a problem; `route` is `none` when no route matches
   * the address.
   */
  apiCalls: counter("api_calls_total", "Calls of the API", ["route", "outcome"]),
  slackConnected: gauge("slack_connected", "1 while Slack can deliver to this process"),
});

/** Values that all processes share. They are read from Redis at each scrape. */
export const sharedMetrics = ({ counter, gauge }: MetricDefiners) => ({
  /** The state `uncounted` means that too many requests are open to look at each. */
  openRequests: gauge("open_requests", "Requests that have not ended", ["state"]),
  openRequestAge: gauge(
    "open_request_age_seconds",
    "Of the request that has been in this state the longest; 0 without one",
    ["state"],
  ),
  outboxDepth: gauge(
    "outbox_messages",
    "Requests, shared cards, and notices whose messages Slack lacks",
  ),
  outboxAge: gauge("outbox_age_seconds", "Since the oldest of them changed; 0 without one"),
  queueJobs: gauge("queue_jobs", "Jobs in the queue", ["queue", "state"]),
  queueAge: gauge(
    "queue_age_seconds",
    "Since the job that waits the longest was added or last begun; 0 without one",
    ["queue"],
  ),
  /** 1 while changes are frozen. */
  frozen: gauge("frozen", "1 while changes are frozen"),
  frozenByPerson: gauge(
    "frozen_by_person",
    "1 while changes are frozen because a person wanted it, and for no other reason",
  ),
  auditRecords: counter("audit_records_total", "Sealed records of the audit trail"),
  auditHeadAge: gauge("audit_head_age_seconds", "Since the newest sealed record was written"),
  auditUnsealedAge: gauge(
    "audit_unsealed_age_seconds",
    "Since the oldest record that is not sealed was written; 0 without one",
  ),
  redisMemoryRatio: gauge(
    "redis_memory_ratio",
    "Redis's used memory by its maxmemory; 0 without a limit",
  ),
  redisRoundTrip: gauge("redis_round_trip_seconds", "How long a PING took at this scrape"),
});
