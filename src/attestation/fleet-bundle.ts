import { UserError } from "../errors.ts";
import { canonical } from "../text/canonical-json.ts";
import { parseJson } from "../text/parse-json.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import {
  bySigner,
  type EvidenceBundle,
  type JudgedBundle,
  resultOf,
  signed,
  type Signing,
  unsignedBundle,
  verdicts,
} from "./bundle.ts";
import type { FleetRow } from "./render-fleet.ts";

const format = "gatehouse-fleet-evidence-1";

type Judgeable = Omit<EvidenceBundle, "endorsements">;

/** The bundles of several VMs, under one signature. */
export interface FleetBundle {
  format: typeof format;
  /** Each once: one vendor's lists stand behind many VMs. */
  endorsements: readonly EvidenceBundle["endorsements"][];
  /** `by` is a place in `endorsements`. */
  vms: readonly (Judgeable & { by: number })[];
  /** Of whom there is no raw report, and why. */
  without: readonly { vm: Pick<EvidenceBundle["vm"], "id" | "name">; why: string }[];
  auditHead?: EvidenceBundle["auditHead"];
  signedBy?: string;
  signature?: string;
}

export function fleetBundleOf(rows: readonly FleetRow[], signing: Signing): FleetBundle {
  const places = new Map<string, number>();
  const endorsements: EvidenceBundle["endorsements"][] = [];
  const vms: FleetBundle["vms"][number][] = [];
  const without: FleetBundle["without"][number][] = [];
  for (const { vm, attested, unread } of rows) {
    const bundle = attested && unsignedBundle(vm, attested);
    if (!bundle) {
      const why = unread ?? attested?.appraisal.reasons.join("; ") ?? "";
      without.push({ vm: { id: vm.id, name: vm.name }, why });
      continue;
    }
    const { endorsements: its, ...rest } = bundle;
    const text = canonical(its);
    const by = places.get(text) ?? endorsements.push(its) - 1;
    places.set(text, by);
    vms.push({ ...rest, by });
  }
  return signed({ format, endorsements, vms, without } as const, signing);
}

/** Undefined for any other file. */
export function readFleetBundle(file: Buffer): FleetBundle | undefined {
  const json = file[0] === 0x7b ? parseJson(file.toString("utf8")) : undefined;
  if (typeof json !== "object" || json === null || !("format" in json)) return undefined;
  if (json.format !== format) return undefined;
  const { endorsements, vms, without } = json as Partial<FleetBundle>;
  if ([endorsements, vms, without].every(Array.isArray)) return json as FleetBundle;
  throw new UserError("The bundle isn't whole");
}

/** Judges each VM again, the worst first; the verdict is the worst of all. A VM without a report could not be verified. */
export function judgeFleetBundle(
  bundle: FleetBundle,
  roots: TrustedRoots,
  trusted: readonly string[],
): JudgedBundle {
  const judged = [
    ...bundle.vms.map(({ by, ...its }) => {
      const endorsements = bundle.endorsements[by];
      if (!endorsements) throw new UserError("The bundle isn't whole");
      const { verdict, reasons } = resultOf({ ...its, endorsements }, roots);
      const said = verdict === its.verdict ? "" : ` (the bundle says ${its.verdict})`;
      const why = [...new Set(reasons.map(({ says }) => says))].join("; ");
      return { vm: its.vm, at: its.at, verdict, why: `${why}${said}` };
    }),
    ...bundle.without.map(({ vm, why }) => ({
      vm,
      at: undefined,
      verdict: "could not verify" as const,
      why: `no report: ${why}`,
    })),
  ].toSorted((a, b) => verdicts.indexOf(a.verdict) - verdicts.indexOf(b.verdict));
  const counts = verdicts.flatMap((verdict) => {
    const many = judged.filter((one) => one.verdict === verdict).length;
    return many === 0 ? [] : [`${many} ${verdict}`];
  });
  return bySigner(bundle, trusted, {
    verdict: judged[0]?.verdict ?? "could not verify",
    lines: [
      `${judged.length} VMs: ${counts.join(", ")}`,
      ...judged.map(({ vm, at, verdict, why }) => {
        const when = at === undefined ? "" : `, at ${new Date(at).toISOString().slice(0, 19)}Z`;
        return `  ${verdict}: ${vm.name} (${vm.id})${when}: ${why}`;
      }),
    ],
  });
}
