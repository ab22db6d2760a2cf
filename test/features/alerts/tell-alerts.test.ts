import { expect, it } from "vitest";
import { createJournal } from "../../../src/core/request/journal.ts";
import { alertsAtHome, alertsInDigests } from "../../../src/features/alerts/tell-alerts.ts";
import { knownVm } from "../../support/known-vm.ts";
import { testRedis } from "../../support/with-redis.ts";

const hour = 3_600_000;
const since = Date.parse("2026-11-20T05:00:00Z");
const onVm = (key: string, vm: string, name = "HighCpu") => ({
  key,
  name,
  label: vm,
  vmId: `vm-${vm}`,
  since,
});
const plain = (text: { value: string }) =>
  text.value.replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1");

it("a channel is told firing and ended alerts, each once, of the VMs that it is about", async () => {
  await using at = await testRedis();
  const { redis, key } = at;
  const asked: (readonly string[])[] = [];
  await createJournal(redis, key).note({ what: "alert", alert: "a-1", source: "am", firing: 1 });
  const part = alertsInDigests({
    redis,
    key,
    alerts: {
      firing: async () => [
        onVm("1", "web-1"),
        onVm("2", "web-1", "HighMemory"),
        onVm("3", "of-others"),
        { ...onVm("4", "nowhere"), vmId: undefined },
      ],
      endedSince: async (ids) => {
        asked.push(ids);
        const ended = { endedAt: since + hour, isEndTold: true };
        return [
          { ...onVm("1", "web-1"), ...ended },
          { ...onVm("5", "web-1", "DiskFull"), ...ended },
        ];
      },
    },
  });
  const told = async (seesAll: boolean) => {
    const { all, counts } = await part.read({
      vms: [knownVm("web-1")],
      seesAll,
      only: async (reading, targetOf) =>
        (await reading).filter((one) => targetOf(one)?.projectId === "p-shop"),
      since: 0,
      now: 0,
    });
    return { lines: all.map(({ lines }) => lines.map(({ text }) => plain(text))), counts };
  };
  const { lines, counts } = await told(false);
  expect(asked).toEqual([["a-1"]]);
  expect(lines).toEqual([
    [
      "🔥 *HighCpu* fires on `web-1` in shop since Nov 20, 5:00 AM UTC.",
      "🔥 *HighMemory* fires on `web-1` in shop since Nov 20, 5:00 AM UTC.",
    ],
    [
      "✅ *DiskFull* on `web-1` in shop ended Nov 20, 6:00 AM UTC; it had fired since Nov 20, 5:00 AM UTC.",
    ],
  ]);
  expect(counts).toBe(", 🔥 1 with an alert firing");
  // A reader who sees everything also gets alerts whose label names no VM.
  expect((await told(true)).lines[0]?.at(-1)).toMatch(/^🔥 \*HighCpu\* fires on nowhere since/);
});

it("the Home tab shows the newest first on the Home tab", async () => {
  const home = alertsAtHome({
    firing: async () => [onVm("1", "web-1"), onVm("2", "web-1", "New")],
  });
  const section = await home({
    vms: [knownVm("web-1")],
    seesAll: false,
    only: async (reading) => reading,
    now: Date.now(),
  });
  expect(section.title).toBe("Alerts");
  expect(section.lines.map(({ vm }) => vm?.name)).toEqual(["web-1", "web-1"]);
  expect(section.lines.map(({ text }) => plain(text).split(" fires")[0])).toEqual([
    "🔥 *New*",
    "🔥 *HighCpu*",
  ]);
});
