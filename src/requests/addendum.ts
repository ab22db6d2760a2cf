import { afterChange } from "../attestation/after-change.ts";
import { attest } from "../attestation/attest.ts";
import { pinsFor } from "../attestation/pins.ts";
import type { Compute, Vm } from "../compute/compute.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { lines, Markdown, md } from "../messages/text.ts";
import type { Policy } from "../policy-file.ts";
import type { StoredRequest } from "./record.ts";

/** After these the VM runs something anew: running is not trusted. */
export const attestedAgain = new Set(["vm start", "vm restart", "vm resize", "vm restore"]);

/**
 * What a result says about attestation. One look, right after the VM has settled: a report that isn't there yet is said
 * to be missing, never assumed.
 */
export function createAddendum(by: {
  compute: Compute;
  policy: Policy;
  now(): number;
  log: Log;
}): (request: StoredRequest) => Promise<Markdown | undefined> {
  return async ({ record, progress, state }) => {
    if (state !== "done" || progress.already || !attestedAgain.has(record.command))
      return undefined;
    const vm = (progress.after ?? progress.before) as Vm | undefined;
    if (vm?.attestation?.enabled !== true || vm.status !== "RUNNING") return undefined;
    const { target } = record;
    const names = [
      target.name,
      target.id,
      `${target.projectName ?? target.projectId}/${target.name}`,
    ];
    try {
      const attested = await attest(target.id, {
        compute: by.compute,
        pins: pinsFor(by.policy.attestation.pins, names),
        now: by.now,
        notBefore: progress.sentAt,
        signal: AbortSignal.timeout(by.policy.timing.httpTimeoutMs),
      });
      const found = afterChange(attested.vm, attested.appraisal);
      if (!found) return undefined;
      return found.isAlarm ? lines(found.line, callOperators(by.policy)) : found.line;
    } catch (error) {
      by.log.warn("attestation.unread", { vm: target.id, why: messageOf(error) });
      return md`Whether it is attested again could not be read. ${new Markdown("`/vm attest`")} looks again.`;
    }
  };
}

/** What runs is not what policy allows: that is for everybody who operates. */
function callOperators({ access }: Policy): Markdown {
  const called = access.operate.flatMap((id) => {
    if (/^S[A-Z0-9]{2,}$/.test(id)) return [`<!subteam^${id}>`];
    return /^[UW][A-Z0-9]{2,}$/.test(id) ? [`<@${id}>`] : [];
  });
  return new Markdown(called.join(" "));
}
