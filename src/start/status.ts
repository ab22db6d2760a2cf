import { countWorkers } from "../jobs/liveness.ts";
import type { Queues } from "../jobs/queues.ts";
import type { Config } from "../config/config.ts";
import { version } from "../config/version.ts";
import type { Compute } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import type { Inventory } from "../inventory/inventory.ts";
import { messageOf } from "../errors.ts";
import type { Polls } from "../requests/journal/polls.ts";
import { createMeasure } from "./measure.ts";
import { partNames, type OutageStore } from "../outages/outages.ts";
import type { Watch } from "../outages/dependency-monitor.ts";
import type { RedisCheck, StorageProblem } from "../redis/check.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { StatusLine } from "../commands/context.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { counted, duration } from "../messages/text.ts";
import type { Web } from "../slack/web.ts";
import type { Telemetry } from "../log/telemetry.ts";
import { placeOf, type PolicyKeeper } from "./policy-keeper.ts";

/** How long a check of Slack or of the compute service is reused (ms). */
const checkMs = 15_000;

/** One call for all who ask within `checkMs`, also while its answer is on its way. */
function reused(check: () => Promise<string | undefined>): () => Promise<string | undefined> {
  let last: { until: number; problem: Promise<string | undefined> } | undefined;
  return () => {
    if (!last || performance.now() >= last.until)
      last = { until: performance.now() + checkMs, problem: check() };
    return last.problem;
  };
}

/** Retries and all: a person waits. */
const computeWithinMs = 5_000;

type Reading = Omit<StatusLine, "name">;

export type Status = ReturnType<typeof createStatus>;

/** How the installation is doing: for `/gatehouse status`, `/readyz` and `/metrics`. */
export function createStatus(on: {
  redis: RedisClient;
  key: Keys;
  redisCheck: RedisCheck;
  /** What doesn't hold of how Redis stores claims. */
  storageProblemsNow(): Promise<readonly StorageProblem[]>;
  web: Web;
  inventory: Inventory;
  store: Journal;
  queues: Queues;
  polls: Polls;
  outages: Pick<OutageStore, "state">;
  watch: Pick<Watch, "redisAwayMs">;
  compute: Compute;
  telemetry: Telemetry;
  config: Pick<Config, "policyVersion" | "policyFile">;
  policyKeeper: Pick<PolicyKeeper, "standstill">;
}) {
  const measureShared = createMeasure(on);
  const startedAt = Date.now();
  const slackProblem = reused(checkSlack);
  const computeProblem = reused(checkCompute);

  async function checkSlack(): Promise<string | undefined> {
    const answer = await on.web.call("auth.test");
    // A limit is an answer: whoever it makes wait isn't helped by another process
    if (answer.ok || answer.kind === "limited") return undefined;
    return answer.kind === "refused"
      ? `Slack rejected the call: ${answer.error}`
      : `Slack: ${answer.kind}`;
  }

  async function slackReading(): Promise<Reading> {
    const problem = await slackProblem();
    return { ok: problem === undefined, detail: problem ?? "answers" };
  }

  /** What the work does: a write where our keys are. A PING is answered by a Redis that takes none. */
  async function writeToRedis(): Promise<void> {
    await on.redis.set(on.key("probe"), "1", "PX", 60_000);
  }

  async function redisReading(): Promise<Reading> {
    try {
      await writeToRedis();
    } catch (error) {
      return { ok: false, detail: `${messageOf(error)}. Nothing can be changed until it is back.` };
    }
    if (on.redisCheck.kind !== "ok") return { ok: false, detail: on.redisCheck.sentence };
    const problems = await on.storageProblemsNow();
    const detail = ["answers, writes to disk", ...problems.map(({ sentence }) => sentence)].join(
      "; ",
    );
    return { ok: !problems.some(({ stops }) => stops), detail };
  }

  /** Why nothing can be read from here, whichever process refreshes. */
  async function checkCompute(): Promise<string | undefined> {
    try {
      await on.compute.projects.listAll(1, { signal: AbortSignal.timeout(computeWithinMs) });
      return undefined;
    } catch (error) {
      const isKey = error instanceof ComputeError && [401, 403].includes(error.status ?? 0);
      return messageOf(error) + (isKey ? ". Check COMPUTE_API_KEY." : "");
    }
  }

  async function inventoryReading(inventory: Inventory): Promise<Reading> {
    const { refreshedAt, stale, vms, projects, unread } = await inventory.state();
    const read =
      refreshedAt === undefined ? "never read" : `read ${duration(Date.now() - refreshedAt)} ago`;
    const missing = unread.length > 0 ? `; not readable: ${unread.slice(0, 5).join(", ")}` : "";
    const known = `${vms} VMs in ${projects} projects, ${read}${missing}`;
    if (!stale && refreshedAt !== undefined && unread.length === 0)
      return { ok: true, detail: known };
    const problem = await computeProblem();
    return { ok: false, detail: problem === undefined ? known : `${problem} (${known})` };
  }

  async function changesReading(): Promise<Reading> {
    const frozen = await on.store.freezeState();
    if (!frozen) return { ok: true, detail: "allowed" };
    const reason = frozen.reason ? `: ${frozen.reason}` : "";
    return { ok: false, detail: `frozen by ${frozen.by}${reason}` };
  }

  /** Of this process, which answers: `/readyz` of each says the same of its own. */
  async function policyReading(): Promise<Reading> {
    const still = on.policyKeeper.standstill();
    if (still !== undefined) return { ok: false, detail: `nothing changes here: ${still}` };
    const { problems, missingAt } = on.config.policyFile;
    if (missingAt !== undefined)
      return {
        ok: false,
        detail: "gatehouse.yml is missing, so everyone can view and no one can change anything",
      };
    if (problems.length > 0)
      return {
        ok: false,
        detail: `${placeOf(problems[0] ?? "")}; the policy before it counts`,
      };
    return { ok: true, detail: `version ${on.config.policyVersion}` };
  }

  async function workReading(): Promise<Reading> {
    const [open, unsaid, counts, workers] = await Promise.all([
      on.store.openCount(),
      on.store.outbox.depth(),
      on.queues.counts(),
      countWorkers(on.redis, on.key),
    ]);
    const waiting = (counts["waiting"] ?? 0) + (counts["delayed"] ?? 0);
    if (workers === 0) {
      const detail = `no worker is running, and ${counted(open, "request")} open. Start a worker, or read its log.`;
      return { ok: false, detail };
    }
    return {
      ok: unsaid < 100,
      detail: `${counted(workers, "worker")}, ${counted(open, "request")} open, ${counted(waiting, "job")} waiting, ${counted(unsaid, "message")} to deliver`,
    };
  }

  async function outagesReading(): Promise<Reading> {
    const awayMs = on.watch.redisAwayMs();
    if (awayMs !== undefined) {
      const detail = `Redis has been away for ${duration(awayMs)}. Refused requests are reported when it is back.`;
      return { ok: false, detail };
    }
    const [{ open, last }, now] = await Promise.all([on.outages.state(), on.store.now()]);
    const away = open.map(
      ({ part, since }) => `${partNames[part]} has been away for ${duration(now - since)}`,
    );
    if (away.length > 0) {
      const detail = `${away.join("; ")}. Each channel gets a recap afterwards.`;
      return { ok: false, detail };
    }
    const detail = last
      ? `none now; ${partNames[last.part]} was away for ${duration(last.until - last.since)}, until ${duration(now - last.until)} ago`
      : "none";
    return { ok: true, detail };
  }

  async function versionReading(): Promise<Reading> {
    const started = duration(performance.now());
    return { ok: true, detail: `${version}, Node.js ${process.version}; started ${started} ago` };
  }

  const readings: Record<string, (inventory: Inventory) => Promise<Reading>> = {
    Slack: slackReading,
    Redis: redisReading,
    "Compute service": inventoryReading,
    Changes: changesReading,
    Policy: policyReading,
    Work: workReading,
    Outages: outagesReading,
    Version: versionReading,
  };

  return {
    /** Counts the VMs and projects of this inventory: of what the asker sees. */
    lines: (inventory = on.inventory): Promise<readonly StatusLine[]> =>
      Promise.all(
        Object.entries(readings).map(async ([name, read]) => ({
          name,
          ...(await read(inventory).catch((error: unknown) => ({
            ok: false,
            detail: messageOf(error),
          }))),
        })),
      ),
    writeToRedis,
    /** Why this process can't work now, if it can't. */
    async problem(): Promise<string | undefined> {
      try {
        await writeToRedis();
      } catch (error) {
        return `Redis: ${messageOf(error)}`;
      }
      const still = on.policyKeeper.standstill();
      return still === undefined ? slackProblem() : `policy: ${still}`;
    },
    /** Brings the figures up to date that aren't counted where they change. Never rejects. */
    async measure(telemetry: Telemetry): Promise<void> {
      const isKnown = await measureShared().then(
        () => true,
        () => false, // this process's own figures remain
      );
      telemetry.redisUp.set(isKnown ? 1 : 0);
      telemetry.knowShared(isKnown);
      // From memory without Redis: then, too, names grow old
      const { refreshedAt = startedAt, unread } = await on.inventory.state();
      telemetry.inventoryAge.set(Math.max(0, Date.now() - refreshedAt) / 1000);
      telemetry.inventoryUnread.set(unread.length);
    },
  };
}
