import { readStoredPolicy } from "../audit/stored-policy.ts";
import type { ChangingPolicy, PolicyText } from "../config/changing-policy.ts";
import type { Journal } from "../core/request/journal.ts";
import type { RedisPlace } from "../redis/redis.ts";
import { type Claim, type InForce, adoptPolicy, claimOf, hasRulesOf } from "./adopt-policy.ts";

/** How many of the canceled requests an announcement names, and how many are counted. */
const maxNamed = 10;
const maxRead = 1000;

export interface OfferOptions extends RedisPlace {
  file: ChangingPolicy;
  store: Journal;
  wakeNotice(id: string): void;
  /** Failpoint. */
  at: ((point: "policy-adopted", version: string) => Promise<void>) | undefined;
}

/** Reads the policy in force, and parses its text as if it were this process's file. */
export async function readInForce({
  redis,
  key,
  file,
}: RedisPlace & { file: ChangingPolicy }): Promise<InForce> {
  const stored = await readStoredPolicy(redis, key);
  return { stored, textInForce: stored && file.parse(stored.text) };
}

/** Puts a text in force, if it may be. Resolves with what is in force then. */
export async function offerPolicy(
  own: PolicyText,
  on: OfferOptions,
): Promise<{ claim: Claim; inForce: InForce }> {
  const { redis, key, file, wakeNotice } = on;
  for (;;) {
    const inForce = await readInForce(on);
    const claim = claimOf(own, inForce);
    if (claim !== "replaces") return { claim, inForce };
    const { stored, textInForce } = inForce;
    const isOther = stored !== undefined && !hasRulesOf(inForce, own);
    const waiting = isOther ? await waitingUnderOthers(own.policyVersion, on) : [];
    const adopted = await adoptPolicy(redis, key, own, {
      before: inForce,
      canceled: waiting.slice(0, maxNamed),
      canceledCount: waiting.length,
      // A change of the audit channel is also announced in the former one.
      channels: [file.asWritten, textInForce?.policy, own.policy].map(
        (policy) => policy?.audit?.channel,
      ),
      wakeNotice,
    });
    if (!adopted) continue;
    if (stored !== undefined) await on.at?.("policy-adopted", adopted.rules);
    return { claim, inForce: { stored: adopted, textInForce: own } };
  }
}

/**
 * IDs of drafts and of authorized requests that weren't sent; none of them will run. They are
 * listed while they still wait.
 */
async function waitingUnderOthers(
  rules: string,
  { store }: { store: Journal },
): Promise<readonly string[]> {
  const open = await store.getMany(await store.recentIds({ open: true }, maxRead));
  return open
    .filter(({ state }) => state === "draft" || state === "authorized")
    .filter(({ record }) => record.policyVersion !== rules)
    .map(({ record }) => record.id);
}
