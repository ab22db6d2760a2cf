import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Compute } from "../../src/compute/compute.ts";
import { createInventory } from "../../src/inventory/create-inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import { fleetService } from "../bench/inventory.ts";
import { longestTurn } from "../support/longest-turn.ts";
import { testRedis } from "../support/with-redis.ts";

const [projects, vmsPerProject] = [5_000, 20];
/** A person's command is acknowledged within some milliseconds whatever else its process does. */
const mostMs = 50;

/** 100,000 VMs, a ninth of them in another status at each refresh. */
function busyFleet(): Compute {
  const fleet = fleetService(projects, vmsPerProject);
  let reads = 0;
  return {
    ...fleet,
    projects: {
      ...fleet.projects,
      async vms(id) {
        // Answers of a service come one by one
        await sleep(20 * Math.random());
        const isChanged = (reads += 1) > projects;
        const vms = (await fleet.projects.vms(id)).map((vm, n) =>
          isChanged && n % 9 === 0 ? { ...vm, status: "ERROR" } : vm,
        );
        // Strings as they come from the network, not as they were put together here
        return JSON.parse(JSON.stringify(vms)) as typeof vms;
      },
    },
  };
}

it("100,000 VMs that are read, written, loaded, and searched never hold up the event loop", async () => {
  await using at = await testRedis();
  const by = { ...at, log: silentLog(), refreshMs: 3_600_000, concurrency: 32 };
  const [writer, reader] = [busyFleet(), fleetService(0, 0)].map((compute) =>
    createInventory({ ...by, compute }),
  );
  if (!writer || !reader) throw new Error("not created");
  const seen: Record<string, number> = {};
  const measure = async (what: string, work: () => Promise<unknown>) => {
    seen[what] = Math.round(await longestTurn(work));
  };
  const search = async (inventory: typeof writer) => {
    await inventory.findVm("web-eu-7o770", { onlyKnown: true });
    await nextTurn();
    await inventory.suggestVms("eu-9");
    await nextTurn();
    await inventory.matchVms("no-such-*");
  };
  const isThere = (status: string, inventory = reader) =>
    expect
      .poll(async () => (await inventory.vms()).some((vm) => vm.status === status), {
        timeout: 20_000,
      })
      .toBe(true);
  await measure("first refresh", () => writer.refresh());
  await measure("search after it", () => search(writer));
  await measure("load by another process", () => isThere("RUNNING"));
  await measure("search after that", () => search(reader));
  await measure("a team's first search", () =>
    search(reader.seenIn(async () => ({ key: "team", sees: ({ id }) => /[0-7]$/.test(id) }))),
  );
  await measure("refresh with changes", () => writer.refresh());
  await measure("taking them over", () => isThere("ERROR"));
  await measure("search after a change", () => search(reader));
  const [vm] = await writer.vms();
  if (!vm) throw new Error("none is known");
  await measure("note of a new VM", () => writer.note({ vm: { ...vm, id: "new", name: "new" } }));
  await measure("search after that note", () => search(writer));
  expect(Object.entries(seen).filter(([, ms]) => ms > mostMs)).toEqual([]);
  expect(await writer.suggestVms("new", 1)).toMatchObject([{ id: "new" }]);
  await Promise.all([writer.close(), reader.close()]);
}, 60_000);
