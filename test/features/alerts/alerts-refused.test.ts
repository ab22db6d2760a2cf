import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { writeFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestWorld } from "../../support/start-world.ts";
import {
  alertmanagerBody,
  bearer,
  hmac,
  pagerdutyBody,
  send,
  startAlertWorld,
  testSecret,
} from "./sending.ts";
import { until } from "../../support/until.ts";

const now = () => Math.floor(Date.now() / 1000);

describe("a delivery to the API for alerts", () => {
  let world: TestWorld;
  let secretFile: string;
  beforeAll(async () => {
    secretFile = join(await mkdtemp(join(tmpdir(), "alerts-")), "secret");
    await writeFile(secretFile, "test-secret-old");
    world = await startAlertWorld({
      env: { SOURCE_SECRET_BY_TEAM: "", SOURCE_SECRET_BY_TEAM_FILE: secretFile },
    });
  });
  afterAll(() => world.close());

  it.each<[string, string, Record<string, string>]>([
    ["without a secret", "prometheus", {}],
    ["with a wrong secret", "prometheus", bearer("test-secret-two")],
    ["with an empty secret", "prometheus", bearer("")],
    ["with another source's", "prometheus", bearer("test-secret-grafana")],
    ["in another scheme", "prometheus", { authorization: `Digest ${testSecret}` }],
    [
      "with basic and a wrong password",
      "prometheus",
      { authorization: `Basic ${btoa("x:wrong")}` },
    ],
    ["for a source that isn't there", "nobody", bearer()],
    ["for a source named like what all objects have", "constructor", bearer()],
    ["with a secret where a signature is needed", "pagerduty", bearer("test-secret-new")],
    ["with a secret where Grafana must sign", "grafana", bearer("test-secret-grafana")],
  ])("is answered with 401 and nothing about why, %s", async (_what, source, headers) => {
    const sent = await send(world, source, alertmanagerBody([{}]), headers);
    expect(sent.status).toBe(401);
    expect(sent.body).toEqual({ type: "about:blank", title: "Unauthorized", status: 401 });
  });

  it.each<[string, number, string | Buffer | object]>([
    ["larger than 4 MB", 413, "x".repeat(4 * 1024 ** 2 + 1)],
    ["too deep", 400, `${"[".repeat(5_000)}${"]".repeat(5_000)}`],
    ["cut", 400, JSON.stringify(alertmanagerBody([{}])).slice(0, 200)],
    ["empty", 400, ""],
    ["not UTF-8", 400, Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
    ["compressed", 400, gzipSync(JSON.stringify(alertmanagerBody([{}])))],
    ["null", 422, "null"],
    ["of another format", 422, pagerdutyBody()],
    ["without its groups", 422, { ...alertmanagerBody([{}]), groupKey: null }],
    ["with alerts that are null", 422, { ...alertmanagerBody([{}]), alerts: [null] }],
  ])("is refused as a problem that repeats nothing: %s", async (_what, status, body) => {
    const sent = await send(world, "prometheus", body);
    expect(sent.status).toBe(status);
    expect(sent.body).toMatchObject({ type: "about:blank", status, title: expect.any(String) });
    expect(sent.text.length).toBeLessThan(500);
    if (status === 422) expect(sent.body["field"]).toEqual(expect.any(String));
  });

  it.each<[string, Record<string, string>]>([
    ["without a secret", {}],
    ["with a wrong one", bearer("test-secret-two")],
  ])("is answered before its body is read, %s", async (_what, headers) => {
    const waiting = request({
      port: world.processes[0]?.apiPort,
      path: "/alerts/prometheus",
      method: "POST",
      headers: { ...headers, "content-length": "3000000" },
    });
    waiting.on("error", () => undefined);
    waiting.flushHeaders();
    const [answer] = (await once(waiting, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(401);
    waiting.destroy();
  });

  it("is taken with basic authorization, whatever the name", async () => {
    const headers = { authorization: `Basic ${btoa(`prometheus:${testSecret}`)}` };
    const sent = await send(world, "prometheus", alertmanagerBody([{}], "basic"), headers);
    expect(sent.status).toBe(202);
  });

  it("has no other methods", async () => {
    const url = `http://127.0.0.1:${world.processes[0]?.apiPort}/alerts/prometheus`;
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
  });

  describe("signed by Grafana", () => {
    const body = JSON.stringify({ ...alertmanagerBody([{}], "signed"), version: "1" });
    const headersAt = (seconds: number | string, secret = "test-secret-grafana") => ({
      "x-grafana-time": String(seconds),
      "x-grafana-alerting-signature": hmac(secret, `${seconds}:${body}`),
    });

    it("is taken when the signature is over its time and the body", async () => {
      expect((await send(world, "grafana", body, headersAt(now()))).status).toBe(202);
      expect((await send(world, "grafana", body, headersAt(now() - 200))).status).toBe(202);
    });

    it.each<[string, () => Record<string, string>]>([
      ["a second too old", () => headersAt(now() - 301)],
      ["too far ahead", () => headersAt(now() + 900)],
      ["at no time", () => headersAt("now")],
      ["by another secret", () => headersAt(now(), "test-secret-one")],
      ["for another time", () => ({ ...headersAt(now() - 10), "x-grafana-time": String(now()) })],
      [
        "without its time",
        () => ({ "x-grafana-alerting-signature": hmac("test-secret-grafana", body) }),
      ],
      [
        "in Slack's form",
        () => ({
          ...headersAt(now()),
          "x-grafana-alerting-signature": `v0=${hmac("test-secret-grafana", body)}`,
        }),
      ],
    ])("is answered with 401, signed %s", async (_what, headers) => {
      expect((await send(world, "grafana", body, headers())).status).toBe(401);
    });

    it("is answered with 401 when the signature is over another body", async () => {
      expect((await send(world, "grafana", `${body} `, headersAt(now()))).status).toBe(401);
    });
  });

  describe("signed by PagerDuty", () => {
    const body = JSON.stringify(pagerdutyBody());
    const signed = (...secrets: string[]) => ({
      "x-pagerduty-signature": secrets.map((secret) => `v1=${hmac(secret, body)}`).join(","),
    });

    it.each([
      ["the old secret", ["test-secret-old"]],
      ["the new one", ["test-secret-new"]],
      ["one that is unknown here, and the new one", ["test-secret-next", "test-secret-new"]],
    ])("is taken with %s", async (_what, secrets) => {
      expect((await send(world, "pagerduty", body, signed(...secrets))).status).toBe(202);
    });

    it("is answered with 401 when nobody known signed it, or in another way", async () => {
      expect((await send(world, "pagerduty", body, signed("test-secret-next"))).status).toBe(401);
      const bare = { "x-pagerduty-signature": hmac("test-secret-new", body) };
      expect((await send(world, "pagerduty", body, bare)).status).toBe(401);
    });
  });

  it("is handled to the end if its caller hangs up in the middle", async () => {
    const broken = request({
      port: world.processes[0]?.apiPort,
      path: "/alerts/prometheus",
      method: "POST",
      headers: { ...bearer(), "content-length": "5000" },
    });
    broken.on("error", () => undefined);
    broken.write('{"version":');
    await new Promise((resolve) => broken.once("socket", resolve));
    broken.destroy();
    const sent = await send(world, "prometheus", alertmanagerBody([{}], "after"));
    expect(sent.status).toBe(202);
  });

  it("is never logged in full, nor is any secret", () => {
    const log = world.lines.join("");
    expect(log).toContain("alert.taken");
    expect(log).not.toMatch(/CPU above 95%|test-secret/);
  });

  it("is taken with the old or the new secret while a file that holds them is rotated", async () => {
    const body = alertmanagerBody([{}], "rotated");
    const status = async (secret: string) =>
      (await send(world, "by-team", body, bearer(secret))).status;
    expect([await status("test-secret-old"), await status("test-secret-new")]).toEqual([202, 401]);
    await writeFile(secretFile, "test-secret-old\ntest-secret-new\n");
    await until(() => status("test-secret-new")).toBe(202);
    expect(await status("test-secret-old")).toBe(202);
    await writeFile(secretFile, "test-secret-new\n");
    await until(() => status("test-secret-old")).toBe(401);
    expect(await status("test-secret-new")).toBe(202);
  });
});
