import { type VmSpecs, Refusal } from "./records.ts";

/** Checks of request bodies: what is wrong ends as 422 with the field's name. */

type Fields = Record<string, unknown>;

export function fieldsOf(body: unknown): Fields {
  return typeof body === "object" && body !== null && !Array.isArray(body)
    ? Object.fromEntries(Object.entries(body))
    : {};
}

export function invalid(field: string, problem: string): Refusal {
  return new Refusal(422, "validation_failed", `${field} ${problem}`);
}

export function checkText(fields: Fields, field: string, most: number): string | Refusal {
  const value = fields[field];
  if (typeof value !== "string" || value.trim() === "") return invalid(field, "must be a text");
  return value.length > most ? invalid(field, `must have at most ${most} characters`) : value;
}

export const projectTypes = ["TEE_VM", "GIT_DEPLOY", "CONTAINER"];

const bounds: VmSpecs = { cpu: 256, memory: 1_048_576, disk: 1_048_576 };

export function checkSpecs(
  value: unknown,
  needed: readonly (keyof VmSpecs)[],
): Partial<VmSpecs> | Refusal {
  const given = fieldsOf(value);
  const specs: Partial<VmSpecs> = {};
  for (const field of ["cpu", "memory", "disk"] as const) {
    const number = given[field];
    if (number === undefined) {
      if (needed.includes(field)) return invalid(`specs.${field}`, "is required");
    } else if (
      typeof number !== "number" ||
      !Number.isInteger(number) ||
      number < 1 ||
      number > bounds[field]
    ) {
      return invalid(`specs.${field}`, `must be a whole number from 1 to ${bounds[field]}`);
    } else specs[field] = number;
  }
  return Object.keys(specs).length === 0
    ? invalid("specs", "must hold cpu, memory or disk")
    : specs;
}

export interface CheckedProject {
  name: string;
  type: string;
  region: string;
  specs?: VmSpecs;
  gitConfig?: object;
}

export function checkNewProject(body: unknown): CheckedProject | Refusal {
  const fields = fieldsOf(body);
  const name = checkText(fields, "name", 63);
  if (name instanceof Refusal) return name;
  const region = checkText(fields, "region", 63);
  if (region instanceof Refusal) return region;
  const type = fields["type"];
  if (typeof type !== "string" || !projectTypes.includes(type))
    return invalid("type", `must be ${projectTypes.join(", ")}`);
  if (type === "TEE_VM") {
    const specs = checkSpecs(fields["specs"], ["cpu", "memory", "disk"]);
    if (specs instanceof Refusal) return specs;
    return { name, type, region, specs: { cpu: 4, memory: 16, disk: 100, ...specs } };
  }
  if (type === "GIT_DEPLOY") {
    const gitConfig = fieldsOf(fields["git_config"]);
    const url = checkText(gitConfig, "url", 500);
    if (url instanceof Refusal) return invalid("git_config.url", "must be a text");
    return { name, type, region, gitConfig };
  }
  return { name, type, region };
}

export function checkProjectUpdate(
  body: unknown,
): { name?: string; specs?: Partial<VmSpecs> } | Refusal {
  const fields = fieldsOf(body);
  const name = fields["name"] === undefined ? undefined : checkText(fields, "name", 63);
  if (name instanceof Refusal) return name;
  const specs = fields["specs"] === undefined ? undefined : checkSpecs(fields["specs"], []);
  if (specs instanceof Refusal) return specs;
  if (name === undefined && specs === undefined) return invalid("body", "must hold name or specs");
  return { ...(name === undefined ? {} : { name }), ...(specs === undefined ? {} : { specs }) };
}
