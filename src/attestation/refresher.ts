import { setTimeout as pause } from "node:timers/promises";
import { Agent, EnvHttpProxyAgent } from "undici";
import { type Proxies, proxyOptions } from "../config/proxy.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { startRounds } from "../redis/rounds.ts";
import { endorsementNamed, inspectEndorsement } from "../verifier/inspect-endorsement.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import { isOfIntel } from "../verifier/tdx/verify-quote.ts";
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
  /** The way to the vendors, where it isn't direct. */
  proxies?: Proxies | undefined;
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

/** KDS answers about one certificate per 10 s and client; as many at once as a rack that is switched on needs. */
const chipEveryMs = 10_000;
const mostChipsAtOnce = 12;
/** Left for chips that are asked for the first time: what failed before waits until there is more. */
const keptForNew = 6;
/** Chips that no vendor has vouched for yet. Whatever is over them is forgotten until it is asked for again. */
const mostUnknown = 256;
/** After that, an hour apart, only what evidence still asks for is tried again. */
const mostRetries = 8;

/**
 * Keeps the folder of endorsements filled with what the evidence that was seen needs: what is missing at once, what is there
 * from half of its life on, at a moment of each process's own. What can't be had is tried again later and later, an hour
 * apart at most; until it ends, what is in the folder goes on to count.
 *
 * Evidence asks before its signature can be checked, and a chip ID can be made up. So a quote must stand under Intel's root
 * before anything is fetched for it, and calls for chips that aren't in the folder have a budget of the process.
 */
export function createRefresher(options: RefresherOptions) {
  const { folder, addresses, roots, log, now } = options;
  const { everyMs = 60_000, timeoutMs = 10_000, patienceMs = 3000 } = options;
  const connections = { connections: 4, connect: { timeout: timeoutMs } };
  const dispatcher = options.proxies
    ? new EnvHttpProxyAgent({ ...connections, ...proxyOptions(options.proxies) })
    : new Agent(connections);
  const due = new Map<string, number>();
  /** Of `due`, chips whose certificate was never there. */
  const unknown = new Set<string>();
  const budget = { calls: mostChipsAtOnce, at: now() };
  const failures = new Map<string, number>();
  const running = new Map<string, Promise<void>>();

  /** When what is in the folder should be renewed; at once where it isn't there or worth nothing. */
  async function dueAt(name: string): Promise<number> {
    const kind = endorsementNamed(name);
    const files = kind && (await readEndorsement(folder, name));
    if (!kind || !files || "problem" in files) return 0;
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
      unknown.delete(name);
      // A vendor that has nothing newer yet is not asked over and over
      due.set(name, Math.max(await dueAt(name), now() + hourMs));
    } catch (error) {
      const times = (failures.get(name) ?? 0) + 1;
      log.warn("endorsements.not-renewed", { name, url, why: messageOf(error), times });
      // Forgotten meanwhile
      if (!due.has(name)) return;
      failures.set(name, times);
      const asked = error instanceof FetchError ? error.retryAfterMs : undefined;
      const backoff = Math.min(hourMs, firstRetryMs * 2 ** (times - 1)) * (0.5 + Math.random() / 2);
      due.set(name, now() + Math.max(backoff, Math.min(asked ?? 0, hourMs)));
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

  /** A call for a chip that may be made up; the others are of a few names, or of what Intel has signed. */
  function isAffordable(name: string, kept: number): boolean {
    if (!unknown.has(name) || running.has(name)) return true;
    budget.at = Math.min(budget.at, now());
    const earned = Math.floor((now() - budget.at) / chipEveryMs);
    budget.calls = Math.min(mostChipsAtOnce, budget.calls + earned);
    budget.at = budget.calls === mostChipsAtOnce ? now() : budget.at + earned * chipEveryMs;
    if (budget.calls <= kept) return false;
    budget.calls -= 1;
    return true;
  }

  async function remember(name: string): Promise<void> {
    const at = await dueAt(name);
    due.set(name, at);
    if (at > 0 || endorsementNamed(name)?.is !== "amd-vcek") return;
    unknown.add(name);
    const [oldest] = unknown;
    if (unknown.size > mostUnknown && oldest !== undefined) forget(oldest);
  }

  function forget(name: string): void {
    for (const those of [due, failures, unknown]) those.delete(name);
  }

  /** The chips that were asked for last come first: those before them may be made up. */
  async function round(): Promise<void> {
    const names = [...due].filter(([, at]) => at <= now()).map(([name]) => name);
    const worth = names.filter(
      (name) => !unknown.has(name) || (failures.get(name) ?? 0) < mostRetries,
    );
    const affordable = worth.toReversed().filter((name) => isAffordable(name, keptForNew));
    await Promise.all(affordable.map((name) => once(name)));
  }

  const rounds = startRounds("endorsements", everyMs, round, log);
  return {
    /** Asks for what evidence needs and the folder lacks, and waits for it a little. Never rejects. */
    async ensure(needed: Needed): Promise<void> {
      if (needed.tee === "tdx" && !isOfIntel(needed.chain, roots)) return;
      const missing: Promise<void>[] = [];
      for (const name of namesNeeded(needed)) {
        // oxlint-disable-next-line no-await-in-loop -- four small files, the first time only
        if (!due.has(name)) await remember(name);
        if ((due.get(name) ?? 0) > now() && !running.has(name)) continue;
        if (isAffordable(name, failures.has(name) ? keptForNew : 0)) missing.push(once(name));
        else
          log.warn("endorsements.postponed", {
            name,
            why: "too many chips were asked for that no vendor has vouched for yet; it is tried later",
          });
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
