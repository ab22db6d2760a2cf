import { describe, expect, it } from "vitest";
import { usualPace } from "../../src/config/policy-schema.ts";
import { alertmanagerBody, send, startAlertWorld } from "../features/alerts/sending.ts";
import { hears, wordsOf } from "./words.ts";

describe("an alert at night", () => {
  it("fires for web-2, is restarted from its message, and ends without buttons that change", async () => {
    await using world = await startAlertWorld({ pace: { editMs: usualPace.editMs } });
    const startsAt = new Date(Date.now() - 20 * 60_000).toISOString();
    expect((await send(world, "prometheus", alertmanagerBody([{ startsAt }]))).status).toBe(202);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    expect(card.text).toBe("🔥 HighCpu on web-2: CPU above 95% for 5 min");
    expect(wordsOf(card)).toMatch(/web-2 in payments is RUNNING as of/);
    expect(wordsOf(card)).toMatch(/\[Show\] \[Metrics\] \[Graph\]\s+\[Restart…\] \[Snapshot\]/);
    await world.olivia.presses("Restart…", { in: card.ts });
    const result = await hears(world.olivia, "ops", /web-2 runs again|RUNNING → RUNNING|Restarted/);
    expect(result.threadTs).toBe(card.ts);
    expect((await world.ended("vm restart")).state).toBe("done");
    await hears(
      world.olivia,
      "ops",
      /🔥[^]*\nRestarted web-2 in \d+ s \(olivia, .*\)\. Still firing, as far as prometheus has told\./,
    );
    const over = alertmanagerBody([
      { status: "resolved", startsAt, endsAt: new Date().toISOString() },
    ]);
    await send(world, "prometheus", over);
    const end = await hears(
      world.vera,
      "ops",
      /^✅ HighCpu on web-2 ended after 2\d min[^;]*; olivia had restarted it\.$/,
    );
    expect(end.threadTs).toBe(card.ts);
    const ended = await hears(
      world.vera,
      "ops",
      /^✅ HighCpu on web-2 ended after 2\d min[^;]*; olivia had restarted it\.\n[^]*Ended/,
    );
    expect(ended.ts).toBe(card.ts);
    expect(wordsOf(ended)).toMatch(/\[Show\] \[Metrics\]/);
    expect(wordsOf(ended)).not.toMatch(/Restart…|Snapshot/);
    expect(world.compute.writes().map(({ path }) => path)).toEqual([
      "/v1/vms/vm-payments-web-2/restart",
    ]);
  });
});
