import * as z from "zod";
import { policySchema } from "../src/config/policy-schema.ts";
import type { PolicyTerms } from "../src/config/policy-section.ts";

/**
 * gatehouse.yml as a JSON Schema, by which editors complete it. It accepts all that Gatehouse
 * accepts. What a schema can't say (globs, durations, rules that no one could meet) `policy check`
 * says.
 */
export function renderPolicyJsonSchema(terms: PolicyTerms): string {
  const { $schema, ...schema } = z.toJSONSchema(policySchema(terms.sections), { io: "input" });
  const whole = { $schema, title: "gatehouse.yml: who may do what with Gatehouse", ...schema };
  return `${JSON.stringify(whole, undefined, 2)}\n`;
}
