import { renderHead } from "../audit/render.ts";
import { startSealer } from "../audit/sealer.ts";
import { Trail } from "../audit/trail.ts";
import type { Announce } from "../core/deliver/notices.ts";
import type { Journal } from "../core/request/journal.ts";
import type { Log } from "../log/log.ts";
import type { RedisPlace } from "../redis/redis.ts";
import type { Opened } from "./opened.ts";

/**
 * Runs the audit trail, which is sealed within a second. When it can't be sealed, all changes are
 * frozen. `onUnfit` is called when only this process can't seal it, while another one can.
 */
export function startTrail(
  on: RedisPlace & {
    config: { dataDir: string };
    log: Log;
    opened: Opened;
    store: { freeze: Journal["freeze"] };
  },
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

/**
 * Posts the head once a day (UTC, Redis time) in the audit channel and logs it; whichever process
 * comes first does.
 */
export async function announceHead(
  { redis, key, log, announce }: RedisPlace & { log: Log; announce: Announce },
  channelId: string | undefined,
): Promise<void> {
  const trail = new Trail(redis, key);
  if (channelId === undefined) return;
  const head = await trail.head();
  if (!head) return;
  const day = new Date(await trail.now()).toISOString().slice(0, 10);
  const notice = { id: `audit-head-${day}`, channelId, message: renderHead(head) };
  if (await announce(notice)) log.info("audit.head", { seq: head.seq, hash: head.hash });
}
