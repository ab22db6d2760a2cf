import { describe, expect, it } from "vitest";
import { mayWith, type Place, teamLists } from "../../../scripts/rights-table.ts";
import type { ReadContext } from "../../../src/commands/context.ts";
import { type Command, isChange, targetArgument } from "../../../src/registry/define.ts";
import { permissionMatrix, roles } from "./permission-matrix.ts";
import { policyOf } from "./sample.ts";

export const nobodyListed = `access: { view: [], operate: [], approve: [], administer: [], breakGlass: [] }`;

const rowsOf = (table: string) =>
  new Map(
    table
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => {
        const [name = "", commandClass = "", approvals = "", ...may] = line
          .trim()
          .split(/\s{2,}|(?<=\s)(?=yes|-)/);
        return [
          name,
          {
            commandClass,
            approvals: Number(approvals),
            may: may.map((one) => one.trim() === "yes"),
          },
        ] as const;
      }),
  );

const places: readonly Place[] = ["its team", "another team", "access"];

/**
 * Compares who may run these commands with a table that has a row for each command and a column for
 * each kind of person.
 */
export function judgeMatrix(table: string, commands: readonly Command<ReadContext>[]): void {
  const rows = rowsOf(table);
  const each = commands.map((command) => [command.name, command] as const);
  const nobody = policyOf(nobodyListed);

  describe("who may run what", () => {
    it.each(each)("is written down here for %s", (name, command) => {
      const row = rows.get(name);
      if (!row) throw new Error(`${name} has no row in the matrix: decide who may run it`);
      const [found] = permissionMatrix(nobody, [command]);
      expect(found).toMatchObject({ class: row.commandClass, approvals: row.approvals });
      expect(Object.fromEntries(roles.map((role) => [role, found?.may[role]]))).toEqual(
        Object.fromEntries(roles.map((role, index) => [role, row.may[index]])),
      );
    });

    it("has no row for a command that isn't there", () => {
      const names = new Set<string>(commands.map(({ name }) => name));
      expect([...rows.keys()].filter((name) => !names.has(name))).toEqual([]);
    });
  });

  /**
   * Compares the same for teams, with somebody who is in a single list of a single place, on a VM
   * or project of a team. A team's own lists give the rights that those of `access` give without
   * teams. No other list gives a right, except `access.administer`.
   */
  describe("who may run what on a target of a team", () => {
    it.each(each)("is decided by that team for %s", (name, command) => {
      const row = rows.get(name);
      const isNamed = (role: string) => row?.may[roles.findIndex((one) => one === role)] === true;
      const hasTarget =
        targetArgument(command) !== undefined ||
        (isChange(command) && command.on === "new-project");
      for (const place of places)
        for (const list of teamLists) {
          // A read that decides what a channel is told needs a person who sees all of that. The
          // channel is the team's own one, or no team's for `access`.
          const speaks = command.kind === "read" && command.speaksFor !== undefined;
          const isElsewhere = hasTarget || (speaks && place === "another team");
          const isTheirs = place === "its team" || !isElsewhere;
          const expectedHere = isTheirs && isNamed(list);
          expect(mayWith(command, place, list), `${list} of ${place}`).toBe(expectedHere);
        }
      expect(mayWith(command, "access", "administer")).toBe(isNamed("administer"));
    });
  });
}
