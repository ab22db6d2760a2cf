import { expect, it } from "vitest";
import { alertsAtHome, alertsInDigests } from "../../../src/features/alerts/tell-alerts.ts";
import { knownVm } from "../../../demo/cards/requests.ts";

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

it("a channel is told firing alerts, each once, of the VMs that it is about", async () => {
  const part = alertsInDigests({
    firing: async () => [
      onVm("1", "web-1"),
      onVm("2", "web-1", "HighMemory"),
      onVm("3", "of-others"),
      { ...onVm("4", "nowhere"), vmId: undefined },
    ],
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
  expect(lines).toEqual([
    [
      "🔥 *HighCpu* has been firing on `web-1` in shop since Nov 20, 5:00 AM UTC.",
      "🔥 *HighMemory* has been firing on `web-1` in shop since Nov 20, 5:00 AM UTC.",
    ],
  ]);
  expect(counts).toBe(", 🔥 1 with an alert firing");
  // A reader who sees everything also gets alerts whose label names no VM.
  expect((await told(true)).lines[0]?.at(-1)).toMatch(
    /^🔥 \*HighCpu\* has been firing on nowhere since/,
  );
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
  expect(section.lines.map(({ text }) => plain(text).split(" has been")[0])).toEqual([
    "🔥 *New*",
    "🔥 *HighCpu*",
  ]);
});
