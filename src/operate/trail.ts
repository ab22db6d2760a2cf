import { renderHead } from "../audit/render.ts";
import { startSealer } from "../audit/sealer.ts";
import { createTrail } from "../audit/trail.ts";
import type { Services } from "./services.ts";

/**
 * The audit trail: sealed within a second, its head kept elsewhere once a day. What can't be sealed freezes all changes;
 * `onUnfit` is called where only this process can't, and another one does.
 */
export function startTrail(
  on: Pick<Services, "config" | "log" | "opened" | "redis" | "key" | "store">,
  onUnfit: (why: string) => void,
): void {
  const { log, config, store, opened } = on;
  opened(
    startSealer({
      ...on,
      dataDir: config.dataDir,
      onUnfit,
      onStuck: (why, cause) => {
        store
          .freeze({ by: "Gatehouse", cause, reason: why })
          .catch((error: unknown) => log.error("audit.freeze-failed", { error }));
      },
    }),
  );
}

/** Once a day (UTC, Redis time), by whichever process comes first: in the audit channel and in the log. */
export async function announceHead(
  { redis, key, log, announce }: Pick<Services, "redis" | "key" | "log" | "announce">,
  channelId: string | undefined,
): Promise<void> {
  const trail = createTrail(redis, key);
  if (channelId === undefined) return;
  const head = await trail.head();
  if (!head) return;
  const day = new Date(await trail.now()).toISOString().slice(0, 10);
  const notice = { id: `audit-head-${day}`, channelId, message: renderHead(head) };
  if (await announce(notice)) log.info("audit.head", { seq: head.seq, hash: head.hash });
}
