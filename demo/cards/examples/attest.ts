import { compareLacks } from "../../../src/features/attest/drift-probe.ts";
import { renderFleet } from "../../../src/features/attest/render-appraisal.ts";
import { dayMs } from "../../../src/monitor/drift-records.ts";
import { attest } from "../../../src/features/attest/attest.ts";
import { renderDrift } from "../../../src/features/attest/drift-probe.ts";
import { pinsDrop } from "../../../src/features/attest/pins-drop.ts";
import { pinsPropose } from "../../../src/features/attest/pins-propose.ts";
import { pins } from "../../../src/features/attest/pins.ts";
import type { ReadContext } from "../../../src/commands/context.ts";
import { ComputeError } from "../../../src/fleet/compute/compute.ts";
import type { Input } from "../../../src/registry/invocation.ts";
import * as appraisals from "../appraisals.ts";
import { examplesOfChange } from "../changes.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf, someOf, vmsOf } from "../reading.ts";
import { knownVm } from "../requests.ts";

const commands = [attest, pins, pinsPropose, pinsDrop];
type Appraiser = ReadContext["appraiser"];
type Attested = Awaited<ReturnType<Appraiser["attest"]>>;
type Accepted = Awaited<ReturnType<Appraiser["accepted"]["all"]>>;

const reading = (about: About, accepted: unknown = []) => {
  const appraiser = someOf<Appraiser>({
    async attest(vm) {
      if (vm.name === "cache-1")
        throw new ComputeError("unreachable", "GET /v1/vms/{vm_id}/attestation", "away", {});
      const appraisal = vm.name === "web-2" ? appraisals.failed : appraisals.verified;
      const report = { report: "AAAA" };
      return someOf<Attested>({
        vm: someOf<Attested["vm"]>(vm),
        appraisal,
        report,
        pins: { values: [], from: undefined } as never,
      });
    },
    lastVerified: async () => at - 3_600_000,
    accepted: someOf<Appraiser["accepted"]>({ all: async () => accepted as Accepted }),
  });
  return readingOf(about, commands, { appraiser });
};

const answers = (of: (about: About) => Input) => (about: About) =>
  answerOf(attest, of(about), reading(about));

const approved = (about: About) =>
  vmsOf(about)
    .slice(0, 1)
    .map((vm) => ({
      vm,
      values: "ab".repeat(48),
      is: "counts",
      request: "r-7fk3m9q2xw",
      by: about.who,
      at,
    }));

/** The alarm about what a pinned VM lacks, or about its end. */
function lacking(vm: string, is: "missing" | "resolved") {
  const known = knownVm(vm);
  const lack = { what: "AMD's revocation list for Genoa is missing", since: at - dayMs };
  const record = {
    vm: known,
    mark: "",
    reason: "",
    since: at - dayMs,
    lacks: is === "missing" ? [] : [lack],
  };
  const appraisal = {
    ...appraisals.verified,
    isJudged: true,
    isAsked: true,
    ...(is === "missing" ? { verdict: "could not verify" as const, reasons: [lack.what] } : {}),
  };
  const { changes } = compareLacks(new Map([[known.id, record]]), [{ vm: known, appraisal }], {
    pinned: new Set([known.id]),
    placeOf: () => "access",
    now: at,
  });
  const [change] = changes;
  if (!change) throw new Error("nothing changed");
  return change.alarm;
}

const pinFacts = { vms: [], values: "ab".repeat(48) };

export const examples: readonly Example[] = [
  { name: "/vm attest", make: answers(({ vm }) => ({ vm })) },
  { name: "/vm attest, of a VM that fails", make: answers(() => ({ vm: "web-2" })) },
  {
    name: "/gatehouse pins",
    make: (about) => answerOf(pins, {}, reading(about, approved(about))),
  },
  { name: "/gatehouse pins, without any", make: (about) => answerOf(pins, {}, reading(about)) },
  ...examplesOfChange(pinsPropose, { input: pinFacts }),
  ...examplesOfChange(pinsDrop, { input: pinFacts }),
  {
    name: "a failed attestation",
    reader: "alerts channel",
    make: ({ vm }) => renderDrift(knownVm(vm), appraisals.failed),
    push: "🔴 Attestation of db-1 in shop failed: the measurement matches no pin.",
  },
  {
    name: "the end of a failed attestation",
    reader: "alerts channel",
    make: ({ vm }) => renderDrift(knownVm(vm), appraisals.verified),
    push: "🟢 db-1 in shop: attestation is verified again.",
  },
  {
    name: "/vm attest, of several VMs",
    make: (about) => {
      const judged = [appraisals.verified, appraisals.failed, undefined];
      const rows = vmsOf(about)
        .slice(0, 3)
        .map((vm, n) => ({ vm, appraisal: judged[n], unread: "it can't be reached" }));
      return renderFleet("web-*", rows as never, at).message;
    },
  },
  { name: "/vm attest --raw", make: answers(({ vm }) => ({ vm, raw: true })) },
  { name: "/vm attest --file", make: answers(({ vm }) => ({ vm, file: true })) },
  {
    name: "VMs that can't be verified",
    reader: "alerts channel",
    make: ({ vm }) => lacking(vm, "missing"),
    push: "❔ db-1 can't be verified: AMD's revocation list for Genoa is missing.",
  },
  {
    name: "VMs that can be verified again",
    reader: "alerts channel",
    make: ({ vm }) => lacking(vm, "resolved"),
    push: "🟢 Resolved for all pinned VMs: AMD's revocation list for Genoa is missing.",
  },
];
