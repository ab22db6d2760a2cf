import type { Environment } from "./environment.ts";

/** Where traces go, as OpenTelemetry's own variables say. */
export interface TracesConfig {
  /** Of OTLP over HTTP: ends with `/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
}

/** Undefined without OTEL_EXPORTER_OTLP_ENDPOINT: then nothing of tracing is loaded. */
export function readTraces(from: Environment): TracesConfig | undefined {
  const endpoint = from.text("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (endpoint === undefined) return undefined;
  const headers = readHeaders(from);
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol)) {
    from.problem("OTEL_EXPORTER_OTLP_ENDPOINT", "must be an address like http://collector:4318");
    return undefined;
  }
  const url = new URL("v1/traces", endpoint.endsWith("/") ? endpoint : `${endpoint}/`).href;
  return { url, headers, serviceName: from.text("OTEL_SERVICE_NAME") ?? "gatehouse" };
}

/** `name=value`, with commas between them; values are URL-encoded. */
function readHeaders(from: Environment): Record<string, string> {
  const name = "OTEL_EXPORTER_OTLP_HEADERS";
  const pairs = (from.secret(name) ?? "").split(",").filter((pair) => pair.trim() !== "");
  const headers: [string, string][] = [];
  for (const pair of pairs) {
    const [, key = "", value = ""] = /^\s*([\w-]+)\s*=\s*(\S+)\s*$/.exec(pair) ?? [];
    try {
      if (key === "") throw new Error("no name");
      headers.push([key, decodeURIComponent(value)]);
    } catch {
      from.problem(name, "must be name=value, with commas between several, and values URL-encoded");
      break;
    }
  }
  return Object.fromEntries(headers);
}
