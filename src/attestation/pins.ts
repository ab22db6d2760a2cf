import type { AppraisalRule } from "../config/policy-schema.ts";
import type { Pin } from "../config/policy-file.ts";
import { matchesGlob } from "../text/glob.ts";
import { type AppraisalPolicy, strictPolicy } from "../verifier/appraisal-policy.ts";
import { hexDigits } from "../text/hex-digits.ts";
import { bytesInText } from "../verifier/saved-bytes.ts";
import * as z from "zod";
import { createHmac, hash, hkdfSync, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineRecord, objectOf } from "../redis/define-record.ts";
import { defineMark, type Keys, type RedisClient } from "../redis/redis.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import { deadlineMs } from "../deadline.ts";

/** A VM with everything by which a rule may name it. */
export interface NamedVm {
  id: string;
  name: string;
  projectId: string;
  projectName?: string | undefined;
}

/**
 * The measurements that a VM may have, and where they come from. The file takes precedence: an
 * approved pin counts only when the file has none for the VM.
 */
export interface VmPins {
  from: "gatehouse.yml" | "an approval" | "nowhere";
  /** The measurements that count. */
  values: readonly string[];
  /** Where they stand in gatehouse.yml: ` (line 31)`. */
  line?: string;
  /**
   * Why an approved pin doesn't count: its record isn't sealed yet, or Gatehouse didn't write it.
   */
  doubt?: keyof typeof doubts;
}

export const doubts = {
  waits: "its approved pin waits to be sealed in the audit trail, for a second or so",
  forged: "its approved pin was not kept by Gatehouse, or under another bot token",
};

/** The names by which a pin or a rule can match a VM: its name, its ID, and `project/name`. */
export function namesOf(vm: NamedVm): string[] {
  return [vm.name, vm.id, `${vm.projectName ?? vm.projectId}/${vm.name}`];
}

/**
 * The measurements that the policy allows for a target, by any of its names. Empty when no pin
 * matches; when several pins match, all of them count.
 */
export function pinsFor(pins: readonly Pin[], names: readonly string[]): readonly string[] {
  const matching = pins.filter(({ targets }) => isNamed(targets, names));
  return [...new Set(matching.flatMap(({ measurements }) => measurements))];
}

/**
 * The appraisal policy for a VM: that of the first rule that matches, or else one that accepts only
 * what is current.
 */
export function acceptedFor(
  rules: readonly AppraisalRule[],
  names: readonly string[],
): AppraisalPolicy {
  const rule = rules.find(({ targets }) => targets === undefined || isNamed(targets, names));
  return rule?.policy ?? strictPolicy;
}

const isNamed = (globs: readonly string[], names: readonly string[]) =>
  globs.some((glob) => names.some((name) => matchesGlob(glob, name)));

/** The values of a pin with their meaning. */
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

/** The number of hex digits in the 48 bytes that TDX and SNP measure. */
export const measuredDigits = 96;

/**
 * A measurement in the only form in which two can be compared: lower-case hex. `0x`, spaces,
 * colons, and case are ignored; base64 of a usual length (32, 48, or 64 bytes) becomes hex;
 * anything else is returned as it is.
 */
export function normalize(measurement: string): string {
  const hex = hexDigits(measurement);
  if (hex !== undefined) return hex;
  const bytes = bytesInText(measurement.replaceAll(":", ""));
  return bytes && [32, 48, 64].includes(bytes.length) ? bytes.toString("hex") : measurement.trim();
}

/**
 * `4f2a…91bc`, which is enough to tell two measurements apart at a glance. The report's file has
 * the whole one.
 */
export function short(measurement: string): string {
  const points = Array.from(measurement);
  return points.length <= 12
    ? measurement
    : `${points.slice(0, 4).join("")}…${points.slice(-4).join("")}`;
}

/**
 * How a measurement differs from the nearest expected one, in words: `1 of 48 bytes differs: byte
 * 17 is 4f, expected 4e`. Undefined when it equals one of them.
 */
export function bytesThatDiffer(
  measurement: string,
  ...expected: readonly string[]
): string | undefined {
  const bytes = bytesOf(measurement);
  const placesIn = (candidate: readonly string[]) =>
    [...candidate.keys()].filter((at) => candidate[at] !== bytes[at]);
  const [nearest = []] = expected
    .map(bytesOf)
    .toSorted((a, b) => placesIn(a).length - placesIn(b).length);
  const places = placesIn(nearest);
  const isComparable = nearest.length === bytes.length;
  if (isComparable && places.length === 0) return undefined;
  // A hash that changed differs nearly everywhere. Places are listed only for few differences.
  if (!isComparable || places.length > 3)
    return `${short(bytes.join(""))} instead of ${short(nearest.join(""))}`;
  const counted = `${places.length} of ${bytes.length} bytes ${places.length === 1 ? "differs" : "differ"}`;
  const each = places.map((at) => `byte ${at + 1} is ${bytes[at]}, expected ${nearest[at]}`);
  return `${counted}: ${each.join("; ")}`;
}

/** The bytes of a measurement, each as two hex digits. */
const bytesOf = (measurement: string): readonly string[] =>
  normalize(measurement).match(/..?/gs) ?? [];

/** A pin as the journal stores it, in the step that ends the approved request. */
export interface KeptPin {
  /** Written as in gatehouse.yml: one value, or MRTD,RTMR0,RTMR1,RTMR2. */
  values: string;
  /** The request that people approved. */
  request: string;
  vm: NamedVm;
  /** The name of its requester. */
  by: string;
  /**
   * Message authentication codes of the worker that let the request through the gate. Somebody who
   * can only write to Redis can't make one. After the bot token was replaced, the newest is first;
   * the former one stays for processes that don't have the new token yet.
   */
  vouches: readonly string[];
}

export const pinRecord = defineRecord({
  name: "approved pin",
  schema: objectOf<KeptPin>({
    values: z.string(),
    request: z.string(),
    vm: objectOf<NamedVm>({
      id: z.string(),
      name: z.string(),
      projectId: z.string(),
      projectName: z.string().exactOptional(),
    }),
    by: z.string(),
    vouches: z.array(z.string()).max(2),
  }),
});

export interface AcceptedPin extends Omit<KeptPin, "vouches"> {
  /** Redis time (ms). */
  at: number;
  /**
   * `kept`: it counts. `waits`: its record isn't sealed yet. `forged`: no code matches a bot token
   * that is known here, or the audit trail has no such record as it was sealed.
   */
  standing: "kept" | keyof typeof doubts;
}

/** The functions of the audit trail that pins need. The trail is a layer above this one. */
export interface PinTrail {
  find(
    id: string,
  ): Promise<{ record: string; standing: "sealed" | "waits" | "changed" } | undefined>;
  /** Writes an alarm, only once under each name. */
  alarm(name: string, record: Readonly<Record<string, unknown>>): Promise<void>;
}

export type AcceptedPins = ReturnType<typeof createAcceptedPins>;

/**
 * How long a question waits for a seal, so that somebody who asks right after the approval isn't
 * told to wait (ms).
 */
const sealedWithinMs = 5_000;

/**
 * Pins that people approved. A pin counts once its code is valid and its record is in the sealed
 * chain. One that was written or changed by hand doesn't count, and causes an alarm. `secret` is
 * the bot token, which all processes have and Redis doesn't. When it is replaced while a process
 * runs, that process adds new codes to the pins that it knows to be valid.
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
  /**
   * The current token, and the former one until all pins have new codes. The former one may have
   * been replaced because it leaked.
   */
  let secrets: readonly string[] = [secret()];
  let renewing: Promise<void> | undefined;

  function secretsNow(): readonly string[] {
    const now = secret();
    if (secrets[0] !== now) secrets = [now, ...secrets.slice(0, 1)];
    if (secrets.length > 1) renewing ??= renewAll(now);
    return secrets;
  }

  /** When Redis is unavailable, the next look at a pin tries again. */
  async function renewAll(now: string): Promise<void> {
    try {
      await all();
      if (secrets[0] === now) secrets = [now];
    } catch {
      // A caller that asks for a pin gets the same error.
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
    const { values, request, vm, by: requester } = pin;
    const derived = Buffer.from(hkdfSync("sha256", token, "", "gatehouse approved pin", 32));
    const text = canonical({ chain: key.namespace, values, request, vm, by: requester });
    return createHmac("sha256", derived).update(text).digest("base64url");
  }

  const isVouched = (pin: KeptPin, token: string): boolean => {
    const right = Buffer.from(vouchFor(pin, token));
    return pin.vouches.some((vouch) => {
      const vouchBytes = Buffer.from(vouch);
      return vouchBytes.length === right.length && timingSafeEqual(vouchBytes, right);
    });
  };

  const vouched = (pin: Omit<KeptPin, "vouches">, former: readonly string[] = []): KeptPin => ({
    ...pin,
    vouches: [vouchFor(pin, secretsNow()[0] ?? ""), ...former].slice(0, 2),
  });

  async function standingOf(
    vmId: string,
    text: string,
    kept: KeptPin,
  ): Promise<AcceptedPin["standing"]> {
    const [entry = ""] = text.split(" ", 1);
    const [token = "", ...former] = secretsNow();
    const isCurrent = isVouched(kept, token);
    const isKnown = isCurrent || former.some((formerToken) => isVouched(kept, formerToken));
    if (!isKnown || kept.vm.id !== vmId || !/^\d{1,15}-\d{1,15}$/.test(entry)) return "forged";
    const stored = await trail.find(entry);
    if (!stored || stored.standing === "changed" || !isAbout(stored.record, kept)) return "forged";
    if (!isCurrent) {
      const { vouches, ...pin } = kept;
      const renewed = pinRecord.write(vouched(pin, vouches));
      await replace([named], [vmId, text, `${entry} ${renewed}`]);
    }
    return stored.standing === "sealed" ? "kept" : "waits";
  }

  async function readPin(vmId: string, text: string): Promise<AcceptedPin> {
    const space = text.indexOf(" ");
    const entry = text.slice(0, space);
    const kept = pinRecord.parse(text.slice(space + 1), `${named} ${vmId}`);
    const standing = kept ? await standingOf(vmId, text, kept) : "forged";
    const vm = { id: vmId, name: vmId, projectId: "" };
    const pin = kept ?? { values: "", request: "", vm, by: "" };
    if (standing === "forged") {
      const target = { kind: "vm", id: vmId, name: pin.vm.name };
      const name = `pin ${hash("sha256", `${vmId} ${text}`)}`;
      await trail.alarm(name, { what: "alarm", request: pin.request, target, why: doubts.forged });
    }
    return { ...pin, at: Number.parseInt(entry, 10) || 0, standing };
  }

  return {
    /** Adds the code to a pin that the journal is about to store. */
    vouched: (pin: Omit<KeptPin, "vouches">): KeptPin => vouched(pin),
    /** The approved pin of a VM. It waits a few seconds for a missing seal. */
    async of(vmId: string): Promise<AcceptedPin | undefined> {
      const until = performance.now() + deadlineMs(sealedWithinMs);
      for (;;) {
        const text = await redis.hget(named, vmId);
        const pin = text === null ? undefined : await readPin(vmId, text);
        if (pin?.standing !== "waits" || performance.now() > until) return pin;
        await sleep(200);
      }
    },
    /** All approved pins, the newest first. */
    all,
    /** The IDs of VMs with an approved pin. */
    vmIds: (): Promise<string[]> => redis.hkeys(named),
  };
}

function isAbout(record: string, { values, request, vm }: KeptPin): boolean {
  const fields = parseJson(record) as Record<string, unknown> | undefined;
  const pin = fields?.["pin"] as Record<string, unknown> | undefined;
  const isOfRequest = fields?.["move"] === "done" && fields["request"] === request;
  return isOfRequest && pin?.["vm"] === vm.id && pin["values"] === values;
}
