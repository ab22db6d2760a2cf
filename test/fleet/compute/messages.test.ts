import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import type { Storm } from "../../../sandbox/compute/weather.ts";
import { answering, clientOf, failureOf, key, says, logTo } from "./answering.ts";

describe("the service's own words", () => {
  const shapes: [what: string, body: string, type: string, words: string | undefined][] = [
    ["{error}", '{"error": "quota exceeded"}', "application/json", "quota exceeded"],
    [
      "{error: {message}}",
      '{"error": {"code": 7, "message": "quota exceeded"}}',
      "application/json",
      "quota exceeded",
    ],
    [
      "{message}",
      '{"status": "error", "message": "quota exceeded"}',
      "application/json",
      "quota exceeded",
    ],
    ["{detail}", '{"detail": "quota exceeded"}', "application/json", "quota exceeded"],
    [
      "{detail: […]}",
      '{"detail": [{"loc": ["body"], "msg": "too many"}]}',
      "application/json",
      "too many",
    ],
    ["{errors: [text]}", '{"errors": ["one", "two"]}', "application/json", "one; two"],
    [
      "{errors: [{field}]}",
      '{"errors": [{"field": "cpu", "message": "too many"}]}',
      "application/json",
      "cpu: too many",
    ],
    [
      "{errors: {field: []}}",
      '{"errors": {"cpu": ["too many"]}}',
      "application/json",
      "cpu: too many",
    ],
    [
      "problem+json",
      '{"type": "about:blank", "title": "No", "detail": "quota exceeded"}',
      "application/problem+json",
      "quota exceeded",
    ],
    ["problem+json without detail", '{"title": "Quota"}', "application/problem+json", "Quota"],
    ["a JSON text", '"quota exceeded"', "application/json", "quota exceeded"],
    ["plain text", "quota\nexceeded", "text/plain; charset=utf-8", "quota exceeded"],
    ["HTML", "<html><body>nginx</body></html>", "text/html", undefined],
    ["HTML that says it is text", "<!DOCTYPE html><p>nginx", "text/plain", undefined],
    ["HTML in JSON", '{"message": "<h1>nginx</h1>"}', "application/json", undefined],
    ["nothing", "", "text/plain", undefined],
    ["broken JSON", '{"error": "quo', "application/json", undefined],
    ["numbers", '{"error": 17}', "application/json", undefined],
    ["a long text", "a".repeat(1000), "text/plain", `${"a".repeat(299)}…`],
    [
      "what deceives the eye",
      '{"message": "ok\\u202e\\u200bko\\u0007"}',
      "application/json",
      "okko",
    ],
    [
      "deep nesting",
      `${'{"error":'.repeat(500)}"x"${"}".repeat(500)}`,
      "application/json",
      undefined,
    ],
  ];

  it.each(shapes)("are found in %s", async (_, body, type, words) => {
    await using server = await answering((__, response) =>
      response.writeHead(422, { "content-type": type }).end(body),
    );
    await using compute = clientOf(server.url);
    expect((await failureOf(compute.vms.restart("vm-1"))).serviceMessage).toBe(words);
  });

  it("are left out when the refusal's body is endless, and it stays a refusal", async () => {
    await using sandbox = await startSandboxCompute();
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    sandbox.weather({ status: 422, hugeBytes: 50_000_000 });
    expect(await failureOf(compute.vms.restart("vm-1"))).toMatchObject({
      kind: "refused",
      serviceMessage: undefined,
    });
  });
});

describe("the key", () => {
  const kinds: Storm[] = [
    ...[301, 400, 401, 403, 404, 405, 408, 409, 422, 429, 500, 503].map((status) => ({ status })),
    { lost: "before" },
    { hang: "before" },
    { cut: "json" },
    { cut: "length" },
    { hugeBytes: 2_000_000 },
    { without: ["id"] },
  ];

  it.each(kinds)("is in no error, event or report: %o", async (weather) => {
    await using sandbox = await startSandboxCompute({ apiKey: key });
    const told: unknown[] = [];
    await using compute = clientOf(sandbox.url, {
      timeoutMs: 100,
      log: logTo((line) => told.push(line)),
      onCall: (call) => told.push(call),
    });
    sandbox.weather({ ...weather, message: `bad key ${key}, Authorization: Bearer ${key}` });
    for (const call of [
      () => compute.vms.get("vm-payments-web-1"),
      () => compute.vms.restart("vm-payments-web-1"),
    ]) {
      const ended = await call().catch((error: unknown) => error);
      told.push(ended);
    }
    const everything = told
      .map((each) => inspect(each, { depth: 20, showHidden: true }))
      .join("\n");
    expect(everything).not.toContain(key);
    expect(everything).not.toContain("127.0.0.1");
  });

  it("is taken out of what the service says", async () => {
    await using server = await answering(
      says({ message: `the key ${key} is revoked; send Bearer abc123` }, 401),
    );
    await using compute = clientOf(server.url);
    expect((await failureOf(compute.vms.get("vm-1"))).serviceMessage).toBe(
      "the key … is revoked; send Bearer …",
    );
  });
});
