import { describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { parseCommand } from "../../../src/registry/parse.ts";
import { mayNameSeveral, withoutRolling } from "../../../src/registry/invocation.ts";
import { rollingOf } from "../../../src/features/rollouts/rolling.ts";
import { csv } from "../../../src/messages/csv.ts";

function read(words: string) {
  const parsed = parseCommand(words, commands);
  return "refusal" in parsed ? parsed.refusal.text : parsed.input;
}

describe("how to go over many", () => {
  it("is understood by start, stop, restart, resize and snapshot", () => {
    const rollable = commands.filter(mayNameSeveral).map(({ name }) => name);
    expect(rollable).toEqual(
      expect.arrayContaining(["vm start", "vm stop", "vm restart", "vm resize", "vm snapshot"]),
    );
    expect(rollable).not.toContain("vm restore");
    expect(
      read("vm restart web-* db-1 --max-unavailable 25% --canary --stop-on-failure 2"),
    ).toEqual({
      vms: ["web-*", "db-1"],
      maxUnavailable: "25%",
      canary: true,
      stopOnFailure: "2",
    });
    expect(read("vm snapshot web-1,web-2 nightly --canary")).toEqual({
      vm: "web-1,web-2",
      name: "nightly",
      canary: true,
    });
  });

  it.each(["0", "0%", "101%", "-1", "1e3", "12.5%", "many"])(
    "--max-unavailable %s is refused",
    (value) => {
      expect(read(`vm restart web-* --max-unavailable "${value}"`)).toBe(
        "--max-unavailable must be a whole number from 1, or a percentage like 10%.",
      );
    },
  );

  it("are one at a time for commands that interrupt, and all at once for others", () => {
    const [disrupt, change] = [{ class: "disrupt" }, { class: "change" }] as const;
    expect(rollingOf(disrupt, {}, 4)).toEqual({
      maxUnavailable: 1,
      canary: false,
      stopOnFailure: 1,
    });
    expect(rollingOf(disrupt, {}, 2).maxUnavailable).toBe(1);
    expect(rollingOf(change, {}, 40).maxUnavailable).toBe(40);
    expect(rollingOf(disrupt, { maxUnavailable: "10%" }, 25).maxUnavailable).toBe(2);
    expect(rollingOf(disrupt, { maxUnavailable: "10%" }, 5).maxUnavailable).toBe(1);
    expect(rollingOf(disrupt, { maxUnavailable: "9", stopOnFailure: "3" }, 5)).toMatchObject({
      maxUnavailable: 5,
      stopOnFailure: 3,
    });
  });

  it("are not part of the request for each VM", () => {
    const restart = commands.find(({ name }) => name === "vm restart");
    expect(
      restart &&
        withoutRolling(restart, {
          vms: ["a"],
          canary: true,
          maxUnavailable: "2",
          stopOnFailure: "1",
        }),
    ).toEqual({ vms: ["a"] });
  });
});

describe("a list as a file", () => {
  it("quotes every cell, and holds no formula whatever a VM is called and wherever it is opened", () => {
    expect(
      csv([
        ["VM", "Why"],
        ["web-1", 'said "no", twice'],
        ["=HYPERLINK(1)", "-1"],
      ]),
    ).toBe(`"VM","Why"\n"web-1","said ""no"", twice"\n"'=HYPERLINK(1)","'-1"\n`);
    for (const sign of ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
      for (const before of ["", " ", '"', "'", ' "'])
        expect(csv([[`${before}${sign}1`]])).toMatch(/^"'/);
    expect(csv([["\t=1", "\rcmd", "a -b", "=-1"]])).toBe(`"'\t'=1","'\rcmd","a -b","'=-1"\n`);
    // Where a list is separated by semicolons, tabs or bars, the second cell's quotes don't count
    expect(csv([["web", "a;=1+1|@x\ty; -2"]])).toBe(`"web","a;'=1+1|'@x\ty;' -2"\n`);
  });
});
