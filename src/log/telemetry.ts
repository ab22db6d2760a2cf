import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/**
 * The metrics behind `/metrics`. Labels take few, fixed values: never an ID, a name, or a text from
 * outside. A metric that can have a sample from the start has one, so that an alert on its growth
 * sees the first event, too. The registry is created here instead of using the library's global
 * one, so that several worlds can live in one process.
 */
export type Telemetry = ReturnType<typeof createTelemetry>;

const ends = ["done", "failed", "rejected", "not-applied", "denied", "expired", "cancelled"];
/**
 * Why a process isn't ready. The reasons about a Redis that answers but takes no writes also appear
 * in `src/redis/redis.ts`.
 */
const unreadyReasons = [
  "starting",
  "stopping",
  "stuck",
  "slack",
  "redis",
  "redis-full",
  "redis-disk",
  "redis-read-only",
  "redis-replicas",
  "policy",
  "clock",
] as const;
export type UnreadyReason = (typeof unreadyReasons)[number];
const limits = ["slack-posts", "slack-edits", "compute", "target"] as const;
/** The kinds of deliveries as `src/slack/receive` names them. */
const deliveryKinds = "command event button submission closed options shortcut other".split(" ");
const refusalReasons =
  "method header timestamp signature content-type body too-large slow crowded app team replay".split(
    " ",
  );

const calls = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const acks = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3];
/** From a tenth of a second to a working day, because a person may have to approve. */
const lives = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400, 28_800];

/** `commands` are the names of the commands that make requests. */
export function createTelemetry({
  role = "all",
  version = "unknown",
  commands = [],
}: { role?: string; version?: string; commands?: readonly string[] } = {}) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const sharedRegistry = new Registry();
  let isSharedKnown = false;
  let registers = [registry];

  const catalog: { name: string; labels: readonly string[] }[] = [];

  function define<Label extends string>(rest: string, help: string, labelNames: Label[]) {
    const name = `gatehouse_${rest}`;
    if (registers.length > 0) catalog.push({ name, labels: labelNames });
    return { name, help, labelNames, registers };
  }
  const counter = <Label extends string>(rest: string, help: string, labels: Label[] = []) =>
    new Counter(define(rest, help, labels));
  const gauge = <Label extends string>(rest: string, help: string, labels: Label[] = []) =>
    new Gauge(define(rest, help, labels));
  const histogram = <Label extends string>(
    rest: string,
    help: string,
    labels: Label[],
    buckets: number[],
  ) => new Histogram({ ...define(rest, help, labels), buckets });

  const build = gauge("build_info", "1; which version runs here, and as what", [
    "version",
    "node",
    "role",
  ]);
  build.set({ version, node: process.version, role }, 1);

  const own = {
    /** Ends that this process recorded: `done`, or another final state of a request. */
    requests: counter("requests_total", "Requests that ended", ["command", "end"]),
    sentSeconds: histogram(
      "request_sent_seconds",
      "From the request to its first send, with the wait for approvals",
      ["command"],
      lives,
    ),
    settledSeconds: histogram(
      "request_settled_seconds",
      "From the send to a known end, but for ends that a person recorded",
      ["command"],
      lives,
    ),
    toldSeconds: histogram(
      "request_told_seconds",
      "From a request's end to Slack having its result",
      [],
      lives,
    ),
    slackCalls: counter("slack_calls_total", "Calls to Slack", ["method", "outcome"]),
    slackSeconds: histogram(
      "slack_call_seconds",
      "How long calls to Slack take",
      ["method"],
      calls,
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
      calls,
    ),
    /** `target` means that another request holds the target. The other values are rate limits. */
    limitWaits: histogram(
      "limit_wait_seconds",
      "How long something was told to wait, each time that it was",
      ["limit"],
      lives,
    ),
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
  };
  // A worker receives nothing, so it doesn't export these metrics.
  registers = role === "worker" ? [] : [registry];
  const gateway = {
    /**
     * Seconds from the arrival of a command, button, or modal to its acknowledgement. Slack allows
     * 3.
     */
    acked: histogram("ack_seconds", "From arrival to acknowledgement", ["command"], acks),
    /** Deliveries that were refused, by reason: `signature`, `timestamp`, `replay`, `team`, … */
    refusals: counter("refused_deliveries_total", "Deliveries turned away", ["reason"]),
    /**
     * `outcome` is `ok` or the HTTP status of a problem; `route` is `none` when no route matches
     * the address.
     */
    apiCalls: counter("api_calls_total", "Calls of the API", ["route", "outcome"]),
    slackConnected: gauge("slack_connected", "1 while Slack can deliver to this process"),
  };

  registers = [sharedRegistry];
  /** Values that all processes share. They are read from Redis at each scrape. */
  const shared = {
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
  };

  for (const command of commands) {
    for (const end of ends) own.requests.inc({ command, end }, 0);
    own.sentSeconds.zero({ command });
    own.settledSeconds.zero({ command });
  }
  for (const outcome of ["changed", "kept"]) own.policyReloads.inc({ outcome }, 0);
  for (const limit of limits) own.limitWaits.zero({ limit });
  for (const command of deliveryKinds) gateway.acked.zero({ command });
  for (const reason of refusalReasons) gateway.refusals.inc({ reason }, 0);
  // The API adds the samples of its own routes.
  gateway.apiCalls.inc({ route: "none", outcome: "404" }, 0);

  return {
    ...own,
    ...gateway,
    shared,
    /**
     * Tells whether the shared values were just read. Otherwise they are left out, because old
     * values would be taken for current ones.
     */
    knowShared(isKnown: boolean): void {
      isSharedKnown = isKnown;
    },
    /** Returns the metrics as Prometheus text, with its content type. */
    async render(): Promise<{ type: string; text: string }> {
      const texts = [await registry.metrics(), isSharedKnown ? await sharedRegistry.metrics() : ""];
      return { type: registry.contentType, text: texts.join("\n").trimEnd() + "\n" };
    },
    /** Records whether Redis takes writes, as a write just showed. */
    sawRedisWrite: (isUp: boolean) => own.redisUp.set(isUp ? 1 : 0),
    setLogLost(lines: number): void {
      own.logLinesLost.reset();
      own.logLinesLost.inc(lines);
    },
    setUnready(unready: readonly UnreadyReason[]): void {
      for (const reason of unreadyReasons)
        own.ready.set({ reason }, unready.includes(reason) ? 0 : 1);
    },
    /** The name and labels of every metric that Gatehouse defines. */
    catalog,
  };
}

export type LimitName = (typeof limits)[number];
