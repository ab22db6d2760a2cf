import { describe, expect, it } from "vitest";
import { attest } from "../../../src/commands/vm/attest.ts";
import { metrics } from "../../../src/commands/vm/metrics.ts";
import type { Answer, Command, ReadContext } from "../../../src/registry/define.ts";
import { parseCommand } from "../../../src/registry/parse.ts";
import { startSandboxCompute } from "../../../src/sandbox/compute/start-sandbox-compute.ts";
import { clientOf } from "../../compute/answering.ts";

const vmId = "vm-payments-web-1";

/** Runs words like a person's, against the sandbox service. */
async function startService(pins: ReadContext["pins"] = []) {
  const sandbox = await startSandboxCompute({ transitionMs: 5 });
  const compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
  const context = {
    compute,
    pins,
    now: Date.now,
    resolve: async () => ({
      kind: "vm",
      id: vmId,
      name: "web-1",
      projectId: "prj-payments",
      projectName: "payments",
      status: "RUNNING",
    }),
  } satisfies Partial<ReadContext>;
  return {
    sandbox,
    async types(words: string): Promise<Answer> {
      const commands: Command[] = [attest, metrics];
      const parsed = parseCommand(words, commands);
      if ("refusal" in parsed) throw new Error(parsed.refusal.text);
      if (parsed.command.kind !== "read") throw new Error("not a read");
      const answered = await parsed.command.answer(parsed.args as never, context as never);
      return "message" in answered ? answered : { message: answered };
    },
    async [Symbol.asyncDispose]() {
      await compute.close();
      await sandbox.close();
    },
  };
}

describe("/vm metrics", () => {
  it("answers with both lines as a chart, the disk as a number, and all of it in words", async () => {
    await using service = await startService();
    const answer = await service.types("vm metrics web-1");
    expect(service.sandbox.calls().at(-1)?.path).toBe(`/v1/vms/${vmId}/metrics?period=1h`);
    expect(answer.message.text).toMatch(
      /^CPU and memory of web-1, last 1h\. Disk: [\d.]+\. CPU: minimum/,
    );
    expect(answer.chart?.altText).toMatch(/^CPU: minimum .* Memory: minimum .* Disk: [\d.]+\.$/);
    const chart = answer.chart?.chart;
    expect(chart).toMatchObject({ kind: "lines", title: "web-1", period: "last 1h" });
    expect(chart?.kind === "lines" && chart.series.map(({ points }) => points.length)).toEqual([
      60, 60,
    ]);
  });

  it("hands any period on, as it was written", async () => {
    await using service = await startService();
    await service.types("vm metrics web-1 'last full moon'");
    const path = service.sandbox.calls().at(-1)?.path ?? "";
    expect(new URLSearchParams(path.split("?")[1]).get("period")).toBe("last full moon");
    await expect(service.types(`vm metrics web-1 ${"x".repeat(41)}`)).rejects.toThrow("at most 40");
  });

  it("says it in a sentence when there are no samples", async () => {
    await using service = await startService();
    service.sandbox.edit.setStatus({ vm: vmId, status: "STOPPED" });
    const answer = await service.types("vm metrics web-1");
    expect(answer.chart).toBeUndefined();
    expect(answer.message.text).toContain("web-1 has no samples of CPU or memory for 1h");
  });
});

describe("/vm attest", () => {
  it("verifies, fails on drift, and says when it can't know", async () => {
    await using service = await startService();
    expect((await service.types("vm attest web-1")).message.text).toMatch(/^Verified: web-1\./);
    service.sandbox.edit.setMeasurement({ vm: vmId, reportOnly: true });
    const drifted = await service.types("vm attest web-1");
    expect(drifted.message.text).toMatch(
      /^Failed: web-1\. The report's measurement is not the VM's\./,
    );
    expect(JSON.stringify(drifted.message.blocks)).toContain("bytes differ");
    service.sandbox.edit.setStatus({ vm: vmId, status: "STOPPED" });
    expect((await service.types("vm attest web-1")).message.text).toMatch(
      /^Could not verify: web-1\. The service gave no report \(409\)/,
    );
  });

  it("compares with the pins of policy", async () => {
    await using service = await startService([
      { targets: ["payments/*"], measurements: ["00".repeat(32)] },
    ]);
    expect((await service.types("vm attest web-1")).message.text).toMatch(
      /^Failed: web-1\. Its measurement is none of the pinned ones\./,
    );
  });

  it("gives the raw report as a file", async () => {
    await using service = await startService();
    const shown = JSON.stringify((await service.types("vm attest web-1")).message.blocks);
    expect(shown).toContain(JSON.stringify(JSON.stringify({ vm: vmId, raw: true })).slice(1, -1));
    const { file, message } = await service.types("vm attest web-1 --raw");
    expect(message.text).toBe("The raw report of web-1");
    expect(file?.name).toMatch(/^attestation-web-1-.*\.json$/);
    expect(JSON.parse(file?.content ?? "")).toMatchObject({
      vm: { id: vmId },
      report: { verified: true },
    });
    service.sandbox.edit.setStatus({ vm: vmId, status: "STOPPED" });
    await expect(service.types("vm attest web-1 --raw")).rejects.toThrow("gave no report of web-1");
  });
});
