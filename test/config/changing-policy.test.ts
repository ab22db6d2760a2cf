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
  operations: [],
});

function open(text: string | undefined, mayBeMissing = false): ChangingPolicy {
  if (text !== undefined) write(text);
  const opened = ChangingPolicy.open(place("gatehouse.yml", mayBeMissing));
  if (!(opened instanceof ChangingPolicy)) throw new Error(opened.join());
  return opened;
}

const write = (text: string) => writeFileSync(path.join(folder, "gatehouse.yml"), text);

describe("a policy file that changes", () => {
  it("counts anew once it is read: its rules, its version, and the same object until then", () => {
    const file = open("access: { operate: [U0OLIVIA] }");
    const { policy, policyVersion } = file.inForce;
    write("access: { operate: [U0AMIR] }");
    expect(file.inForce).toEqual({ policy, policyVersion });
    expect(file.reread()).toMatchObject({
      is: "changed",
      before: { policyVersion, policy: { access: { operate: ["U0OLIVIA"] } } },
      after: { policy: { access: { operate: ["U0AMIR"] } } },
    });
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
    expect(news).toMatchObject({ is: "kept", problems: [expect.stringContaining(problem)] });
    expect(file.problems).toHaveLength(1);
    expect(file.reread()).toBeUndefined();
    expect(file.inForce.policy.protect).toEqual(["vault-1"]);
    write("protect: [vault-1]");
    expect(file.reread()).toBeUndefined();
    expect(file.problems).toEqual([]);
  });

  it("that is removed keeps its rules: nothing is not a policy", () => {
    const file = open("protect: [vault-1]", true);
    rmSync(path.join(folder, "gatehouse.yml"));
    expect(file.reread()).toEqual({
      is: "kept",
      problems: ["gatehouse.yml can't be read (ENOENT)"],
    });
    expect(file.inForce.policy.protect).toEqual(["vault-1"]);
  });

  it("may come later where it has the usual name", () => {
    const file = open(undefined, true);
    expect(file.reread()).toBeUndefined();
    write("protect: [vault-1]");
    expect(file.reread()).toMatchObject({ is: "changed" });
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
    file.reread();
    const { timing, attestation } = file.inForce.policy;
    expect(timing).toMatchObject({ httpTimeoutMs: 5_000, approvalExpiresMs: 180_000 });
    expect(attestation).toMatchObject({
      endorsements: path.join(folder, "old"),
      maxSnapshotAgeMs: 86_400_000,
    });
    expect(file.asWritten.timing.httpTimeoutMs).toBe(9_000);
  });

  it("can be asked for one version only: any other stays unread", () => {
    const file = open("protect: [vault-1]");
    const { policyVersion: first } = file.inForce;
    write("protect: [vault-2]");
    const wanted = file.parse("protect: [vault-2]")?.policyVersion ?? "";
    expect(file.reread({ onlyVersion: first })).toBeUndefined();
    expect(file.inForce.policyVersion).toBe(first);
    expect(file.reread({ onlyVersion: wanted })).toMatchObject({ is: "changed" });
    expect(file.inForce.policyVersion).toBe(wanted);
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
    file.reread();
    expect(file.isReplaced()).toBe(false);
    expect(file.inForce.policy.protect).toEqual(["vault-2"]);
  });
});
