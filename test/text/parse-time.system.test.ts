import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { tenUtc, timeForms } from "./time-forms.ts";

const root = join(import.meta.dirname, "../..");

/** Everything that reads a time of the service or of a file, in a process of its own zone. */
const program = `
  import { parseTime } from "./src/text/parse-time.ts";
  import { parseRetryAfter } from "./src/fleet/compute/retry.ts";
  import { pointsOf } from "./src/fleet/charts/chart.ts";
  import { timeField } from "./src/commands/vm/show.ts";
  import { vmOrders } from "./src/commands/vm/list.ts";
  import { vmSchema, metricsSchema, attestationSchema, consoleSchema } from "./src/fleet/compute/compute.ts";
  import { exactTime, timeOf } from "./src/verifier/der.ts";
  import { appraisalRule } from "./src/config/policy-schema.ts";
  const bare = "2026-11-20T10:00:00";
  const now = Date.parse("2026-11-20T09:59:00Z");
  const vm = { id: "v", project_id: "p", name: "n", status: "RUNNING" };
  const rule = appraisalRule.parse({ accept: [{ status: "OutOfDate", until: "2026-11-20" }] });
  console.log(JSON.stringify([
    ${JSON.stringify(timeForms.map(([text]) => text))}.map((text) => parseTime(text)),
    parseRetryAfter("Fri Nov 20 10:00:00 2026", now),
    parseRetryAfter("Fri, 20 Nov 2026 10:00:00 GMT", now),
    pointsOf([{ timestamp: bare, value: 1 }]),
    timeField("Created", bare),
    vmOrders.newest({ ...vm, createdAt: bare }, { ...vm, createdAt: "2026-11-20T11:00:00+01:00" }),
    vmSchema.parse({ ...vm, created_at: bare, updated_at: bare }),
    metricsSchema.parse({ cpu_usage: [{ timestamp: bare, value: 1 }] }),
    attestationSchema.parse({ timestamp: bare }),
    consoleSchema.parse({ url: "wss://x.invalid/", expires_at: bare }),
    exactTime(bare + "Z"), exactTime(bare) ?? null,
    timeOf({ tag: 0x17, content: Buffer.from("261120100000Z") }),
    rule.policy.statuses,
  ]));`;

describe("every place that reads a time", () => {
  const run = async (zone: string): Promise<unknown> => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module-typescript", "--eval", program],
      { cwd: root, env: { ...process.env, TZ: zone, NODE_OPTIONS: "" } },
    );
    return JSON.parse(stdout);
  };

  it("reads the same in each zone of the machine", async () => {
    const utc = await run("UTC");
    expect(utc).toMatchObject([
      timeForms.map(([, at]) => at),
      60_000,
      60_000,
      [{ at: tenUtc, value: 1 }],
      ["Created", { value: expect.stringContaining("1795168800") }],
      0,
      { createdAt: "2026-11-20T10:00:00Z", updatedAt: "2026-11-20T10:00:00Z" },
      { cpuUsage: [{ timestamp: "2026-11-20T10:00:00Z" }] },
      { timestamp: "2026-11-20T10:00:00Z" },
      { expiresAt: "2026-11-20T10:00:00Z" },
      tenUtc,
      null,
      tenUtc,
      [{ until: Date.parse("2026-11-20T23:59:59Z") }],
    ]);
    expect(await run("America/New_York")).toEqual(utc);
    expect(await run("Asia/Tokyo")).toEqual(utc);
  });
});
