import * as z from "zod";
import { metricsFields, projectFields, vmFields } from "../fleet/compute/compute.ts";

/**
 * The shapes of VMs and projects for programs, with the field names that the compute service's
 * records have here.
 */

export const time = z.string().describe("ISO 8601");

const called = { id: z.string(), name: z.string() };

export const vmShape = z.object({
  ...vmFields,
  ...called,
  projectId: z.string(),
  projectName: z.string(),
  failsAttestation: z.string().optional().describe("why, where it is known to"),
});
export const projectShape = z.object({ ...projectFields, ...called });

/** In lists, only what the inventory stores of them. */
export const listedVmShape = vmShape
  .omit({ ipAddress: true, updatedAt: true, attestation: true })
  .partial({ region: true, createdAt: true, specs: true });
export const listedProjectShape = projectShape
  .omit({ updatedAt: true, specs: true })
  .partial({ region: true, createdAt: true });

export const readAt = { readAt: time };
export const isoTime = (at: number) => new Date(at).toISOString();

export const metricsShape = z.object({ vmId: z.string(), period: z.string(), ...metricsFields });

export const appraisalShape = z.object({
  vmId: z.string(),
  verdict: z.enum(["verified", "failed", "could not verify"]),
  reasons: z.array(z.string()),
  notes: z.array(z.string()),
  ...readAt,
  validUntil: time.optional().describe("how long the result holds at most"),
});
