import { describe, expect, it } from "vitest";
import {
  arePolicyRulesInForce,
  readStoredPolicy,
  storedPolicyKey,
} from "../../src/audit/stored-policy.ts";
import { tellRecord } from "../../src/core/cards/tell-record.ts";
import { adoptPolicy, claimOf, isInForce, versionProblem } from "../../src/operate/adopt-policy.ts";
import { auditOf } from "../core/asking.ts";
import { adoptText, inForce, policyTextOf } from "../support/policy-text.ts";
import { readPending } from "../../src/redis/pending.ts";
import { testRedis } from "../support/with-redis.ts";

const free = "protect: [vault-1]";
const strict = "protect: [vault-1, db-1]";
/** The same rules, and something else. */
const elsewhere = `${free}\naudit: { channel: C03AUDIT }`;
const numbered = (version: number, text: string) => `version: ${version}\n${text}`;
const claim = (own: string, current: string | undefined) =>
  claimOf(policyTextOf(own), inForce(current));
const mayAct = (own: string, current: string) => isInForce(policyTextOf(own), inForce(current));

describe("a policy file that is loaded", () => {
  it.each([
    ["is the first one", free, undefined, "replaces"],
    ["is the first one that has a version", numbered(7, free), undefined, "replaces"],
    ["has other rules, and none has a version", strict, free, "replaces"],
    ["says something else, and none has a version", elsewhere, free, "replaces"],
    ["says the same with a comment", `# as before\n${free}`, free, "same"],
    ["has a higher version", numbered(13, strict), numbered(12, free), "replaces"],
    ["has a higher version, and says the same", numbered(13, free), numbered(12, free), "replaces"],
    ["has a version, where none had", numbered(1, strict), free, "replaces"],
    ["has a lower version", numbered(11, strict), numbered(12, free), "refused"],
    [
      "has a lower version, and the same rules",
      numbered(11, elsewhere),
      numbered(12, free),
      "refused",
    ],
    ["has a lower version, and says the same", numbered(11, free), numbered(12, free), "same"],
    ["has the same version and other rules", numbered(12, strict), numbered(12, free), "refused"],
    [
      "has the same version and says something else",
      numbered(12, elsewhere),
      numbered(12, free),
      "refused",
    ],
    ["has the same version, and says the same", numbered(12, free), numbered(12, free), "same"],
    ["has no version, where one has", strict, numbered(1, free), "refused"],
  ])("counts, or doesn't, when it %s", (_, own, current, wanted) => {
    expect(claim(own, current)).toBe(wanted);
  });

  it("says why it stays out, and what it needs", () => {
    const why = (version?: number) => versionProblem({ version }, { version: 12 }, "gatehouse.yml");
    expect(why(11)).toBe("gatehouse.yml has version 11 and needs one above 12, which is in force");
    expect(why()).toBe("gatehouse.yml has no version and needs one above 12, which is in force");
    expect(why(12)).toBe(
      "gatehouse.yml has version 12, which is in force with another content, and needs a higher one",
    );
    expect(why(13)).toBeUndefined();
  });
});

describe("a process whose file isn't the one in force", () => {
  it.each([
    [
      "acts by the same rules under a lower version",
      numbered(11, elsewhere),
      numbered(12, free),
      true,
    ],
    ["acts by the same rules, where none has a version", elsewhere, free, true],
    ["changes nothing by other rules", strict, free, false],
    [
      "changes nothing by other rules of a lower version",
      numbered(11, strict),
      numbered(12, free),
      false,
    ],
    [
      "changes nothing by other services",
      `${free}\nservices: {}`,
      `${free}\nservices: { ci: { tokens: ["sha256:${"a".repeat(64)}"], view: ["*"] } }`,
      false,
    ],
    [
      "changes nothing where its version has another content",
      numbered(12, elsewhere),
      numbered(12, free),
      false,
    ],
  ])("%s", (_, own, current, wanted) => {
    expect(mayAct(own, current)).toBe(wanted);
  });

  it("acts where an older release gave the same rules another name", () => {
    const current = inForce(free);
    const { stored } = current;
    if (!stored) throw new Error("nothing is stored");
    const renamed = { ...current, stored: { ...stored, rules: "another", services: "name" } };
    expect(isInForce(policyTextOf(free), renamed)).toBe(true);
    expect(isInForce(policyTextOf(strict), renamed)).toBe(false);
  });
});

describe("a change of policy", () => {
  it("is stored once, whichever process is first, and stands in the audit trail once; the first policy is no change", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const all = (text: string, before: Parameters<typeof adoptPolicy>[3]["before"]) =>
      Promise.all(
        Array.from({ length: 5 }, () => adoptPolicy(redis, key, policyTextOf(text), { before })),
      );
    const first = await all(free, inForce(undefined));
    expect(first.filter((stored) => stored !== undefined)).toMatchObject([{ number: 1 }]);
    const second = await all(strict, inForce(free));
    expect(second.filter((stored) => stored !== undefined)).toMatchObject([{ number: 2 }]);
    expect(await readStoredPolicy(redis, key)).toMatchObject({ number: 2, text: strict });
    const [from, to] = [free, strict].map((text) => policyTextOf(text).policyVersion);
    expect(await auditOf(redis, key("audit"))).toMatchObject([{ what: "policy", from, to }]);
  });

  it("tells what was requested before it from what may be requested after it", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const rulesOf = (text: string) => policyTextOf(text).policyVersion;
    const isCurrent = (text: string) => arePolicyRulesInForce(redis, key, rulesOf(text));
    expect(await isCurrent(free)).toBe(false);
    await adoptText(redis, key, free);
    expect(await isCurrent(free)).toBe(true);
    await adoptText(redis, key, strict);
    expect([await isCurrent(free), await isCurrent(strict)]).toEqual([false, true]);
    await adoptText(redis, key, free);
    expect([await isCurrent(free), await isCurrent(strict)]).toEqual([true, false]);
  });

  it("keeps the name that another release gave the same rules", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const theirs = { number: 1, rules: "their-name", services: "", text: free };
    await redis.hset(storedPolicyKey(key), theirs);
    const stored = await readStoredPolicy(redis, key);
    const before = { stored, textInForce: policyTextOf(stored?.text ?? "") };
    expect(claimOf(policyTextOf(free), before)).toBe("same");
    expect(isInForce(policyTextOf(free), before)).toBe(true);
    expect(await arePolicyRulesInForce(redis, key, "their-name")).toBe(true);
    expect(await adoptPolicy(redis, key, policyTextOf(elsewhere), { before })).toMatchObject({
      number: 2,
      rules: "their-name",
    });
    expect(await readStoredPolicy(redis, key)).toMatchObject({ number: 2, text: elsewhere });
  });

  it("stands in the audit trail with what it changes, the versions of the file included", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    await adoptText(redis, key, numbered(12, free));
    await adoptText(redis, key, numbered(13, strict));
    const [record] = await auditOf(redis, key("audit"));
    const [from = "", to = ""] = [free, strict].map((text) => policyTextOf(text).policyVersion);
    const changes = ["version: 12 → 13", "protect: added db-1"];
    expect(record).toMatchObject({ from, to, changes });
    const called = { person: (id: string) => id, vm: (id: string) => id };
    expect(tellRecord(record ?? {}, called).value).toBe(
      `📜 The rules changed (${from} → ${to}): ${changes.join("; ")}.`,
    );
  });

  it("is announced with what differs; a higher version of the same content to nobody", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const notices = async () =>
      [...((await readPending(redis, key)).get("notice") ?? [])].toSorted();
    await adoptText(redis, key, numbered(1, free), ["C1", "C1", undefined]);
    expect(await notices()).toEqual(["policy-1-C1"]);
    await adoptText(redis, key, numbered(2, free), ["C1"]);
    expect(await notices()).toHaveLength(1);
    await adoptText(redis, key, numbered(3, elsewhere), ["C1", "C2"]);
    expect(await notices()).toEqual(["policy-1-C1", "policy-3-C1", "policy-3-C2"]);
    expect(await auditOf(redis, key("audit"))).toEqual([]);
    expect(await readStoredPolicy(redis, key)).toMatchObject({
      version: 3,
      text: numbered(3, elsewhere),
    });
  });
});
