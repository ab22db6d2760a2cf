import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { json } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { listen } from "../../sandbox/listen.ts";
import { root } from "../structure/sources.ts";
import { startProgram } from "../support/start-program.ts";
import { startWorldForPrograms } from "../support/start-world.ts";
import { until } from "../support/until.ts";

interface Taken {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: { name: string; traceId: string }[] }[];
  }[];
}

/** What takes OTLP over HTTP, as JSON. */
async function startCollector() {
  const spans: { name: string; traceId: string }[] = [];
  const services = new Set<string | undefined>();
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      const { resourceSpans } = body as Taken;
      spans.push(...resourceSpans.flatMap((one) => one.scopeSpans.flatMap((of) => of.spans)));
      for (const { attributes } of resourceSpans.map(({ resource }) => resource))
        services.add(attributes.find(({ key }) => key === "service.name")?.value.stringValue);
      response.end("{}");
    });
  });
  const { url, close } = await listen(server, 0);
  onTestFinished(close);
  return { url, spans, services };
}

/** The file of docs/operate.md, beside the packages that it imports. */
async function instrumentation(): Promise<string> {
  const operate = await readFile(path.join(root, "docs/operate.md"), "utf8");
  const [, block = ""] = /\n## Traces\n[^]*?```js\n([^]*?)```/.exec(operate) ?? [];
  const folder = await mkdtemp(path.join(root, "node_modules/.instrumentation-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "instrumentation.mjs");
  await writeFile(file, block);
  return file;
}

describe("traces", () => {
  it("go where docs/operate.md sends them: a command from its delivery to its answer", async () => {
    const collector = await startCollector();
    await using world = await startWorldForPrograms();
    const env = {
      ...world.env,
      LOG_LEVEL: "info",
      NODE_OPTIONS: `--import=${await instrumentation()}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: "100",
    };
    await using _ = startProgram([], env);
    await world.slack.connected(1);
    await world.olivia.types("ops", "/vm restart web-2");
    await world.olivia.until((all) => JSON.stringify(all).includes("Restarted `web-2`"));
    const traceOf = (name: string) => collector.spans.find((one) => one.name === name)?.traceId;
    await until(() => collector.spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["slack command", "process requests", "vm restart"]),
    );
    expect(new Set(["slack command", "process requests", "vm restart"].map(traceOf)).size).toBe(1);
    expect(collector.services).toEqual(new Set(["gatehouse"]));
  });
});
