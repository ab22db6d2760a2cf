import { verifyEvidence, endorsementsNeeded } from "../../src/verifier/verify-evidence.ts";
import { anyEvidence, type EvidenceCase } from "./evidence-cases.ts";
import { createTally, type Fuzzed, type FuzzOptions, sampled } from "./fuzzed.ts";

const maxMs = 20;

/** Evidence and endorsements that are changed or made up: none is taken for genuine, none throws, none takes long. */
export function fuzzEvidence({ cases, seed, atAnySpeed = false }: FuzzOptions): Fuzzed {
  const tally = createTally();
  const reasons = new Set<string>();
  for (const one of sampled(anyEvidence, { cases, seed })) {
    tally.count();
    try {
      const began = performance.now();
      const { is, problems } = verify(one);
      let ms = performance.now() - began;
      // Neither a busy machine nor one collection of garbage is slowness of the verifier: what was slow is tried again, in
      // time of this thread
      for (let again = 0; again < 5 && ms > maxMs && !atAnySpeed; again += 1)
        ms = Math.min(ms, threadTimeOf(one));
      tally.took(ms);
      if (ms > maxMs && !atAnySpeed) tally.wrong(`${ms.toFixed(0)} ms for ${show(one)}`);
      if (is === "authentic") {
        tally.accept();
        tally.wrong(`taken for genuine: ${show(one)}`);
      }
      for (const { reason } of problems) reasons.add(reason);
    } catch (error) {
      tally.crash(`${show(one)}: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
    }
  }
  return tally.result(`${reasons.size} different reasons`);
}

function verify({ vector, bytes, endorsements }: EvidenceCase) {
  endorsementsNeeded(bytes);
  return verifyEvidence(bytes, endorsements, { now: Date.parse(vector.at) });
}

function threadTimeOf(one: EvidenceCase): number {
  const began = process.threadCpuUsage();
  verify(one);
  const { user, system } = process.threadCpuUsage(began);
  return (user + system) / 1000;
}

const show = ({ kind, vector, bytes }: EvidenceCase): string =>
  `${kind}, ${vector.id}, ${bytes.toString("base64").slice(0, 200)}`;
