import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { complete } from "./complete.ts";
import { policyTerms } from "../../src/features/index.ts";

const read = (env: Record<string, string>) =>
  loadConfig({ env: { ...complete, ...env }, role: "all", cwd: "/nowhere", terms: policyTerms });

describe("the variables of traces", () => {
  it("are OpenTelemetry's own, and without an endpoint there are no traces", () => {
    for (const OTEL_EXPORTER_OTLP_HEADERS of ["", "no header"])
      expect(read({ OTEL_SERVICE_NAME: "x", OTEL_EXPORTER_OTLP_HEADERS }).traces).toBeUndefined();
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20abc, x-team=ops",
    };
    expect(read(env).traces).toEqual({
      url: "http://collector:4318/v1/traces",
      headers: { authorization: "Bearer abc", "x-team": "ops" },
      serviceName: "gatehouse",
    });
    const deeper = { OTEL_EXPORTER_OTLP_ENDPOINT: "https://host/otlp/", OTEL_SERVICE_NAME: "bot" };
    expect(read(deeper).traces).toMatchObject({
      url: "https://host/otlp/v1/traces",
      serviceName: "bot",
    });
  });

  it.each([
    ["Authorization=Basic dXNlcjpwYXNzd29yZA==", { Authorization: "Basic dXNlcjpwYXNzd29yZA==" }],
    ["a=b=c,x.y=1 2 , z=%20", { a: "b=c", "x.y": "1 2", z: " " }],
    ["a=1,,", { a: "1" }],
  ])("are headers as the SDK reads them: %s", (OTEL_EXPORTER_OTLP_HEADERS, headers) => {
    const OTEL_EXPORTER_OTLP_ENDPOINT = "http://collector:4318";
    const config = read({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS });
    expect(config.traces?.headers).toEqual(headers);
    expect(config.warnings).toEqual([]);
  });
});

describe("a variable of other programs that can't be read", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:1" };

  it.each<[env: Record<string, string>, sentence: string]>([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "grpc://c:1" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be"],
    [{ OTEL_SERVICE_NAME: '"s3cret"' }, "OTEL_SERVICE_NAME: is in quotes"],
    [
      { ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "Bearer s3cret" },
      "OTEL_EXPORTER_OTLP_HEADERS: must be name=value",
    ],
    [
      { ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "s3cret=%E0%A4%A" },
      "OTEL_EXPORTER_OTLP_HEADERS: must be name=value",
    ],
    [
      { ...endpoint, OTEL_EXPORTER_OTLP_HEADERS_FILE: "/nowhere/s3cret" },
      "OTEL_EXPORTER_OTLP_HEADERS_FILE: names a file that can't be read (ENOENT)",
    ],
    [{ API_PORT: "tcp://s3cret-of-10.0.0.1:80" }, "API_PORT: must be a whole number"],
    [{ NO_PROXY: "'s3cret.example'" }, "NO_PROXY: is in quotes"],
  ])("is a warning without its value, and prevents no start: %j", (env, sentence) => {
    const { warnings } = read(env);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(sentence);
    expect(warnings[0]).not.toContain("s3cret");
  });

  it.each([
    { API_HOST: "0.0.0.0" },
    { DOOR_PORT: "3002" },
    { OTEL_TRACES_EXPORTER: "none" },
    { ALL_PROXY: "socks5://proxy.example:1080" },
    { REDIS_PORT: "tcp://10.0.0.1:6379", REDIS_SERVICE_HOST: "10.0.0.1" },
    { HTTP_PROXY: "proxy.example:3128", HTTPS_PROXY: "proxy.example:3128" },
  ])("says nothing of %j", (env) => {
    expect(read(env as Record<string, string>).warnings).toEqual([]);
  });
});
