import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { complete } from "./complete.ts";
import { policyTerms } from "../../src/features/index.ts";

const read = (env: Record<string, string>) =>
  loadConfig({ env: { ...complete, ...env }, role: "all", cwd: "/nowhere", terms: policyTerms });

describe("a variable of other programs that can't be read", () => {
  it.each<[env: Record<string, string>, sentence: string]>([
    [{ API_PORT: "tcp://s3cret-of-10.0.0.1:80" }, "API_PORT: must be a whole number"],
    [{ NO_PROXY: "'s3cret.example'" }, "NO_PROXY: is in quotes"],
  ])("is a warning without its value, and prevents no start: %j", (env, sentence) => {
    const { warnings } = read(env);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(sentence);
    expect(warnings[0]).not.toContain("s3cret");
  });

  it.each([
    ["GATEHOUSE_LOG_LEVEL", "debug", "LOG_LEVEL"],
    ["GATEHOUSE_DATA_DIR", "/data", "DATA_DIR"],
    ["GATEHOUSE_REDIS_REPLICAS", "1", "REDIS_REPLICAS"],
    ["GATEHOUSE_API_PORT", "3002", "API_PORT"],
  ])("refuses %s", (name, text, meant) => {
    const sentence = `${name}: is not a Gatehouse variable; did you mean ${meant}?`;
    expect(() => read({ [name]: text })).toThrow(sentence);
  });

  it.each([
    ["DATADIR", "DATA_DIR"],
    ["LOGLEVEL", "LOG_LEVEL"],
    ["OPSPORT", "OPS_PORT"],
    ["CAFILE", "CA_FILE"],
  ])("warns of %s, which may be another program's", (name, meant) => {
    expect(read({ [name]: "x" }).warnings).toEqual([
      `${name}: is not a Gatehouse variable; did you mean ${meant}?`,
    ]);
  });

  it.each([
    { GATEHOUSE_API_PORT: "tcp://10.0.0.1:3002", GATEHOUSE_PORT: "tcp://10.0.0.1:3000" },
    { LOGNAME: "olivia", DATADIR: "/data", DATA_DIR: "/data" },
    { API_HOST: "0.0.0.0" },
    { DOOR_PORT: "3002" },
    { OTEL_TRACES_EXPORTER: "none", OTEL_SERVICE_NAME: '"quoted"' },
    { OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Basic dXNlcjpwYXNzd29yZA==" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317", OTEL_EXPORTER_OTLP_HEADERS: "no header" },
    { ALL_PROXY: "socks5://proxy.example:1080" },
    { REDIS_PORT: "tcp://10.0.0.1:6379", REDIS_SERVICE_HOST: "10.0.0.1" },
    { HTTP_PROXY: "proxy.example:3128", HTTPS_PROXY: "proxy.example:3128" },
  ])("says nothing of %j", (env) => {
    expect(read(env as Record<string, string>).warnings).toEqual([]);
  });
});
