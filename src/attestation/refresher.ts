import { setTimeout as pause } from "node:timers/promises";
import { request } from "undici";
import { decodeBody, readAnswerBody } from "../fleet/compute/exchange.ts";
import type { Policy } from "../config/policy-file.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { repeatHere } from "../redis/repeat.ts";
import {
  type EndorsementFiles,
  type EndorsementKind,
  endorsementNamed,
} from "../verifier/inspect-endorsement.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import { tcbParts } from "../verifier/snp/report.ts";
import { isOfIntel } from "../verifier/tdx/verify-quote.ts";
import type { Needed } from "../verifier/verify-evidence.ts";
import { inspectStored, mostBytes, namesNeeded, storeEndorsement } from "./endorsement-folder.ts";

/** The addresses of the vendors' services, without a slash at the end. */
export type VendorAddresses = NonNullable<Policy["attestation"]["refresh"]>;

/**
 * The paths of Intel's and AMD's services. Only words from a list and hex digits are inserted
 * (`endorsementNamed`).
 */
const paths = {
  "intel-root-list": "{intelRoot}",
  "intel-pck-list": "{intel}/sgx/certification/v4/pckcrl?ca={ca}&encoding=der",
  "intel-qe-identity": "{intel}/tdx/certification/v4/qe/identity",
  "intel-tcb-info": "{intel}/tdx/certification/v4/tcb?fmspc={fmspc}",
  "amd-list": "{amd}/{signer}/v1/{product}/crl",
  "amd-vcek": "{amd}/vcek/v1/{product}/{hwid}",
} as const satisfies Record<EndorsementKind["document"], string>;

/** KDS's names for parts of a TCB version, where they differ from ours. */
const versionNames: Readonly<Record<string, string>> = { bootloader: "bl", microcode: "ucode" };

/**
 * The address of an endorsement. It tells the vendor which platform, chip, and firmware there is,
 * and nothing about what runs on them.
 */
export function addressOf(kind: EndorsementKind, at: VendorAddresses): string {
  const [vendors, values] = [new Map(Object.entries(at)), new Map(Object.entries(kind))];
  const address = paths[kind.document].replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => vendors.get(name) ?? encodeURIComponent(values.get(name) ?? ""),
  );
  if (kind.document === "intel-tcb-info" && kind.early !== undefined)
    return `${address}&update=early`;
  if (kind.document !== "amd-vcek") return address;
  const versions = Object.entries(tcbParts(kind.tcb, kind.product)).map(
    ([part, value]) => `${versionNames[part] ?? part}SPL=${String(value).padStart(2, "0")}`,
  );
  return `${address}?${versions.join("&")}`;
}

/** The headers in which Intel sends the chain of the signer. */
const chainHeader = /^(tcb-info|sgx-enclave-identity|sgx-pck-crl)-issuer-chain$/;

class FetchError extends Error {
  override readonly name = "FetchError";
  /** How long the vendor asked to wait (ms). */
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs = 0) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Fetches an endorsement without checking it; the caller must check it before it is stored. Throws
 * FetchError, or whatever the network threw.
 */
async function fetchEndorsement(url: string, closing: AbortSignal): Promise<EndorsementFiles> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)]);
  const { statusCode, headers, body } = await request(url, {
    signal,
    headers: { "accept-encoding": "identity" },
  });
  if (statusCode !== 200) {
    body.on("error", () => undefined).destroy();
    const seconds = Number(headers["retry-after"]);
    const host = new URL(url).host;
    throw new FetchError(`${host} answered ${statusCode}`, seconds > 0 ? seconds * 1000 : 0);
  }
  const tooLarge = `the answer is larger than ${mostBytes} bytes`;
  const bytes = await readAnswerBody(body, mostBytes);
  if (!bytes) throw new FetchError(tooLarge);
  const content = await decodeBody(bytes, [headers["content-encoding"]].flat(), mostBytes);
  if (content === "too-large") throw new FetchError(tooLarge);
  if (typeof content === "string")
    throw new FetchError("the answer's content encoding can't be read");
  const [, header] = Object.entries(headers).find(([name]) => chainHeader.test(name)) ?? [];
  // The folder decodes both, because a PCCS sends lists as hex digits and chains percent-encoded.
  return { content, chain: typeof header === "string" ? header : undefined };
}

interface RefresherOptions {
  folder: string;
  addresses: VendorAddresses;
  roots: TrustedRoots;
  log: Log;
  now(): number;
}

export type Refresher = ReturnType<typeof createRefresher>;

const hourMs = 3_600_000;
/** How often due endorsements are looked for (ms). */
const everyMs = 60_000;
/** The limit of one request (ms). */
const timeoutMs = 10_000;
/** How long a verification waits for missing endorsements (ms). */
const patienceMs = 3000;
const firstRetryMs = 10_000;

/**
 * KDS answers about one certificate per 10 s and client. At first, as many may be fetched at once
 * as a rack of machines needs when it is switched on.
 */
const chipEveryMs = 10_000;
const mostChipsAtOnce = 12;
/** Retries must leave this many calls for chips that are asked for the first time. */
const keptForNew = 6;
/**
 * The most chips that no vendor has vouched for yet. Beyond it, the oldest is forgotten until it is
 * asked for again.
 */
const mostUnknown = 256;
/** After this many retries, an unknown chip is retried only when evidence asks for it again. */
const mostRetries = 8;

/** An endorsement that some evidence needs, by its name in the folder. */
interface Wanted {
  name: string;
  /** When it should be fetched or renewed (ms). */
  dueAt: number;
  /** Failures in a row. */
  failures: number;
  /** True for a chip whose certificate was never there. Its ID may be made up. */
  isUnknown: boolean;
  renewing: Promise<void> | undefined;
}

/** Whether this is a chip's certificate, which never changes. */
const isOfChip = (name: string) => endorsementNamed(name)?.document === "amd-vcek";

/**
 * Keeps the folder of endorsements filled with what the evidence seen so far needs. What is missing
 * is fetched at once. What is there is renewed from half of its validity on, at a random moment in
 * each process. A failed fetch is retried at growing intervals of up to an hour; until it expires,
 * what is in the folder still counts.
 *
 * Evidence asks for endorsements before its signature can be checked, and a chip ID can be made up.
 * So a quote's certificate must be under Intel's root before anything is fetched for it, and calls
 * for chips that aren't in the folder have a budget in each process.
 */
export function createRefresher(options: RefresherOptions) {
  const { folder, addresses, roots, log, now } = options;
  const closing = new AbortController();
  const all = new Map<string, Wanted>();
  const budget = { calls: mostChipsAtOnce, at: now() };

  /**
   * When the file in the folder should be renewed (ms). 0, which means at once, when it is missing
   * or can't be used.
   */
  async function dueAtOf(name: string): Promise<number> {
    const inspected = await inspectStored(folder, name, { roots, now: now() });
    if ("problem" in inspected || now() > inspected.until) return 0;
    if (isOfChip(name)) return Infinity;
    const { from, until } = inspected;
    return from + (until - from) * (0.5 + Math.random() * 0.1);
  }

  async function remember(name: string): Promise<Wanted> {
    const dueAt = await dueAtOf(name);
    const isUnknown = dueAt === 0 && isOfChip(name);
    const wanted = all.get(name) ?? { name, dueAt, failures: 0, isUnknown, renewing: undefined };
    all.set(name, wanted);
    const strangers = [...all.values()].filter(
      (endorsement) => endorsement.isUnknown && !endorsement.renewing,
    );
    if (strangers.length > mostUnknown) all.delete(strangers[0]?.name ?? "");
    return wanted;
  }

  async function renew(wanted: Wanted): Promise<void> {
    const { name } = wanted;
    const kind = endorsementNamed(name);
    if (!kind) return;
    const url = addressOf(kind, addresses);
    try {
      const files = await fetchEndorsement(url, closing.signal);
      const stored = await storeEndorsement(folder, name, files, { now: now(), roots });
      if (typeof stored !== "string") throw new FetchError(`refused: ${stored.refused}`);
      log.info("endorsements.renewed", { name, url, stored });
      wanted.failures = 0;
      wanted.isUnknown = false;
      // A vendor that has nothing newer yet isn't asked over and over.
      wanted.dueAt = Math.max(await dueAtOf(name), now() + hourMs);
    } catch (error) {
      wanted.failures += 1;
      const times = wanted.failures;
      log.warn("endorsements.not-renewed", { name, url, why: messageOf(error), times });
      const asked = error instanceof FetchError ? error.retryAfterMs : 0;
      const backoff = Math.min(hourMs, firstRetryMs * 2 ** (times - 1)) * (0.5 + Math.random() / 2);
      wanted.dueAt = now() + Math.max(backoff, Math.min(asked, hourMs));
    }
  }

  /** Allows one request for each endorsement at a time. */
  function once(wanted: Wanted): Promise<void> {
    wanted.renewing ??= renew(wanted).finally(() => {
      wanted.renewing = undefined;
    });
    return wanted.renewing;
  }

  /**
   * Whether a call is within the budget, which applies to chips that may be made up. Other
   * endorsements have few possible names, or names that Intel has signed.
   */
  function isAffordable({ isUnknown, renewing }: Wanted, kept: number): boolean {
    if (!isUnknown || renewing) return true;
    budget.at = Math.min(budget.at, now());
    const earned = Math.floor((now() - budget.at) / chipEveryMs);
    budget.calls = Math.min(mostChipsAtOnce, budget.calls + earned);
    budget.at = budget.calls === mostChipsAtOnce ? now() : budget.at + earned * chipEveryMs;
    if (budget.calls <= kept) return false;
    budget.calls -= 1;
    return true;
  }

  /** The chips that were asked for last come first, because those before them may be made up. */
  async function refreshDue(): Promise<void> {
    const due = [...all.values()].filter(
      ({ dueAt, isUnknown, failures }) => dueAt <= now() && (!isUnknown || failures < mostRetries),
    );
    const affordable = due.toReversed().filter((wanted) => isAffordable(wanted, keptForNew));
    await Promise.all(affordable.map((wanted) => once(wanted)));
  }

  const repeated = repeatHere("endorsements", everyMs, refreshDue, log);
  return {
    /**
     * Fetches what evidence needs and the folder lacks, and waits for it for a few seconds. Never
     * rejects.
     */
    async ensure(needed: Needed): Promise<void> {
      if (needed.tee === "tdx" && !isOfIntel(needed.chain, roots)) return;
      const missing: Promise<void>[] = [];
      for (const name of namesNeeded(needed)) {
        // oxlint-disable-next-line no-await-in-loop -- four small files, the first time only
        const wanted = all.get(name) ?? (await remember(name));
        if (wanted.dueAt > now() && !wanted.renewing) continue;
        if (isAffordable(wanted, wanted.failures > 0 ? keptForNew : 0)) missing.push(once(wanted));
        else
          log.warn("endorsements.postponed", {
            name,
            why: "too many unverified chips; Gatehouse retries later",
          });
      }
      if (missing.length === 0) return;
      await Promise.race([Promise.all(missing), pause(patienceMs, undefined, { ref: false })]);
    },
    refreshDue: repeated.now,
    async close(): Promise<void> {
      closing.abort();
      await repeated.close();
      await Promise.allSettled([...all.values()].flatMap(({ renewing }) => renewing ?? []));
    },
  };
}
