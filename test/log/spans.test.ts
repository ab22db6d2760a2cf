import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { startExport } from "../../src/log/export-spans.ts";
import { createLog } from "../../src/log/log.ts";
import {
  during,
  originNow,
  placed,
  workOnInteraction,
  workOnRequest,
  workOnRequests,
} from "../../src/log/traces.ts";
import { importsOf, readSources } from "../structure/sources.ts";

const span = { name: "GET /v1/vms/{vm_id}", startMs: 1_000, endMs: 1_250 };

describe("a span", () => {
  it("hangs from what is worked on: from each request that a poll serves, and from nothing without work", () => {
    const requests = ["r-2", "r-3"].map((id) => ({ id, trace: "a".repeat(32) }));
    const works = requests.map(workOnRequest);
    const hung = during(workOnRequests(requests), () => placed(span));
    expect(hung.map(({ trace, parent }) => ({ trace, span: parent }))).toEqual(
      works.flatMap(({ parents }) => parents),
    );
    expect(placed(span)).toEqual([]);
  });

  it("has the same parent in every process: a request keeps where it came from", () => {
    const made = during(workOnInteraction("cmd:1"), originNow);
    expect(made).toEqual(during(workOnInteraction("cmd:1"), originNow));
    expect(made).toMatchObject({
      interaction: "cmd:1",
      trace: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    const { ids } = workOnRequest({ id: "r-2", ...made });
    expect(ids).toEqual({ request: "r-2", interaction: "cmd:1", trace: made.trace });
    expect(originNow()).toEqual({});
  });
});

describe("the exporter", () => {
  it("keeps what a collector can't take now, says so once, and sends it later; secrets stay here", async () => {
    const statuses = [503, 503, 200];
    const bodies: string[] = [];
    const server = createServer((request, response) => {
      void (async () => {
        bodies.push(JSON.stringify(await json(request)));
        response.writeHead(statuses[Math.min(bodies.length, statuses.length) - 1] ?? 500).end();
      })();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const events: string[] = [];
    const write = (line: string) => void events.push((JSON.parse(line) as { event: string }).event);
    const url = new URL(`http://127.0.0.1:${port}/v1/traces`).href;
    const log = createLog({ level: "info", write });
    const spans = startExport({ url, headers: {}, resource: {}, log, everyMs: 5 });
    during(workOnRequest({ id: "r-2" }), () => {
      spans.ended({ ...span, attributes: { why: "password=hunter22", looks: 2, isLast: true } });
      spans.ended({ ...span, failed: "unclear" });
    });
    await expect.poll(() => bodies.length, { timeout: 10_000 }).toBe(3);
    await expect
      .poll(() => events, { timeout: 10_000 })
      .toEqual(["traces.not-sent", "traces.sent-again"]);
    expect(bodies[2]).toBe(bodies[0]);
    expect(bodies[2]).toContain('"startTimeUnixNano":"1000000000","endTimeUnixNano":"1250000000"');
    expect(bodies[2]).toContain('"status":{"code":2,"message":"unclear"}');
    expect(bodies[2]).toContain('{"key":"gatehouse.looks","value":{"intValue":"2"}}');
    expect(bodies[2]).not.toContain("hunter22");
    await spans.close();
    server.close();
  });

  it("is loaded only where traces are wanted", () => {
    const importing = [...readSources(["src"])]
      .filter(([path, text]) => importsOf(path, text).includes("src/log/export-spans.ts"))
      .map(([path, text]) => [path, /^import .*export-spans/m.test(text)]);
    expect(importing).toEqual([["src/start/start.ts", false]]);
  });
});
