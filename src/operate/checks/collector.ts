import type { Config } from "../../config/config.ts";
import { codeOf, messageOf, rootCause, statusOfProxy } from "../../errors.ts";
import { type Finding, ill, proxyFinding, well } from "../../messages/finding.ts";

const withinMs = 5_000;

/**
 * Sends an export without spans to the collector, in the same way as Gatehouse's own. Undefined
 * when traces aren't exported.
 */
export async function judgeCollector({ traces }: Config): Promise<readonly Finding[] | undefined> {
  if (traces === undefined) return undefined;
  const { url, headers } = traces;
  const name = `OTEL_EXPORTER_OTLP_ENDPOINT: the collector at ${new URL(url).host}`;
  const lost = "Traces are lost until then; everything else works.";
  try {
    const { status } = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ resourceSpans: [] }),
      redirect: "manual",
      signal: AbortSignal.timeout(withinMs),
    });
    if (status >= 200 && status < 300) return [well(`traces: ${new URL(url).host} takes them`)];
    const isLogin = status === 401 || status === 403;
    const check = isLogin
      ? "Check OTEL_EXPORTER_OTLP_HEADERS."
      : "It must take OTLP over HTTP as JSON, at /v1/traces behind the endpoint.";
    return [ill(`${name} answers ${status}`, `${check} ${lost}`)];
  } catch (error) {
    const cause = rootCause(error);
    const proxyStatus = statusOfProxy(cause);
    if (proxyStatus !== undefined) return [proxyFinding(proxyStatus, name)];
    const isLate = cause instanceof Error && cause.name === "TimeoutError";
    const code = isLate ? `no answer within ${withinMs / 1000} s` : codeOf(cause);
    const why = code === "unknown" ? messageOf(cause) : code;
    return [
      ill(`${name} can't be reached (${why})`, `Check that it runs and listens there. ${lost}`),
    ];
  }
}
