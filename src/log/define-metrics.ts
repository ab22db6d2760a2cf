import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** The name and labels of a metric. */
export interface MetricName {
  name: string;
  labels: readonly string[];
}

export type MetricDefiners = ReturnType<typeof metricDefiners>;

/**
 * Defines metrics in a registry and adds them to the catalog. Without a registry a metric can be
 * counted, but is in neither.
 */
export function metricDefiners(registry: Registry | undefined, catalog: MetricName[]) {
  function define<Label extends string>(rest: string, help: string, labelNames: Label[]) {
    const name = `gatehouse_${rest}`;
    if (registry) catalog.push({ name, labels: labelNames });
    return { name, help, labelNames, registers: registry ? [registry] : [] };
  }
  return {
    counter: <Label extends string>(rest: string, help: string, labels: Label[] = []) =>
      new Counter(define(rest, help, labels)),
    gauge: <Label extends string>(rest: string, help: string, labels: Label[] = []) =>
      new Gauge(define(rest, help, labels)),
    histogram: <Label extends string>(
      rest: string,
      help: string,
      labels: Label[],
      buckets: number[],
    ) => new Histogram({ ...define(rest, help, labels), buckets }),
  };
}
