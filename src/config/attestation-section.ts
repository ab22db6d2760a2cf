import * as z from "zod";
import { matchesGlob } from "../text/glob.ts";
import { allowances, type AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import { exactTime } from "../verifier/der.ts";
import { products } from "../verifier/roots.ts";
import { tcbPartNames } from "../verifier/snp/report.ts";
import { tcbStatuses } from "../verifier/tdx/tcb.ts";
import { count, duration, glob, measurement, readAs, section } from "./policy-values.ts";

/** What is accepted of these VMs. */
export interface AppraisalRule {
  /** Globs over VM names; undefined: all. */
  targets: readonly string[] | undefined;
  policy: AppraisalPolicy;
}

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, { error: `must be one of ${names.join(", ")}` });

/** Becomes milliseconds: the last second of that day in UTC. */
const lastDay = readAs('must be a day of the calendar like "2026-12-31"', (text) =>
  exactTime(`${text}T23:59:59Z`),
);

const part = count(0, 255).optional();

const minimum = section({
  product: oneOf(products),
  /** CPUID models; undefined: every one of the product. */
  models: z.array(count(0, 255)).min(1, "must name at least one model").optional(),
  fmc: part,
  bootloader: part,
  tee: part,
  snp: part,
  microcode: part,
})
  .refine((parts) => tcbPartNames.some((name) => parts[name] !== undefined), {
    message: `must name at least one part: ${tcbPartNames.join(", ")}`,
  })
  .refine(({ product, fmc }) => fmc === undefined || product === "Turin", {
    path: ["fmc"],
    message: "is a part of Turin's firmware alone: no other processor could meet it",
  })
  .transform(({ product, models, ...parts }) => ({
    product,
    ...(models ? { models } : {}),
    tcb: Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)),
  }));

const accepted = section({
  status: oneOf(tcbStatuses),
  /** Accepted with these at most: a level with another one is refused. */
  advisories: z
    .array(z.string().regex(/^[\w-]{1,40}$/, "must be an advisory like INTEL-SA-00837"))
    .default([]),
  until: lastDay,
});

/** A rule of `attestation.appraisal`; `attestation check` reads its options by it, too. */
export const appraisalRule = section({
  targets: z.array(glob).min(1, "must name at least one VM").optional(),
  allow: z.array(oneOf(allowances)).default([]),
  accept: z.array(accepted).default([]),
  minimumTcb: z.array(minimum).default([]),
  vmpl: count(0, 3).default(0),
  requireBinding: z.boolean("must be true or false").default(false),
  /** Of the vendors' lists, beside their own end. */
  maxAge: duration.optional(),
}).transform(
  ({ targets, allow, accept, minimumTcb, vmpl, requireBinding, maxAge }): AppraisalRule => ({
    targets,
    policy: {
      allows: allow,
      statuses: accept,
      minimumTcb,
      vmpl,
      needsBinding: requireBinding,
      ...(maxAge === undefined ? {} : { maxEndorsementAgeMs: maxAge }),
    },
  }),
);

/**
 * Whether whatever one glob names is named by the other, too. A `*` stands for any text, so that a glob in which it is read as
 * a letter covers no more than it does; a `?` there could stand for a `*`, and is left out.
 */
const covers = (wider: string, other: string) =>
  matchesGlob(wider, other) && !(wider.includes("?") && other.includes("*"));

/** The first match wins: of the same VMs, only the rule that stands first ever counts. */
function shadowOf(rules: readonly AppraisalRule[], at: number): number | undefined {
  const targets = rules[at]?.targets;
  const before = rules
    .slice(0, at)
    .findIndex(
      ({ targets: theirs }) =>
        theirs === undefined ||
        targets?.every((one) => theirs.some((other) => covers(other, one))) === true,
    );
  return before < 0 ? undefined : before;
}

/** Without the slash at its end. */
const address = (usual: string) =>
  readAs("must be an address like https://kdsintf.amd.com", (text) =>
    /^https?:$/.test(URL.parse(text)?.protocol ?? "") ? text.replace(/\/+$/, "") : undefined,
  ).prefault(usual);

/** Where endorsements are fetched from. */
const refresh = section({
  /** Intel's PCS, or a PCCS. */
  intel: address("https://api.trustedservices.intel.com"),
  intelRoot: address("https://certificates.trustedservices.intel.com/IntelSGXRootCA.der"),
  amd: address("https://kdsintf.amd.com"),
});

/** `attestation` in gatehouse.yml: what is expected of VMs, and what is accepted of the machines under them. */
export const attestationSection = section({
  pins: z
    .array(
      section({
        targets: z.array(glob).min(1, "must name at least one VM"),
        measurements: z.array(measurement).min(1, "must contain at least one measurement"),
      }),
    )
    .default([]),
  /** First match wins; without a match nothing is accepted that isn't current. */
  appraisal: z
    .array(appraisalRule)
    .default([])
    .superRefine((rules, context) => {
      for (const at of rules.keys()) {
        const before = shadowOf(rules, at);
        if (before !== undefined)
          context.addIssue({
            code: "custom",
            path: [at],
            message: `can never count: rule ${before + 1} before it speaks of the same VMs, and the first that does wins; put the narrower or stricter one first, or make them one`,
          });
      }
    }),
  /** A restore from an older snapshot needs one more approval. */
  maxSnapshotAge: duration.optional(),
  /** The folder of what Intel and AMD have signed; docs/attestation.md names its files. */
  endorsements: z.string().min(1, "must be a folder").optional(),
  /** Fetches what that folder lacks from the vendors; undefined: an operator fills it. */
  refresh: refresh.optional(),
})
  .refine(({ refresh: from, endorsements }) => !from || endorsements !== undefined, {
    path: ["refresh"],
    message: "needs attestation.endorsements: the folder that is filled",
  })
  .prefault({})
  .transform(({ maxSnapshotAge: maxSnapshotAgeMs, ...rest }) => ({ ...rest, maxSnapshotAgeMs }));
