import type { Appraiser } from "../../attestation/appraiser.ts";
import { isAttestedAfter } from "../../core/deliver/after-result.ts";
import {
  type Fact,
  type FactQuery,
  type FactSource,
  type KnownTarget,
  mostExplained,
} from "../../core/facts/fact.ts";
import { deadlineSignal } from "../../deadline.ts";
import { atTime, md, name } from "../../messages/markdown.ts";
import { type DriftRecord, type DriftRecords, isMissing } from "../../monitor/drift-records.ts";
import { type ChangeCommand, calledName } from "../../registry/define.ts";
import { explainFailure, explainLack } from "./explain-failure.ts";

/** How long an answer waits for the evidence of its VM (ms). */
const readWithinMs = 5_000;

/**
 * Says which pinned VMs fail attestation, can't be verified, or were verified. A rollout that boots
 * one that isn't verified would stop there. A fresh answer appraises the evidence anew, which also
 * puts its result on record; where it can't be read now, the last one counts.
 */
export const attestationFacts = (on: {
  records: Pick<DriftRecords, "readRecords">;
  appraiser: Pick<Appraiser, "attest" | "lastVerified" | "pinsOf">;
}): FactSource => ({
  name: "what fails attestation",
  async read(query) {
    const vms = query.targets.filter(({ kind }) => kind === "vm");
    if (query.isFresh) await Promise.all(vms.map((vm) => appraiseAnew(vm, on)));
    const known = await on.records.readRecords(vms.map(({ id }) => id));
    const failing = vms.filter(({ id }) => (known.get(id)?.mark ?? "") !== "");
    const explained = new Set(failing.slice(0, mostExplained));
    const facts = vms.map(async (vm): Promise<readonly Fact[]> => {
      const record = known.get(vm.id);
      if (!record) return [];
      if (record.mark === "") return unlessFailing(vm, record, query);
      const failure = { vm, record, ...query };
      if (!explained.has(vm)) return [explainFailure(failure)];
      const [last, verifiedAt = 0, { from }] = await Promise.all([
        query.requests.on(vm.id),
        on.appraiser.lastVerified(vm.id),
        on.appraiser.pinsOf(vm),
      ]);
      return [
        explainFailure({
          ...failure,
          known: { last, verifiedAt, isInFile: from === "gatehouse.yml" },
        }),
      ];
    });
    return (await Promise.all(facts)).flat().map((fact) => ({ ...fact, blocks: blocksOf(fact) }));
  },
});

const blocksOf =
  ({ severity }: Fact): NonNullable<Fact["blocks"]> =>
  (command: ChangeCommand) => {
    if (severity === "well") return undefined;
    return isAttestedAfter(command) ? "halts" : "note";
  };

async function appraiseAnew(
  vm: KnownTarget,
  { appraiser }: { appraiser: Pick<Appraiser, "attest" | "pinsOf"> },
): Promise<void> {
  const { from } = await appraiser.pinsOf(vm);
  if (from === "nowhere") return;
  await appraiser.attest(vm, { signal: deadlineSignal(readWithinMs) }).catch(() => undefined);
}

/** What its record says of a VM that isn't known to fail. */
function unlessFailing(
  vm: KnownTarget,
  { lacks, verifiedAt }: DriftRecord,
  { commands, now }: FactQuery,
): readonly Fact[] {
  const missing = lacks.filter(isMissing);
  if (missing.length > 0) return missing.map((lack) => explainLack(lack, { vm, commands, now }));
  if (verifiedAt === undefined) return [];
  return [
    {
      kind: "verified",
      about: vm,
      severity: "well",
      sign: "✅",
      text: md`The attestation of ${name(calledName(vm))} was verified ${atTime(verifiedAt, now)}.`,
      since: verifiedAt,
    },
  ];
}
