import * as z from "zod";
import { allowances, type AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import { products } from "../verifier/roots.ts";
import { tcbStatuses } from "../verifier/tdx/tcb.ts";
import { count, duration, glob, measurement, section } from "./policy-values.ts";

/** What is accepted of these VMs. */
export interface AppraisalRule {
  /** Globs over VM names; undefined: all. */
  targets: readonly string[] | undefined;
  policy: AppraisalPolicy;
}

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  z.enum(names, { error: `must be one of ${names.join(", ")}` });

const daySentence = 'must be a day like "2026-12-31"';

/** Becomes milliseconds: the last second of that day in UTC. */
const lastDay = z
  .string(daySentence)
  .refine((text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)), daySentence)
  .transform((text) => Date.parse(`${text}T23:59:59Z`));

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
}).transform(({ product, models, ...parts }) => ({
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

const rule = section({
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

const addressSentence = "must be an address like https://kdsintf.amd.com";

/** Without the slash at its end. */
const address = (usual: string) =>
  z
    .string(addressSentence)
    .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""), addressSentence)
    .transform((text) => text.replace(/\/+$/, ""))
    .prefault(usual);

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
  appraisal: z.array(rule).default([]),
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
