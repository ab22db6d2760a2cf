import { describe, expect, it } from "vitest";
import { examplesHere } from "../../src/commands/examples.ts";
import { commands } from "../../src/features/index.ts";
import { UserError } from "../../src/errors.ts";
import type { Inventory } from "../../src/fleet/inventory/inventory.ts";
import { targetArgument } from "../../src/registry/define.ts";
import { targetWords } from "../../src/registry/invocation.ts";
import { parseCommand } from "../../src/registry/parse.ts";
import { resolveTarget } from "../../src/core/submit/resolve-targets.ts";
import { command as commandOf, usual } from "../core/permit/sample.ts";
import { startReading } from "./reading.ts";

describe("the examples in help", () => {
  it("name what is there, exactly, in a state in which it works, and nothing protected", async () => {
    await using at = await startReading();
    const policy = { ...usual, protect: ["db-*", "web-2"] };
    const exampleOf = await examplesHere({ commands, inventory: at.inventory, policy });
    const said = Object.fromEntries(commands.map((one) => [one.name, exampleOf(one)]));
    const { asking } = at.context;
    for (const [name, example] of Object.entries(said)) {
      const parsed = parseCommand(example.slice(1), commands);
      if ("refusal" in parsed) throw new Error(`${example}: ${parsed.refusal.text}`);
      expect(parsed.command.name).toBe(name);
      const kind = targetArgument(parsed.command)?.target ?? "vm";
      for (const words of targetWords(parsed))
        await resolveTarget(asking, kind, words, at.inventory);
    }
    expect(said).toMatchObject({
      "vm start": "/vm start gpu-1",
      "vm stop": "/vm stop payments/web-1",
      "vm restore": "/vm restore payments/web-1",
      "vm resize": "/vm resize payments/web-1 --cpu 4 --memory 8",
      "gatehouse can-i": "/gatehouse can-i vm stop payments/web-1",
      "gatehouse help": "/gatehouse help vm restart",
      "gatehouse subscribe": "/gatehouse subscribe ml/* trouble,drift,changes",
      "gatehouse unsubscribe": "/gatehouse unsubscribe ml/*",
    });
    expect(said["project delete"]).not.toMatch(/payments|vault/);
  });

  it("are found without reading all of 20,000 VMs", async () => {
    let read = 0;
    const vms = Array.from({ length: 20_000 }, (_, n) => ({
      id: `vm-${n}`,
      name: `web-${n}`,
      projectId: `p-${n % 1000}`,
      status: n % 2 === 0 ? "RUNNING" : "STOPPED",
      get projectName() {
        read += 1;
        return `team-${n % 1000}`;
      },
    }));
    const inventory = { vms: async () => vms, projects: async () => [] };
    const exampleOf = await examplesHere({
      commands,
      inventory: inventory as unknown as Inventory,
      policy: { ...usual, protect: ["*"] },
    });
    for (const command of commands) exampleOf(command);
    expect(exampleOf(commandOf("vm restart"))).toBe("/vm restart web-0");
    expect(read).toBeLessThan(50 * commands.length);
  });

  it("stay as they are before the inventory is there: help always works", async () => {
    const unread = async () => Promise.reject(new UserError("The VMs aren't known yet."));
    const inventory = { vms: unread, projects: unread } as unknown as Inventory;
    const exampleOf = await examplesHere({ commands, inventory, policy: usual });
    for (const command of commands) expect(exampleOf(command)).toBe(command.example);
  });

  it("stay as they are where nothing is known", async () => {
    await using at = await startReading({ world: "empty" });
    const exampleOf = await examplesHere({ commands, inventory: at.inventory, policy: usual });
    for (const command of commands) expect(exampleOf(command)).toBe(command.example);
  });
});
