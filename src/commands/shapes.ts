import * as z from "zod";
import type { InventoryState } from "../inventory/inventory.ts";
import { perPage } from "./last-known.ts";

/** What programs are told of VMs and projects, by the names that the compute service's records have here. */

const time = z.string().describe("ISO 8601");

const specs = z
  .object({ cpu: z.number(), memory: z.number(), disk: z.number() })
  .partial()
  .describe("as the compute service counts them: it names no units");

const called = { id: z.string(), name: z.string(), status: z.string() };
const located = { region: z.string().optional(), createdAt: time.optional() };

export const vmShape = z.object({
  ...called,
  projectId: z.string(),
  projectName: z.string(),
  ...located,
  specs: specs.optional(),
  failsAttestation: z.string().optional().describe("why, where it is known to"),
});

export const wholeVmShape = vmShape.extend({
  ipAddress: z.string().optional(),
  updatedAt: time.optional(),
  attestation: z
    .object({ enabled: z.boolean(), measurement: z.string() })
    .partial()
    .optional()
    .describe("what the compute service says of it"),
});

export const projectShape = z.object({ ...called, type: z.string(), ...located });
export const wholeProjectShape = projectShape.extend({
  updatedAt: time.optional(),
  specs: specs.optional(),
});

export const readAt = { readAt: time };
export const isoTime = (at: number) => new Date(at).toISOString();

/** A page of a list as it was last read. */
export const pageFacts = {
  page: z.number(),
  pages: z.number(),
  count: z.number().describe("on all pages"),
  readAt: time.optional().describe("when the compute service was last read; absent before that"),
  isStale: z.boolean().describe("nothing newer could be read"),
};

export function pageOf<T>(all: readonly T[], number: number, state: InventoryState) {
  const { refreshedAt, stale: isStale } = state;
  return {
    shown: all.slice((number - 1) * perPage, number * perPage),
    facts: {
      page: number,
      pages: Math.max(1, Math.ceil(all.length / perPage)),
      count: all.length,
      ...(refreshedAt === undefined ? {} : { readAt: isoTime(refreshedAt) }),
      isStale,
    },
  };
}

export const snapshotShape = z.object({
  id: z.string().describe("empty where the service gave none: then it can't be restored"),
  name: z.string(),
  takenAt: time,
  takenBy: z.string().describe("a Slack user ID; empty where it isn't known"),
  isSafety: z.boolean().optional().describe("taken right before a restore"),
  measurement: z.string().optional(),
  specs: specs.optional(),
});

const samples = z.array(z.object({ timestamp: z.string(), value: z.number() }));
export const metricsShape = z.object({
  vmId: z.string(),
  period: z.string(),
  cpuUsage: samples,
  memoryUsage: samples,
  diskUsage: z.number().optional(),
});

export const appraisalShape = z.object({
  vmId: z.string(),
  verdict: z.enum(["verified", "failed", "could not verify"]),
  reasons: z.array(z.string()),
  notes: z.array(z.string()),
  ...readAt,
  validUntil: time.optional().describe("how long the result holds at most"),
});
