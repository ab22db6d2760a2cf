import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/**
 * The figures behind `/metrics`. Labels take few, fixed values: never an id, a name or a text from outside.
 * The registry is our own, so that several worlds can live in one process.
 */
export type Telemetry = ReturnType<typeof createTelemetry>;

export function createTelemetry() {
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
    /** Seconds from a command's, button's or modal's arrival to its acknowledgement. Slack allows 3. */
    acked: histogram(
      "ack_seconds",
      "From arrival to acknowledgement",
      ["command"],
      [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3],
    ),
    slackCalls: counter("slack_calls_total", "Calls to Slack", ["method", "outcome"]),
    slackSeconds: histogram(
      "slack_call_seconds",
      "How long calls to Slack take",
      ["method"],
      calls,
    ),
    /** `endpoint` is the template, `POST /v1/vms/{vm_id}/restart`; `outcome` is `ok` or a kind of ComputeError. */
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
    /** Messages that are written down but not yet with Slack. */
    outboxDepth: gauge("outbox_messages", "Messages waiting to reach Slack", []),
    /** Deliveries that were turned away: `signature`, `timestamp`, `replay`, `team`, … */
    refusals: counter("refused_deliveries_total", "Deliveries turned away", ["reason"]),
    /** 1 while nothing that changes anything may run. */
    frozen: gauge("frozen", "1 while changes are frozen", []),
    inventoryAge: gauge("inventory_age_seconds", "Since names were last read", []),
    /** Prometheus text and its content type. */
    render: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  };
}
