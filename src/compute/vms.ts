import type * as z from "zod";
import { acceptedSnapshot, acceptedVm } from "./accepted.ts";
import { checkSnapshotId } from "./address.ts";
import { check, jsonOf } from "./answer.ts";
import type { Accepted, CallOptions, Compute } from "./compute.ts";
import { endpoints, type Endpoint } from "./endpoints.ts";
import type { Http } from "./http.ts";
import { toSpecs } from "./projects.ts";
import { attestationSchema, consoleSchema, metricsSchema, unwrap, vmSchema } from "./schemas.ts";

export function createVms(http: Http): Compute["vms"] {
  /** `marks` are the fields by which the record is known from its wrapper. */
  async function read<T>(
    endpoint: Endpoint,
    vmId: string,
    schema: z.ZodType<T>,
    marks: readonly string[],
    options: CallOptions,
    query: Record<string, string> = {},
  ): Promise<T> {
    const good = await http.read({ endpoint, ids: { vm_id: vmId }, query, ...options });
    return check(endpoint, good.answer.status, schema, unwrap(jsonOf(endpoint, good), marks));
  }

  async function change(
    endpoint: Endpoint,
    vmId: string,
    options: CallOptions,
    body?: object,
  ): Promise<Accepted> {
    const call = { endpoint, ids: { vm_id: vmId }, ...options };
    return acceptedVm(await http.change(body === undefined ? call : { ...call, body }), vmId);
  }

  return {
    get: async (vmId, options = {}) =>
      read(endpoints.getVm, vmId, vmSchema, ["id", "status"], options),

    metrics: async (vmId, period, options = {}) =>
      read(endpoints.vmMetrics, vmId, metricsSchema, ["cpu_usage"], options, { period }),

    attestation: async (vmId, options = {}) =>
      read(endpoints.vmAttestation, vmId, attestationSchema, ["measurement"], options),

    start: async (vmId, options = {}) => change(endpoints.startVm, vmId, options),
    stop: async (vmId, options = {}) => change(endpoints.stopVm, vmId, options),
    restart: async (vmId, options = {}) => change(endpoints.restartVm, vmId, options),
    resize: async (vmId, specs, options = {}) =>
      change(endpoints.resizeVm, vmId, options, { specs: toSpecs(specs) }),

    snapshot: async (vmId, name, options = {}) => {
      const call = {
        endpoint: endpoints.takeSnapshot,
        ids: { vm_id: vmId },
        body: { name },
        ...options,
      };
      return acceptedSnapshot(await http.change(call), vmId, name);
    },

    restore: async (vmId, snapshotId, options = {}) =>
      change(endpoints.restoreVm, vmId, options, { snapshot_id: checkSnapshotId(snapshotId) }),

    console: async (vmId, options = {}) => {
      const endpoint = endpoints.openConsole;
      const good = await http.change({ endpoint, ids: { vm_id: vmId }, ...options });
      return check(
        endpoint,
        good.answer.status,
        consoleSchema,
        unwrap(jsonOf(endpoint, good), ["url"]),
      );
    },
  };
}
