import type { AttestationReport, Compute, Vm } from "../fleet/compute/compute.ts";
import { lineWords, type Policy } from "../config/policy-file.ts";
import { defineScript, type Keys, type RedisClient, redisTimeLua } from "../redis/redis.ts";
import { pinOf } from "../verifier/appraisal-policy.ts";
import type { AppraisalOptions } from "../verifier/attestation-result.ts";
import { type TrustedRoots, vendorRoots } from "../verifier/roots.ts";
import { bytesInText } from "../verifier/saved-bytes.ts";
import {
  type Endorsements,
  endorsementsNeeded,
  Newest,
  verifyEncoded,
} from "../verifier/verify-evidence.ts";
import { type Appraisal, type AppraisalInput, appraisalOptions, appraise } from "./appraise.ts";
import {
  type AcceptedPins,
  acceptedFor,
  namesOf,
  type NamedVm,
  pinsFor,
  type VmPins,
} from "./pins.ts";
import { findEndorsements } from "./endorsement-folder.ts";
import type { Refresher } from "./refresher.ts";

export interface Attested {
  vm: Vm;
  appraisal: Appraisal;
  /** The report as the service returned it, if it did. */
  report?: AttestationReport;
  pins: VmPins;
  /** The endorsements and options with which the evidence was appraised. */
  basis: { endorsements: Endorsements; options: AppraisalOptions };
}

export type Appraiser = ReturnType<typeof createAppraiser>;

interface AttestOptions {
  /**
   * When the VM was changed (Redis time). A report from before that says nothing about what runs
   * now.
   */
  notBefore?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Appraises as if exactly what the VM measures were pinned. */
  asIfPinned?: boolean;
}

interface AppraiserOptions {
  compute: Pick<Compute, "vms">;
  /** Read for each VM, because it may change. */
  config: { readonly policy: Pick<Policy, "attestation"> };
  register: ReturnType<typeof createEvidenceRegister>;
  accepted: AcceptedPins;
  /** Fetches what the folder of endorsements lacks, if gatehouse.yml allows it. */
  refresher?: Pick<Refresher, "ensure"> | undefined;
  /** The roots that are trusted; by default the vendors'. */
  roots?: TrustedRoots | undefined;
  now(): number;
}

/**
 * An appraiser that reports each appraisal, whoever requested it, before it returns it. `tell` must
 * not reject.
 */
export const withAppraisalsTold = (
  appraiser: Appraiser,
  report: (vm: NamedVm, appraisal: Appraisal) => Promise<void>,
): Appraiser => ({
  ...appraiser,
  async attest(vm, options = {}) {
    const attested = await appraiser.attest(vm, options);
    if (!options.asIfPinned) await report(vm, attested.appraisal);
    return attested;
  },
});

/** The only appraiser of evidence. Commands, gates, cards, and monitors all use it. */
export function createAppraiser(options: AppraiserOptions) {
  const { compute, register, now, roots = vendorRoots } = options;
  const newest = new Newest();

  async function verify(raw: string | undefined, folder: string | undefined) {
    const bytes = bytesInText(raw ?? "");
    const needed = bytes && endorsementsNeeded(bytes);
    if (needed) await options.refresher?.ensure(needed);
    const verifiedBy = (these: Endorsements, among?: Newest) =>
      verifyEncoded(raw, these, { now: now(), roots, newest: among });
    const { endorsements, absent, early: tcbInfo } = await findEndorsements(folder, needed);
    const { intel } = endorsements;
    return {
      absent,
      endorsements,
      verification: verifiedBy(endorsements, newest),
      early: tcbInfo && intel && verifiedBy({ intel: { ...intel, tcbInfo } }),
    };
  }

  /** The pins in gatehouse.yml, or if it has none for the VM, the one that people approved. */
  async function pinsOf(vm: NamedVm): Promise<VmPins> {
    const { pins } = options.config.policy.attestation;
    const inFile = pinsFor(pins, namesOf(vm));
    if (inFile.length > 0) {
      const entry = pins.findIndex((pin) => pinsFor([pin], namesOf(vm)).length > 0);
      const line = lineWords(pins, ["attestation", "pins", entry, "measurements"]);
      return { from: "gatehouse.yml", values: inFile, line };
    }
    const accepted = await options.accepted.of(vm.id);
    if (!accepted) return { from: "nowhere", values: [] };
    const { standing, values } = accepted;
    if (standing !== "kept") return { from: "an approval", values: [], doubt: standing };
    return { from: "an approval", values: [values] };
  }

  return {
    pinsOf,
    /** The pins that people approved. */
    accepted: options.accepted,
    lastVerified: register.lastVerified,
    /**
     * Whether evidence is required of a VM: it is pinned, its evidence was seen before, or one of
     * these records says that attestation is enabled. What the service says can only require more,
     * never less.
     */
    async isAskedOf(
      vm: NamedVm,
      records: readonly (Pick<Vm, "attestation"> | undefined)[],
    ): Promise<boolean> {
      if (records.some((record) => record?.attestation?.enabled === true)) return true;
      const [pins, attestedAt] = await Promise.all([pinsOf(vm), register.lastSeen(vm.id)]);
      const isPinned = pins.values.length > 0 || pins.doubt !== undefined;
      return isPinned || attestedAt !== undefined;
    },
    /**
     * Reads a VM and its report and appraises them. Rejects only when the VM itself can't be read;
     * without a report, the verdict is `could not verify`.
     */
    async attest(
      named: NamedVm,
      { notBefore, signal, asIfPinned = false }: AttestOptions = {},
    ): Promise<Attested> {
      // The time before the reads counts: a change during them isn't in the evidence.
      const readAt = now();
      const [vm, report, pins, attestedAt] = await Promise.all([
        compute.vms.get(named.id, { signal }),
        compute.vms.attestation(named.id, { signal }).catch((error: unknown) => ({ error })),
        pinsOf(named),
        register.lastSeen(named.id),
      ]);
      const policy = options.config.policy.attestation;
      const raw = "error" in report ? undefined : report.report;
      const { verification, early, absent, endorsements } = await verify(raw, policy.endorsements);
      let seen: AppraisalInput["seen"];
      if (verification.is === "authentic") {
        const { facts, digest } = verification;
        const reportId = facts.tee === "snp" ? facts.reportId : undefined;
        seen = await register.seen(vm.id, { digest, reportId }, notBefore);
      }
      const pinned = asIfPinned ? verification.facts : undefined;
      const input: AppraisalInput = {
        vm,
        report,
        verification,
        early,
        absent,
        pins: pinned ? [pinOf(pinned)] : pins.values,
        pinDoubt: asIfPinned ? undefined : pins.doubt,
        policy: acceptedFor(policy.appraisal, namesOf(named)),
        hasEndorsements: policy.endorsements !== undefined,
        seen,
        attestedAt,
        now: now(),
        notBefore,
      };
      const appraisal = appraise(input);
      if (appraisal.verdict === "verified" && !asIfPinned) await register.verified(vm.id, readAt);
      return {
        vm,
        appraisal,
        pins,
        ...("error" in report ? {} : { report }),
        basis: { endorsements, options: appraisalOptions(input) },
      };
    },
  };
}

/**
 * The result of a VM's attestation now, in words for people who decide about it. Undefined when
 * attestation is off and nothing requires it, or it isn't configured. Never rejects; a failed read
 * is put into words, too.
 */
export async function attestationInWords(
  appraiser: Appraiser,
  vm: NamedVm,
  timeoutMs: number,
): Promise<string | undefined> {
  try {
    const read = await appraiser.attest(vm, { signal: AbortSignal.timeout(timeoutMs) });
    const { verdict, reasons, isOff, isUnconfigured } = read.appraisal;
    if (isOff || isUnconfigured) return undefined;
    return verdict === "verified" ? "verified by Gatehouse" : `${verdict}: ${reasons.join("; ")}`;
  } catch {
    return "could not verify: the compute service can't be asked right now";
  }
}

/**
 * Records to which VM a piece of evidence belongs.
 *
 * KEYS of the VM, marks   ARGV VM, ms
 * → for each mark: the VM that it belongs to, and when it was first seen (Redis time, ms)
 */
const claim = `${redisTimeLua}
local found = {}
redis.call('SET', KEYS[1], now, 'PX', ARGV[2])
for n = 2, #KEYS do
  local mark = KEYS[n]
  local first = redis.call('SET', mark, ARGV[1] .. ' ' .. now, 'PX', ARGV[2], 'NX', 'GET')
  if first then redis.call('PEXPIRE', mark, ARGV[2]) end
  table.insert(found, first or (ARGV[1] .. ' ' .. now))
end
return found
`;

/**
 * How long evidence is remembered after it was last seen: longer than anyone would keep a stored
 * report to replay it, and short enough that a deleted VM leaves nothing.
 */
const rememberedMs = 90 * 86_400_000;

/**
 * Records to which VM each piece of genuine evidence belongs, by the SHA-256 of its signed bytes
 * and by REPORT_ID, which SNP draws at random for each boot. The compute service takes no nonce, so
 * only this register can recognize an old report after a restart, and one report that is shown for
 * two VMs.
 */
export function createEvidenceRegister(redis: RedisClient, key: Keys) {
  const run = defineScript(redis, "gatehouseClaimEvidence", claim);
  const ofVm = (vmId: string) => key("evidence", "of", vmId);
  const verifiedOf = (vmId: string) => key("evidence", "verified", vmId);
  async function timeIn(named: string): Promise<number | undefined> {
    const at = await redis.get(named);
    return at === null ? undefined : Number(at);
  }
  return {
    async verified(vmId: string, at: number): Promise<void> {
      await redis.set(verifiedOf(vmId), at, "PX", rememberedMs);
    },
    /** When this VM was last verified (ms). */
    lastVerified: (vmId: string) => timeIn(verifiedOf(vmId)),
    /**
     * When genuine evidence of this VM was last seen (Redis time, ms). The service can't take that
     * back.
     */
    lastSeen: (vmId: string) => timeIn(ofVm(vmId)),

    /**
     * Records the evidence of a VM. Call it only for evidence whose signatures hold, because a
     * made-up report must not be registered in another's place. `notBefore` is Redis time.
     */
    async seen(
      vmId: string,
      marks: { digest: string; reportId?: string | undefined },
      notBefore: number | undefined,
    ): Promise<"before the change" | "under another VM" | undefined> {
      const names = [marks.digest, ...(marks.reportId === undefined ? [] : [marks.reportId])];
      const keys = [ofVm(vmId), ...names.map((name) => key("evidence", name))];
      const owners = (await run(keys, [vmId, rememberedMs])) as string[];
      const marked = owners.map((text) => /^(.*) (\S+)$/s.exec(text) ?? []);
      if (marked.some(([, owner]) => owner !== vmId)) return "under another VM";
      const isOld = marked.some(([, , at]) => notBefore !== undefined && Number(at) < notBefore);
      return isOld ? "before the change" : undefined;
    },
  };
}
