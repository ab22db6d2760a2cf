import { setTimeout as pause } from "node:timers/promises";
import { Agent } from "undici";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { startRounds } from "../redis/rounds.ts";
import { endorsementNamed, inspectEndorsement } from "../verifier/inspect-endorsement.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import type { Needed } from "../verifier/verify-evidence.ts";
import { readEndorsement, storeEndorsement } from "./endorsement-folder.ts";
import { namesNeeded } from "./endorsements.ts";
import {
  addressOf,
  FetchError,
  fetchEndorsement,
  type VendorAddresses,
} from "./fetch-endorsement.ts";

interface RefresherOptions {
  folder: string;
  addresses: VendorAddresses;
  roots: TrustedRoots;
  log: Log;
  now(): number;
  /** How often it looks for what is due. */
  everyMs?: number;
  /** One request. */
  timeoutMs?: number;
  /** How long a verification waits for what is missing. */
  patienceMs?: number;
}

export type Refresher = ReturnType<typeof createRefresher>;

const hourMs = 3_600_000;
const firstRetryMs = 10_000;

/**
 * Keeps the folder of endorsements filled with what the evidence that was seen needs: what is missing at once, what is there
 * from half of its life on, at a moment of each process's own. What can't be had is tried again later and later, an hour
 * apart at most; until it ends, what is in the folder goes on to count.
 */
export function createRefresher(options: RefresherOptions) {
  const { folder, addresses, roots, log, now } = options;
  const { everyMs = 60_000, timeoutMs = 10_000, patienceMs = 3000 } = options;
  const dispatcher = new Agent({ connections: 4, connect: { timeout: timeoutMs } });
  const due = new Map<string, number>();
  const failures = new Map<string, number>();
  const running = new Map<string, Promise<void>>();

  /** When what is in the folder should be renewed; at once where it isn't there or worth nothing. */
  async function dueAt(name: string): Promise<number> {
    const kind = endorsementNamed(name);
    const files = kind && (await readEndorsement(folder, name));
    if (!kind || !files) return 0;
    const inspected = inspectEndorsement(kind, files, { roots, now: now() });
    if ("problem" in inspected || now() > inspected.until) return 0;
    // A chip's certificate never changes
    if (kind.is === "amd-vcek") return Infinity;
    const { from, until } = inspected;
    return from + (until - from) * (0.5 + Math.random() * 0.1);
  }

  async function renew(name: string): Promise<void> {
    const kind = endorsementNamed(name);
    if (!kind) return;
    const url = addressOf(kind, addresses);
    try {
      const files = await fetchEndorsement(url, { dispatcher, timeoutMs });
      const stored = await storeEndorsement(folder, name, files, { now: now(), roots, url });
      if (typeof stored !== "string") throw new FetchError(`refused: ${stored.refused}`);
      log.info("endorsements.renewed", { name, url, stored });
      failures.delete(name);
      // A vendor that has nothing newer yet is not asked over and over
      due.set(name, Math.max(await dueAt(name), now() + hourMs));
    } catch (error) {
      const times = (failures.get(name) ?? 0) + 1;
      failures.set(name, times);
      const asked = error instanceof FetchError ? error.retryAfterMs : undefined;
      const backoff = Math.min(hourMs, firstRetryMs * 2 ** (times - 1)) * (0.5 + Math.random() / 2);
      due.set(name, now() + Math.max(backoff, Math.min(asked ?? 0, hourMs)));
      log.warn("endorsements.not-renewed", { name, url, why: messageOf(error), times });
    }
  }

  /** One request for each at a time. */
  function once(name: string): Promise<void> {
    const found = running.get(name);
    if (found) return found;
    const renewing = renew(name).finally(() => running.delete(name));
    running.set(name, renewing);
    return renewing;
  }

  async function round(): Promise<void> {
    const names = [...due].filter(([, at]) => at <= now()).map(([name]) => name);
    await Promise.all(names.map((name) => once(name)));
  }

  const rounds = startRounds("endorsements", everyMs, round, log);
  return {
    /** Asks for what evidence needs and the folder lacks, and waits for it a little. Never rejects. */
    async ensure(needed: Needed): Promise<void> {
      const missing: Promise<void>[] = [];
      for (const name of namesNeeded(needed)) {
        // oxlint-disable-next-line no-await-in-loop -- four small files, the first time only
        if (!due.has(name)) due.set(name, await dueAt(name));
        if ((due.get(name) ?? 0) <= now() || running.has(name)) missing.push(once(name));
      }
      if (missing.length === 0) return;
      await Promise.race([Promise.all(missing), pause(patienceMs, undefined, { ref: false })]);
    },
    round: rounds.now,
    async close(): Promise<void> {
      await Promise.all([rounds.close(), dispatcher.destroy()]);
      await Promise.allSettled(running.values());
    },
  };
}
