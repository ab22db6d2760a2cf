import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { parsePolicy } from "../../src/config/policy-file.ts";
import { policyTerms } from "../../src/features/index.ts";
import { root } from "../structure/sources.ts";

const textOf = (path: string) => readFileSync(join(root, path), "utf8");
const schema = z.fromJSONSchema(JSON.parse(textOf("gatehouse.schema.json")));
const isTaken = (text: string) => schema.safeParse(parse(text)).success;
const isPolicy = (text: string) => !("problems" in parsePolicy(text, "x", policyTerms));

/** Each block of a page that Gatehouse takes for a policy. */
const policiesIn = (page: string) =>
  [...textOf(page).matchAll(/^```yaml\n([^]*?)^```/gm)]
    .map(([, block = ""]) => block)
    .filter(isPolicy)
    .map((block): [string, string] => [`${page}: ${block.split("\n")[0]}`, block]);

describe("the JSON Schema of gatehouse.yml", () => {
  const example = textOf("gatehouse.example.yml");
  const policies = ["docs/policy.md", "docs/automation.md", "docs/attestation.md"].flatMap(
    policiesIn,
  );

  it("is named in the first line of the example, beside which it is", () => {
    const [first] = example.split("\n");
    expect(first).toBe("# yaml-language-server: $schema=gatehouse.schema.json");
    const { files }: { files: string[] } = JSON.parse(textOf("package.json"));
    expect(files).toEqual(
      expect.arrayContaining(["gatehouse.schema.json", "gatehouse.example.yml"]),
    );
  });

  it.each([
    ["gatehouse.example.yml", example],
    ["docs/policy-teams.yml", textOf("docs/policy-teams.yml")],
    ...policies,
    ["nothing", "{}"],
  ])("takes %s", (_, text) => {
    expect(schema.safeParse(parse(text)).error?.issues ?? []).toEqual([]);
  });

  it("is tried with what the docs show", () => {
    expect(policies.length).toBeGreaterThan(6);
  });

  it.each([
    "acess: {}",
    "access: { oprate: [] }",
    "access: { operate: [olivia] }",
    `approvals: [{ operations: ["vm.stop"], required: -1 }]`,
    `approvals: [{ operations: [], required: 1 }]`,
    `approvals: [{ required: 1 }]`,
    "teams: { payments: {} }",
    "timing: { quiesce: 60 }",
    "digests: [{ channel: general, at: '09:00' }]",
    "sources: { prometheus: { format: zabbix } }",
    "limits: { requestsPerMinute: many }",
    "attestation: { appraisal: [{ allow: [everything] }] }",
    "[]",
  ])("refuses %s, as Gatehouse does", (text) => {
    expect([isTaken(text), isPolicy(text)]).toEqual([false, false]);
  });
});
