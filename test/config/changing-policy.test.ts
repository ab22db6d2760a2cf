import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ChangingPolicy } from "../../src/config/changing-policy.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "gatehouse-policy-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const place = (name = "gatehouse.yml", mayBeMissing = false) => ({
  path: path.join(folder, name),
  shown: "gatehouse.yml",
  mayBeMissing,
  terms: { operations: [], sections: [] },
});

function open(text: string | undefined, mayBeMissing = false): ChangingPolicy {
  if (text !== undefined) write(text);
  const opened = ChangingPolicy.open(place("gatehouse.yml", mayBeMissing));
  if (!(opened instanceof ChangingPolicy)) throw new Error(opened.join());
  return opened;
}

const write = (text: string) => writeFileSync(path.join(folder, "gatehouse.yml"), text);

function takeWhatIs(file: ChangingPolicy): void {
  const read = file.reread();
  if (read?.kind !== "read") throw new Error("there is nothing to take");
  file.take(read.text);
}

describe("a policy file that changes", () => {
  it("counts anew once it is taken: its rules and their digits; reading it alone changes nothing", () => {
    const file = open("access: { operate: [U0OLIVIA] }");
    const { policy, policyVersion } = file.inForce;
    write("access: { operate: [U0AMIR] }");
    const read = file.reread();
    expect(read).toMatchObject({
      kind: "read",
      text: { policy: { access: { operate: ["U0AMIR"] } } },
    });
    expect(file.inForce).toEqual({ policy, policyVersion });
    takeWhatIs(file);
    expect(file.inForce.policy.access.operate).toEqual(["U0AMIR"]);
    expect(file.inForce.policyVersion).not.toBe(policyVersion);
    expect(file.reread()).toBeUndefined();
  });

  it.each([
    ["access: { oprate: [U0AMIR] }", "gatehouse.yml line 1: access.oprate isn't known"],
    ["access: [U0AMIR]", "gatehouse.yml line 1: access must contain"],
    ["", "gatehouse.yml line 1: the file is empty"],
    ["# access: later\n", "the file is empty"],
  ])("keeps the rules before when it can't be used, and says so once: %j", (bad, problem) => {
    const file = open("protect: [vault-1]");
    write(bad);
    const news = file.reread();
    expect(news).toMatchObject({ kind: "kept", problems: [expect.stringContaining(problem)] });
    expect(file.problems).toHaveLength(1);
    expect(file.reread()).toBeUndefined();
    expect(file.inForce.policy.protect).toEqual(["vault-1"]);
    write("protect: [vault-1]");
    expect(file.reread()).toBeUndefined();
    expect(file.problems).toEqual([]);
  });

  it("keeps its rules in force when it is removed: nothing is not a policy", () => {
    const file = open("protect: [vault-1]", true);
    rmSync(path.join(folder, "gatehouse.yml"));
    expect(file.reread()).toEqual({
      kind: "kept",
      problems: ["gatehouse.yml can't be read (ENOENT)"],
    });
    expect(file.inForce.policy.protect).toEqual(["vault-1"]);
  });

  it("may come later where it has the usual name", () => {
    const file = open(undefined, true);
    expect(file.reread()).toBeUndefined();
    write("protect: [vault-1]");
    takeWhatIs(file);
    expect(file.missingAt).toBeUndefined();
    expect(file.inForce.policy.protect).toEqual(["vault-1"]);
    expect(ChangingPolicy.open(place("other.yml"))).toEqual([
      "gatehouse.yml can't be read (ENOENT)",
    ]);
  });

  it("leaves what was set up at the start as it was: timing, and the folder of endorsements", () => {
    const file = open("timing: { httpTimeout: 5s }\nattestation: { endorsements: old }");
    write(
      "timing: { httpTimeout: 9s, approvalExpires: 3m }\nattestation: { endorsements: new, maxSnapshotAge: 1d }",
    );
    takeWhatIs(file);
    const { timing, attestation } = file.inForce.policy;
    expect(timing).toMatchObject({ httpTimeoutMs: 5_000, approvalExpiresMs: 180_000 });
    expect(attestation).toMatchObject({
      endorsements: path.join(folder, "old"),
      maxSnapshotAgeMs: 86_400_000,
    });
    expect(file.asWritten.timing.httpTimeoutMs).toBe(9_000);
  });

  it("can be asked for one content only: any other stays unread, and so does what can't be used", () => {
    const file = open("protect: [vault-1]");
    write("protect: [vault-2]");
    expect(file.reread(({ text }) => text.includes("vault-3"))).toBeUndefined();
    expect(file.reread(({ text }) => text.includes("vault-2"))).toMatchObject({ kind: "read" });
    write("protect: vault-2");
    expect(file.reread(() => true)).toBeUndefined();
    expect(file.problems).toEqual([]);
  });

  it("goes by the name that its rules were adopted under", () => {
    const file = open("protect: [vault-1]");
    const { policyVersion } = file.inForce;
    file.goBy("a-former-name");
    expect(file.inForce.policyVersion).toBe("a-former-name");
    expect(file.current.policyVersion).toBe(policyVersion);
    write("protect: [vault-2]");
    takeWhatIs(file);
    expect(file.inForce.policyVersion).toBe(file.current.policyVersion);
  });

  it("is seen to be replaced when it stands still again, through a link that was swapped too", () => {
    writeFileSync(path.join(folder, "one"), "protect: [vault-1]");
    writeFileSync(path.join(folder, "two"), "protect: [vault-2]");
    symlinkSync("one", path.join(folder, "gatehouse.yml"));
    const file = open(undefined);
    expect(file.isReplaced()).toBe(false);
    symlinkSync("two", path.join(folder, "new"));
    renameSync(path.join(folder, "new"), path.join(folder, "gatehouse.yml"));
    // It may be half written
    expect(file.isReplaced()).toBe(false);
    expect(file.isReplaced()).toBe(true);
    takeWhatIs(file);
    expect(file.isReplaced()).toBe(false);
    expect(file.inForce.policy.protect).toEqual(["vault-2"]);
  });
});
