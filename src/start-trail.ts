import { anchorDaily } from "./audit/anchor-head.ts";
import { notePolicy } from "./audit/note-policy.ts";
import { startSealer } from "./audit/sealer.ts";
import type { Connected } from "./connect.ts";
import { startRounds } from "./rounds.ts";

const anchorEveryMs = 600_000;

/** The audit trail: sealed within a second, its head kept elsewhere once a day. What can't be sealed freezes all changes. */
export function startTrail(on: Connected): void {
  const { redis, key, log, config, store, opened, announce } = on;
  const { dataDir, policy, policyVersion } = config;
  notePolicy(redis, key, policyVersion).catch((error: unknown) =>
    log.error("audit.policy-not-noted", { error }),
  );
  opened(
    startSealer({
      redis,
      key,
      log,
      dataDir,
      onStuck: (why) => {
        store
          .freeze({ by: "Gatehouse", reason: why })
          .catch((error: unknown) => log.error("audit.freeze-failed", { error }));
      },
    }),
    (it) => it.close(),
  );
  const channelId = policy.audit?.channel;
  if (channelId === undefined) return;
  const post = async (message: Parameters<typeof announce>[0]["message"]) => {
    const day = new Date().toISOString().slice(0, 10);
    await announce({ id: `audit-head-${day}`, channelId, message });
  };
  opened(
    startRounds(
      "audit-head",
      anchorEveryMs,
      () => anchorDaily({ redis, key, dataDir, log, post }),
      log,
    ),
    (it) => it.close(),
  );
}
