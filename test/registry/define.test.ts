import { describe, expect, it } from "vitest";
import { commands } from "../support/commands.ts";
import { commandsWithRole } from "../../src/registry/command-roles.ts";
import {
  argumentsOf,
  type Command,
  type CreateCommand,
  dottedName,
  isChange,
  type ProjectCommand,
  type VmCommand,
} from "../../src/registry/define.ts";

const namesOf = (is: (command: Command) => boolean) => commands.filter(is).map(({ name }) => name);
const onVms = (is: (command: VmCommand) => boolean) =>
  namesOf((command) => isChange(command) && command.on === "vm" && is(command));

/** `true` where an object can't be a `T` without `Key`. The compiler is the test: another value doesn't compile. */
type Needs<T, Key extends keyof T> = object extends Pick<T, Key> ? false : true;

describe("the definition of a changing command", () => {
  it("doesn't compile without saying whether `protect` covers it, and a VM's whether it is attested", () => {
    const needs: [
      Needs<VmCommand, "protect">,
      Needs<ProjectCommand, "protect">,
      Needs<CreateCommand, "protect">,
      Needs<VmCommand, "attestAfter">,
      Needs<VmCommand, "offeredIn">,
    ] = [true, true, true, true, false];
    expect(needs).toHaveLength(5);
  });
});

describe("the arguments of a command", () => {
  it("are read from its schema once, because each answer asks for those of many commands", () => {
    for (const command of commands) expect(argumentsOf(command)).toBe(argumentsOf(command));
  });
});

/** Other files act on these fields of a command, so changing one changes what is promised. */
describe("what is special about some commands", () => {
  it("is that what a result offers next asks where it interrupts", () => {
    const offered = commands.filter(isChange).flatMap(({ next = [] }) => next);
    expect(offered.map((one) => one.command)).toContain("vm.stop");
    for (const { label, command: dotted, interrupts = false } of offered) {
      const next = commands.find((one) => dottedName(one) === dotted);
      expect([dotted, interrupts]).toEqual([dotted, next?.class === "disrupt"]);
      if (interrupts) expect(next).toMatchObject({ say: { verb: label } });
    }
  });

  it("is that `protect` keeps those from happening that lose data, capacity or the protection itself", () => {
    const kept = namesOf((command) => isChange(command) && command.protect);
    const lossy = ["vm stop", "vm resize", "vm restore", "project update", "project delete"];
    expect(kept).toEqual(expect.arrayContaining(lossy));
    for (const harmless of ["vm start", "vm restart", "vm snapshot"])
      expect(kept).not.toContain(harmless);
  });

  it("is that the VM runs something anew, and is attested", () => {
    const attested = onVms(({ attestAfter }) => attestAfter);
    const anew = ["vm start", "vm restart", "vm resize", "vm restore"];
    expect(attested).toEqual(expect.arrayContaining(anew));
  });

  it("is that one takes snapshots, one restores them, and one is help", () => {
    expect(onVms(({ snapshot }) => snapshot === "takes")).toEqual(["vm snapshot"]);
    expect(onVms(({ snapshot }) => snapshot === "restores")).toEqual(["vm restore"]);
    expect(commandsWithRole(commands, "help").map(({ name }) => name)).toEqual(["gatehouse help"]);
  });
});
