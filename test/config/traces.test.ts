import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig } from "../../src/config/config.ts";
import { complete } from "./complete.ts";
import { policyTerms } from "../../src/features/index.ts";

const read = (env: Record<string, string>) =>
  loadConfig({ env: { ...complete, ...env }, role: "all", cwd: "/nowhere", terms: policyTerms });

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    read(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

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
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be"],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:1", OTEL_EXPORTER_OTLP_HEADERS: "Bearer s3cret" },
      "OTEL_EXPORTER_OTLP_HEADERS: must be name=value",
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:1", OTEL_EXPORTER_OTLP_HEADERS: "a=%E0%A4%A" },
      "OTEL_EXPORTER_OTLP_HEADERS: must be name=value",
    ],
  ])("are refused by name, without their value: %j", (env, sentence) => {
    const problems = problemsOf(env);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(sentence);
    expect(problems[0]).not.toContain("s3cret");
  });
});
