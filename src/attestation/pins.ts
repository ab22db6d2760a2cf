import type { AppraisalRule } from "../config/policy-schema.ts";
import type { Pin } from "../config/policy-file.ts";
import { matchesGlob } from "../text/glob.ts";
import { type AppraisalPolicy, strictPolicy } from "../verifier/appraisal-policy.ts";
import { decodeEvidence } from "../verifier/verify-evidence.ts";
import { createHmac, hash, hkdfSync, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineMark, type Keys, type RedisClient } from "../redis/redis.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";

/** A VM by everything that a rule may know it by. */
export interface NamedVm {
  id: string;
  name: string;
  projectId: string;
  projectName?: string | undefined;
}

/** What may be measured of a VM, and who says so. The file wins: an approval counts only where it says nothing. */
export interface VmPins {
  from: "gatehouse.yml" | "an approval" | "nowhere";
  /** Those that count. */
  values: readonly string[];
  /** Why an approved one doesn't count: its record isn't sealed yet, or it was written by hand. */
  doubt?: keyof typeof doubts;
}

export const doubts = {
  waits: "its approved pin waits to be sealed in the audit trail, for a second or so",
  forged: "its approved pin was not kept by Gatehouse, or under another bot token",
};

/** The names by which a pin or a rule can match a VM: name, id, `project/name`. */
export function namesOf(vm: NamedVm): string[] {
  return [vm.name, vm.id, `${vm.projectName ?? vm.projectId}/${vm.name}`];
}

/**
 * The measurements that policy allows for a target, by any of its names; empty when no pin speaks of it. Several pins that
 * match add up.
 */
export function pinsFor(pins: readonly Pin[], names: readonly string[]): readonly string[] {
  const matching = pins.filter(({ targets }) => isNamed(targets, names));
  return [...new Set(matching.flatMap(({ measurements }) => measurements))];
}

/** What is accepted of a VM: the first rule that speaks of it, else nothing that isn't current. */
export function acceptedFor(
  rules: readonly AppraisalRule[],
  names: readonly string[],
): AppraisalPolicy {
  const rule = rules.find(({ targets }) => targets === undefined || isNamed(targets, names));
  return rule?.policy ?? strictPolicy;
}

const isNamed = (globs: readonly string[], names: readonly string[]) =>
  globs.some((glob) => names.some((name) => matchesGlob(glob, name)));

/** What each value of a pin stands for. */
function partsOf(pin: string): readonly (readonly [label: string, value: string])[] {
  const values = pin.split(",");
  if (values.length < 4) return [["Firmware and CPUs at the start", values[0] ?? ""]];
  const labels = [
    "MRTD, the firmware",
    "RTMR0, its configuration and memory",
    "RTMR1, boot loader and kernel",
    "RTMR2, the system",
  ];
  return labels.map((label, at) => [label, values[at] ?? ""]);
}

/** How a pin differs from the one before, value by value, for people who decide about it. */
export function pinChange(
  pin: string,
  before: string | undefined,
): readonly (readonly [label: string, text: string])[] {
  const old = before === undefined ? [] : partsOf(before).map(([, value]) => value);
  return partsOf(pin).map(([label, value], at) => {
    const was = old[at];
    if (was === undefined) return [label, `${short(value)}, not pinned until now`];
    return [
      label,
      was === value ? `${short(value)}, unchanged` : (bytesThatDiffer(value, was) ?? ""),
    ];
  });
}

/** Hex digits of the 48 bytes that TDX and SNP measure. */
export const measuredDigits = 96;

/**
 * A measurement in the one form in which two of them can be compared: lower-case hex. `0x`, spaces, colons and case
 * don't count; base64 of a usual length (32, 48 or 64 bytes) becomes hex; anything else stays as it is.
 */
export function normalize(measurement: string): string {
  const bare = measurement.trim().replaceAll(/[\s:]/g, "");
  const hex = bare.replace(/^0x/i, "").toLowerCase();
  if (/^([0-9a-f]{2})+$/.test(hex)) return hex;
  const bytes = decodeEvidence(bare);
  return bytes && [32, 48, 64].includes(bytes.length) ? bytes.toString("hex") : measurement.trim();
}

/** `4f2a…91bc`: enough to tell two apart at a glance; the whole one is in the report's file. */
export function short(measurement: string): string {
  const points = Array.from(measurement);
  return points.length <= 12
    ? measurement
    : `${points.slice(0, 4).join("")}…${points.slice(-4).join("")}`;
}

/**
 * How a measurement differs, in words, from the expected one that is nearest: `1 of 48 bytes differs: byte 17 is 4f, expected 4e`.
 * Undefined when it equals one.
 */
export function bytesThatDiffer(found: string, ...expected: readonly string[]): string | undefined {
  const bytes = bytesOf(found);
  const placesIn = (one: readonly string[]) =>
    [...one.keys()].filter((at) => one[at] !== bytes[at]);
  const [nearest = []] = expected
    .map(bytesOf)
    .toSorted((a, b) => placesIn(a).length - placesIn(b).length);
  const places = placesIn(nearest);
  const isComparable = nearest.length === bytes.length;
  if (isComparable && places.length === 0) return undefined;
  // A hash that changed differs nearly everywhere: only few differences are worth their places
  if (!isComparable || places.length > 3)
    return `${short(bytes.join(""))} instead of ${short(nearest.join(""))}`;
  const counted = `${places.length} of ${bytes.length} bytes ${places.length === 1 ? "differs" : "differ"}`;
  const each = places.map((at) => `byte ${at + 1} is ${bytes[at]}, expected ${nearest[at]}`);
  return `${counted}: ${each.join("; ")}`;
}

/** Two hex digits each. */
const bytesOf = (measurement: string): readonly string[] =>
  normalize(measurement).match(/..?/gs) ?? [];

/** As the journal keeps it, in the step that ends the approved request. */
export interface KeptPin {
  /** As in gatehouse.yml: one value, or MRTD,RTMR0,RTMR1,RTMR2. */
  values: string;
  /** The request that people approved. */
  request: string;
  vm: NamedVm;
  /** The name of its requester. */
  by: string;
  /**
   * By the worker that let the request through the gate: who can only write to Redis can't make it. After the bot token was
   * replaced the newest is first; the one before stays for processes that don't have the new token yet.
   */
  vouches: readonly string[];
}

export interface AcceptedPin extends Omit<KeptPin, "vouches"> {
  /** Redis time (ms). */
  at: number;
  /**
   * `waits`: its record isn't sealed yet. `forged`: no worker that has a bot token known here vouches for it, or the audit trail has
   * no such record as it was sealed.
   */
  is: "kept" | keyof typeof doubts;
}

/** What is asked of the audit trail, which lies to the right. */
export interface PinTrail {
  find(id: string): Promise<{ record: string; is: "sealed" | "waits" | "changed" } | undefined>;
  /** Once under each name. */
  alarm(name: string, record: Readonly<Record<string, unknown>>): Promise<void>;
}

export type AcceptedPins = ReturnType<typeof createAcceptedPins>;

/** Whoever asks right after the approval shouldn't be told that it counts in a moment (ms). */
const sealedWithinMs = 5_000;

/**
 * Pins that people approved. One counts once its worker vouches for it and its record stands in the sealed chain; one that was
 * written or changed by hand counts for nothing, and is an alarm. `secret`: the bot token, which all processes have and Redis hasn't;
 * where it is replaced while a process runs, that process vouches anew for what it knows to be right.
 */
export function createAcceptedPins(options: {
  redis: RedisClient;
  key: Keys;
  trail: PinTrail;
  secret: () => string;
}) {
  const { redis, key, trail, secret } = options;
  const named = key("pins");
  const replace = defineMark(redis);
  /** That of now, and the one before until all pins are vouched for anew: it may have been replaced because it leaked. */
  let secrets: readonly string[] = [secret()];
  let renewing: Promise<void> | undefined;

  function secretsNow(): readonly string[] {
    const now = secret();
    if (secrets[0] !== now) secrets = [now, ...secrets.slice(0, 1)];
    if (secrets.length > 1) renewing ??= renewAll(now);
    return secrets;
  }

  /** Where Redis is away, the next look at a pin tries again. */
  async function renewAll(now: string): Promise<void> {
    try {
      await all();
      if (secrets[0] === now) secrets = [now];
    } catch {
      // Whoever asked for a pin hears of it
    } finally {
      renewing = undefined;
    }
  }

  async function all(): Promise<readonly AcceptedPin[]> {
    const rows = Object.entries(await redis.hgetall(named));
    const pins = await Promise.all(rows.map(([vmId, text]) => readPin(vmId, text)));
    return pins.toSorted((a, b) => b.at - a.at);
  }

  function vouchFor(pin: Omit<KeptPin, "vouches">, token: string): string {
    const { values, request, vm, by } = pin;
    const derived = Buffer.from(hkdfSync("sha256", token, "", "gatehouse approved pin", 32));
    const text = canonical({ chain: key.namespace, values, request, vm, by });
    return createHmac("sha256", derived).update(text).digest("base64url");
  }

  const isVouched = (pin: KeptPin, token: string): boolean => {
    const right = Buffer.from(vouchFor(pin, token));
    return pin.vouches.some((vouch) => {
      const said = Buffer.from(vouch);
      return said.length === right.length && timingSafeEqual(said, right);
    });
  };

  const vouched = (pin: Omit<KeptPin, "vouches">, former: readonly string[] = []): KeptPin => ({
    ...pin,
    vouches: [vouchFor(pin, secretsNow()[0] ?? ""), ...former].slice(0, 2),
  });

  async function standingOf(vmId: string, text: string, kept: KeptPin): Promise<AcceptedPin["is"]> {
    const [entry = ""] = text.split(" ", 1);
    const [token = "", ...former] = secretsNow();
    const isCurrent = isVouched(kept, token);
    const isKnown = isCurrent || former.some((one) => isVouched(kept, one));
    if (!isKnown || kept.vm.id !== vmId || !/^\d{1,15}-\d{1,15}$/.test(entry)) return "forged";
    const found = await trail.find(entry);
    if (!found || found.is === "changed" || !says(found.record, kept)) return "forged";
    if (!isCurrent) {
      const { vouches, ...pin } = kept;
      const renewed = JSON.stringify(vouched(pin, vouches));
      await replace([named], [vmId, text, `${entry} ${renewed}`]);
    }
    return found.is === "sealed" ? "kept" : "waits";
  }

  async function readPin(vmId: string, text: string): Promise<AcceptedPin> {
    const space = text.indexOf(" ");
    const [entry, kept] = [text.slice(0, space), readKept(text.slice(space + 1))];
    const is = kept ? await standingOf(vmId, text, kept) : "forged";
    const vm = { id: vmId, name: vmId, projectId: "" };
    const pin = kept ?? { values: "", request: "", vm, by: "" };
    if (is === "forged") {
      const target = { kind: "vm", id: vmId, name: pin.vm.name };
      const name = `pin ${hash("sha256", `${vmId} ${text}`)}`;
      await trail.alarm(name, { what: "alarm", request: pin.request, target, why: doubts.forged });
    }
    return { ...pin, at: Number.parseInt(entry, 10) || 0, is };
  }

  return {
    /** For the journal to keep. */
    vouched: (pin: Omit<KeptPin, "vouches">): KeptPin => vouched(pin),
    /** Waits a little for a seal. */
    async of(vmId: string): Promise<AcceptedPin | undefined> {
      const until = performance.now() + sealedWithinMs;
      for (;;) {
        const text = await redis.hget(named, vmId);
        const pin = text === null ? undefined : await readPin(vmId, text);
        if (pin?.is !== "waits" || performance.now() > until) return pin;
        await sleep(200);
      }
    },
    /** The newest first. */
    all,
    /** The IDs of their VMs. */
    vmIds: (): Promise<string[]> => redis.hkeys(named),
  };
}

function readKept(text: string): KeptPin | undefined {
  const json = parseJson(text);
  if (typeof json !== "object" || json === null) return undefined;
  const { values, request, vm, by, vouches } = json as Partial<KeptPin>;
  const all = Array.isArray(vouches) && vouches.length <= 2 ? vouches : [undefined];
  const texts = [values, request, by, vm?.name, ...all];
  return texts.every((part) => typeof part === "string") ? (json as KeptPin) : undefined;
}

function says(record: string, { values, request, vm }: KeptPin): boolean {
  const its = parseJson(record) as Record<string, unknown> | undefined;
  const pin = its?.["pin"] as Record<string, unknown> | undefined;
  const isOfRequest = its?.["move"] === "done" && its["request"] === request;
  return isOfRequest && pin?.["vm"] === vm.id && pin["values"] === values;
}
