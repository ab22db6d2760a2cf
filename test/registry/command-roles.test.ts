import { describe, expect, it } from "vitest";
import { commands as commandsOfCore } from "../../src/commands/index.ts";
import { commands } from "../../src/features/index.ts";
import {
  type CommandRole,
  commandsWithRole,
  commandWithRole,
} from "../../src/registry/command-roles.ts";

const sharedRoles: readonly CommandRole[] = ["everyday", "helps-in-trouble"];

describe("the role of a command", () => {
  it("belongs to one command, unless several share it, because a finder takes the first", () => {
    const singleRoles = commands.flatMap(({ roles = [] }) =>
      roles.filter((role) => !sharedRoles.includes(role)),
    );
    expect(singleRoles).toEqual([...new Set(singleRoles)]);
  });

  it("is filled without any feature where it shows a VM or a request", () => {
    for (const role of ["shows-vm", "shows-request"] as const)
      expect([role, commandsWithRole(commandsOfCore, role).length]).toEqual([role, 1]);
  });
});

describe("the finder of commands by role", () => {
  const list = { name: "list", roles: ["everyday"] } as const;
  const help = { name: "help", roles: ["help", "everyday"] } as const;
  const others = [{ name: "start", roles: [] }, list, help] as const;

  it("returns the first, or all in their order", () => {
    expect(commandWithRole(others, "everyday")).toBe(list);
    expect(commandsWithRole(others, "everyday")).toEqual([list, help]);
    expect(commandWithRole(others, "help")).toBe(help);
  });

  it("returns nothing where no command has the role, as in a build without its feature", () => {
    expect(commandWithRole(others, "ends-freeze")).toBeUndefined();
    expect(commandsWithRole(others, "ends-freeze")).toEqual([]);
  });
});
