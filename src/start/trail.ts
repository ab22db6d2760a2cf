import { anchorDaily } from "../audit/anchor-head.ts";
import { startSealer } from "../audit/sealer.ts";
import type { Message } from "../messages/message.ts";
import type { Services } from "./services.ts";
import { startRounds } from "../redis/rounds.ts";

const anchorEveryMs = 600_000;

/**
 * The audit trail: sealed within a second, its head kept elsewhere once a day. What can't be sealed freezes all changes;
 * `onUnfit` is called where only this process can't, and another one does.
 */
export function startTrail(on: Services, onUnfit: (why: string) => void): void {
  const { redis, key, log, config, store, opened, announce } = on;
  const { dataDir } = config;
  opened(
    startSealer({
      redis,
      key,
      log,
      dataDir,
      onUnfit,
      onStuck: (why, cause) => {
        store
          .freeze({ by: "Gatehouse", cause, reason: why })
          .catch((error: unknown) => log.error("audit.freeze-failed", { error }));
      },
    }),
  );
  async function anchor(): Promise<void> {
    const channelId = config.policy.audit?.channel;
    if (channelId === undefined) return;
    const post = async (message: Message) => {
      const day = new Date().toISOString().slice(0, 10);
      await announce({ id: `audit-head-${day}`, channelId, message });
    };
    await anchorDaily({ redis, key, dataDir, log, post });
  }
  opened(startRounds("audit-head", anchorEveryMs, anchor, log));
}
