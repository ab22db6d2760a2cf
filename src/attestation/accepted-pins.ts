import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { canonical } from "../text/canonical-json.ts";
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
  /** By the worker that let the request through the gate: who can only write to Redis can't make it. */
  vouch: string;
}

/**
 * `waits`: its record isn't sealed yet. `forged`: no worker that has this bot token vouches for it, or the audit trail has no
 * such record as it was sealed.
 */
type Standing = "kept" | "waits" | "forged";

export interface AcceptedPin extends Omit<KeptPin, "vouch"> {
  /** Redis time (ms). */
  at: number;
  is: Standing;
}

/** What is asked of the audit trail, which lies to the right. */
export interface PinTrail {
  find(id: string): Promise<{ record: string; is: "sealed" | "waits" | "changed" } | undefined>;
  /** Once under each name. */
  alarm(name: string, record: Readonly<Record<string, unknown>>): Promise<void>;
}

export type AcceptedPins = ReturnType<typeof createAcceptedPins>;

/**
 * Pins that people approved. One counts once its worker vouches for it and its record stands in the sealed chain; one that was
 * written or changed by hand counts for nothing, and is an alarm. `secret`: the bot token, which all processes have and Redis hasn't.
 */
export function createAcceptedPins({
  redis,
  key,
  trail,
  secret,
}: {
  redis: RedisClient;
  key: Keys;
  trail: PinTrail;
  secret: () => string;
}) {
  const named = key("pins");

  const vouchFor = ({ values, request, vm, by }: Omit<KeptPin, "vouch">): Buffer => {
    const derived = Buffer.from(hkdfSync("sha256", secret(), "", "gatehouse approved pin", 32));
    const pin = canonical({ chain: key.namespace, values, request, vm, by });
    return createHmac("sha256", derived).update(pin).digest();
  };

  function isVouched(vmId: string, pin: KeptPin): boolean {
    const said = Buffer.from(pin.vouch, "base64url");
    const right = vouchFor(pin);
    return pin.vm.id === vmId && said.length === right.length && timingSafeEqual(said, right);
  }

  async function standingOf(vmId: string, entry: string, kept: KeptPin): Promise<Standing> {
    if (!isVouched(vmId, kept) || !/^\d{1,15}-\d{1,15}$/.test(entry)) return "forged";
    const found = await trail.find(entry);
    if (!found || found.is === "changed" || !says(found.record, kept)) return "forged";
    return found.is === "sealed" ? "kept" : "waits";
  }

  async function read(vmId: string, text: string): Promise<AcceptedPin> {
    const space = text.indexOf(" ");
    const [entry, kept] = [text.slice(0, space), readKept(text.slice(space + 1))];
    const is = kept ? await standingOf(vmId, entry, kept) : "forged";
    const vm = { id: vmId, name: vmId, projectId: "" };
    const pin = kept ?? { values: "", request: "", vm, by: "" };
    if (is === "forged") {
      const why = "its approved pin was not kept by Gatehouse, or under another bot token";
      const target = { kind: "vm", id: vmId, name: pin.vm.name };
      const name = `pin ${createHash("sha256").update(`${vmId} ${text}`).digest("hex")}`;
      await trail.alarm(name, { what: "alarm", request: pin.request, target, why });
    }
    return { ...pin, at: Number.parseInt(entry, 10) || 0, is };
  }

  return {
    /** For the journal to keep. */
    vouched: (pin: Omit<KeptPin, "vouch">): KeptPin => ({
      ...pin,
      vouch: vouchFor(pin).toString("base64url"),
    }),
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
  const { values, request, vm, by, vouch } = json as Partial<KeptPin>;
  const isWhole = [values, request, by, vouch].every((part) => typeof part === "string");
  return isWhole && typeof vm?.name === "string" ? (json as KeptPin) : undefined;
}

function says(record: string, { values, request, vm: { id } }: KeptPin): boolean {
  const json = parseJson(record);
  if (typeof json !== "object" || json === null) return false;
  const { move, pin, ...its } = json as Record<string, unknown>;
  if (move !== "done" || its["request"] !== request) return false;
  const { vm, values: kept } = (pin ?? {}) as Record<string, unknown>;
  return vm === id && kept === values;
}
