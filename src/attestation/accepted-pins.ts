import type { Keys, RedisClient } from "../redis/redis.ts";
import { parseJson } from "../text/parse-json.ts";
import type { NamedVm } from "./pins.ts";

/** As the journal keeps it, in the step that ends the approved request. */
export interface KeptPin {
  /** As in gatehouse.yml: one value, or MRTD,RTMR0,RTMR1,RTMR2. */
  values: string;
  /** The request that people approved. */
  request: string;
  vm: NamedVm;
  /** The name of its requester. */
  by: string;
}

export interface AcceptedPin extends KeptPin {
  /** Redis time (ms). */
  at: number;
  /** The audit trail has no record of it as it stands: someone changed Redis by hand. */
  isForged: boolean;
}

export type AcceptedPins = ReturnType<typeof createAcceptedPins>;

/**
 * Pins that people approved. Each is bound to the record of the audit trail that was written with it, which the chain seals: one
 * that was written or changed by hand counts for nothing, and is said.
 */
export function createAcceptedPins(redis: RedisClient, key: Keys) {
  const named = key("pins");

  async function read(vmId: string, text: string): Promise<AcceptedPin> {
    const space = text.indexOf(" ");
    const [entry, kept] = [text.slice(0, space), readKept(text.slice(space + 1))];
    const unnamed = { id: vmId, name: vmId, projectId: "" };
    if (!kept) return { values: "", request: "", vm: unnamed, by: "", at: 0, isForged: true };
    const isEntry = /^\d{1,15}-\d{1,15}$/.test(entry);
    const [found] = isEntry ? await redis.xrange(key("audit"), entry, entry) : [];
    const fields = found?.[1] ?? [];
    const isSaid = says(fields[fields.indexOf("record") + 1] ?? "", vmId, kept);
    return { ...kept, at: Number.parseInt(entry, 10) || 0, isForged: !isSaid };
  }

  return {
    async of(vmId: string): Promise<AcceptedPin | undefined> {
      const text = await redis.hget(named, vmId);
      return text === null ? undefined : read(vmId, text);
    },
    /** The newest first. */
    async all(): Promise<readonly AcceptedPin[]> {
      const rows = Object.entries(await redis.hgetall(named));
      const pins = await Promise.all(rows.map(([vmId, text]) => read(vmId, text)));
      return pins.toSorted((a, b) => b.at - a.at);
    },
    /** The IDs of their VMs. */
    vmIds: (): Promise<string[]> => redis.hkeys(named),
  };
}

function readKept(text: string): KeptPin | undefined {
  const json = parseJson(text);
  if (typeof json !== "object" || json === null) return undefined;
  const { values, request, vm, by } = json as Partial<KeptPin>;
  const isWhole = [values, request, by].every((part) => typeof part === "string");
  return isWhole && typeof vm?.name === "string" ? (json as KeptPin) : undefined;
}

function says(record: string, vmId: string, { values, request }: KeptPin): boolean {
  const json = parseJson(record);
  if (typeof json !== "object" || json === null) return false;
  const { move, pin, ...its } = json as Record<string, unknown>;
  if (move !== "done" || its["request"] !== request) return false;
  const { vm, values: kept } = (pin ?? {}) as Record<string, unknown>;
  return vm === vmId && kept === values;
}
