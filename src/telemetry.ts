import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/**
 * The figures behind `/metrics`. Labels take few, fixed values: never an id, a name or a text from outside.
 * The registry is our own, so that several worlds can live in one process.
 */
export interface Telemetry {
  readonly registry: Registry;
  /** Seconds from a command's, button's or modal's arrival to its acknowledgement. Slack allows 3. */
  readonly acked: Histogram<"command">;
  /** Moves of requests, by the state they moved to. */
  readonly requests: Counter<"command" | "state">;
  /** Requests that haven't ended, by state. */
  readonly openRequests: Gauge<"state">;
  /** Seconds from a request's creation to its end. */
  readonly requestSeconds: Histogram<"command" | "state">;
  readonly slackCalls: Counter<"method" | "outcome">;
  readonly slackSeconds: Histogram<"method">;
  /** `endpoint` is the template, `POST /v1/vms/{vm_id}/restart`; `outcome` is `ok` or a kind of ComputeError. */
  readonly computeCalls: Counter<"endpoint" | "outcome">;
  readonly computeSeconds: Histogram<"endpoint">;
  /** Messages that are written down but not yet with Slack. */
  readonly outboxDepth: Gauge;
  /** Deliveries that were turned away: `signature`, `timestamp`, `replay`, `foreign-team`, `forged-button`, … */
  readonly refusals: Counter<"reason">;
  readonly audit: Counter<"outcome">;
  /** 1 while nothing that changes anything may run. */
  readonly frozen: Gauge;
  /** Seconds since names of projects and VMs were last read. */
  readonly inventoryAge: Gauge;
  /** Prometheus text and its content type. */
  render(): Promise<{ type: string; text: string }>;
}

export function createTelemetry(): Telemetry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];

  const counter = <Label extends string>(rest: string, help: string, labelNames: Label[]) =>
    new Counter({ name: `gatehouse_${rest}`, help, labelNames, registers });
  const gauge = <Label extends string>(rest: string, help: string, labelNames: Label[]) =>
    new Gauge({ name: `gatehouse_${rest}`, help, labelNames, registers });
  const histogram = <Label extends string>(
    rest: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ) => new Histogram({ name: `gatehouse_${rest}`, help, labelNames, buckets, registers });

  const calls = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
  return {
    registry,
    acked: histogram(
      "ack_seconds",
      "From arrival to acknowledgement",
      ["command"],
      [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3],
    ),
    requests: counter("requests_total", "Moves of requests by the state they moved to", [
      "command",
      "state",
    ]),
    openRequests: gauge("open_requests", "Requests that haven't ended", ["state"]),
    requestSeconds: histogram(
      "request_seconds",
      "From a request's creation to its end",
      ["command", "state"],
      [1, 5, 15, 30, 60, 120, 300, 900, 3600],
    ),
    slackCalls: counter("slack_calls_total", "Calls to Slack", ["method", "outcome"]),
    slackSeconds: histogram(
      "slack_call_seconds",
      "How long calls to Slack take",
      ["method"],
      calls,
    ),
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
    outboxDepth: gauge("outbox_messages", "Messages waiting to reach Slack", []),
    refusals: counter("refused_deliveries_total", "Deliveries turned away", ["reason"]),
    audit: counter("audit_records_total", "Audit records by outcome", ["outcome"]),
    frozen: gauge("frozen", "1 while changes are frozen", []),
    inventoryAge: gauge("inventory_age_seconds", "Since names were last read", []),
    render: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  };
}
