import { ComputeError } from "../../fleet/compute/compute.ts";
import type { Config } from "../../config/config.ts";
import { version } from "../../config/version.ts";
import { deadlineMs, deadlineSignal, within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import type { UnreadyReason } from "../../log/telemetry.ts";
import { counted, duration, firstFew, plain } from "../../messages/markdown.ts";
import { countWorkers } from "../../queue/heartbeat.ts";
import { judgeMemory, readMemory } from "../../redis/check.ts";
import { redisTrouble, whyNoWrites } from "../../redis/redis.ts";
import { isClockOff, isOffSlack, offInWords } from "../clock.ts";
import { type JudgePolicy, callsInWords, judgeApi, offFinding } from "./api.ts";
import { clockFinding, judgeClock } from "./clock.ts";
import { type Finding, ill, trouble, well } from "../../messages/finding.ts";
import { judgeDirectory, judgeFolder, lookAtDirectory, lookAtFolder } from "./folders.ts";
import { judgePolicy, judgeRules, lookAtPolicy } from "./policy.ts";
import { judgePorts } from "./ports.ts";
import { judgeRedis, lookAtRedis, redisProblem } from "./redis.ts";
import { judgeFiles } from "./secrets.ts";
import { judgeService, lookAtService } from "./service.ts";
import { judgeStoredPolicy } from "./stored-policy.ts";
import { judgeSlack, lookAtSlack } from "./slack.ts";
import { policyName } from "../adopt-policy.ts";
import { withPlaceAlone } from "../policy-standing.ts";
import { type Called, type KnownProcess, sumTallies } from "../presence.ts";
import { gatehouseFactsOf, untoldOf } from "../../features/status-part.ts";
import {
  type GatehouseFact,
  type GatehouseFactSource,
  readGatehouseFacts,
} from "../../core/facts/gatehouse-fact.ts";
import type { Services } from "../services.ts";

/**
 * A check of something that Gatehouse needs, or that people want to know about it. Each member is a
 * way to run it, and is present where that makes sense.
 */
interface Check {
  name: string;
  /** Whether `doctor` judges nothing else here than gatehouse.yml, which it may have to leave out. */
  isOfPolicy?: true;
  /**
   * The findings of `doctor`, which has only the configuration, before a process runs or while one
   * does.
   */
  fromOutside?(
    config: Config,
    now: number,
    judgePolicy: JudgePolicy,
  ): Promise<readonly Finding[] | undefined>;
  /**
   * The line of `/gatehouse status`, about the installation and the process that answers. Undefined
   * when there is nothing to say.
   */
  forPeople?(on: Checked): Promise<Finding | undefined>;
  /** What keeps this process from work (`/readyz`). Undefined when nothing does. */
  forReadiness?(on: Checked): Promise<Finding | undefined>;
}

type Process = "config" | "policyKeeper" | "presence" | "tallies" | "clock" | "services";
type Asked = "web" | "compute" | "inventory" | "queues" | "store";
type OfRedis = "redis" | "key" | "redisCheckNow" | "storageProblemsNow";

/** Services that the checks use. */
type Running = Pick<Services, Process | Asked | OfRedis>;

/** A running process, as the checks see it. `inventory` is what the asker sees. */
type Checked = Running & {
  slackProblem(): Promise<string | undefined>;
  computeProblem(): Promise<string | undefined>;
};

/** A finding about calls of the last minute, of which at least half failed; else undefined. */
async function callsProblem(
  of: Called,
  { presence, tallies }: Pick<Services, "presence" | "tallies">,
) {
  const all = await presence.known().then(
    (known) => sumTallies(known.map((process) => process.tallies)),
    () => tallies.lastMinute(),
  );
  const { calls, failed } = all[of] ?? { calls: 0, failed: {} };
  const counts = Object.entries(failed).toSorted(([, a], [, b]) => b - a);
  const sum = counts.reduce((total, [, count]) => total + count, 0);
  if (sum === 0 || 2 * sum < calls) return undefined;
  const how = counts.map(([failure, count]) => `${failure}: ${count}`).join(", ");
  return `${sum} of ${counted(calls, "call")} of the last minute failed (${how})`;
}

/** `1 of 2 gateways`: how many processes of a role have stopped reporting. */
function missingInWords(known: readonly KnownProcess[], role: "gateway" | "worker") {
  const all = known.filter(
    (knownProcess) => knownProcess.role === role || knownProcess.role === "all",
  );
  const missing = all.filter(({ isMissing }) => isMissing);
  if (missing.length === 0) return [];
  return [`${missing.length} of ${counted(all.length, role)}`];
}

function judgeProcesses(known: readonly KnownProcess[]): Finding {
  const missing = known.filter(({ isMissing }) => isMissing);
  const roles = ["gateway", "worker"] as const;
  if (missing.length === 0) {
    const counts = roles.map((role) =>
      counted(
        known.filter((knownProcess) => knownProcess.role === role || knownProcess.role === "all")
          .length,
        role,
      ),
    );
    return well(counts.join(", "));
  }
  const which = roles.flatMap((role) => missingInWords(known, role)).join(" and ");
  const problem = `${which} stopped without a word`;
  const places = [...new Set(missing.map(({ host }) => host))];
  return {
    ...ill(problem, "Read its log, and start it again."),
    advice: `It ran on ${firstFew(places, 5)}.`,
    since: Math.min(...missing.map(({ at }) => at)),
  };
}

/**
 * Finds whose clock differs from Redis's, or else from Slack's. When all processes agree with each
 * other and not with Redis, it is Redis's clock.
 */
function judgeClocks(known: readonly KnownProcess[]): Finding {
  const present = known.filter(({ isMissing }) => !isMissing);
  const off = present.filter(({ clockOffMs }) => isClockOff(clockOffMs));
  const [first] = off;
  if (!first) return judgeSlackClocks(present);
  const offs = off.map(({ clockOffMs }) => clockOffMs);
  const doAgree = !isClockOff(Math.max(...offs) - Math.min(...offs));
  if (off.length > 1 && off.length === present.length && doAgree) {
    const isAhead = first.clockOffMs < 0;
    return ill(
      `Redis's is ${duration(Math.abs(first.clockOffMs))} ${isAhead ? "ahead of" : "behind"} those of all ${off.length} processes`,
      "Let NTP set it. Until then no process takes work.",
    );
  }
  const each = off.map((process) => clockInWords(process, offInWords(process.clockOffMs)));
  return ill(
    firstFew(each, 5),
    "Let NTP set the clocks of these machines. Until then their processes take no work.",
  );
}

/** Redis's clock may be off, too, so that only Slack's shows it. */
function judgeSlackClocks(present: readonly KnownProcess[]): Finding {
  const off = present.filter(({ slackClockOffMs }) => isOffSlack(slackClockOffMs));
  if (off.length === 0) return well("those of all processes agree with Redis's and Slack's");
  const each = off.map((process) =>
    clockInWords(process, offInWords(process.slackClockOffMs, "Slack's")),
  );
  return ill(
    firstFew(each, 5),
    "Let NTP set the clocks of these machines. From 5 min on, Slack's deliveries are refused over HTTP.",
  );
}

function clockInWords({ role, host }: KnownProcess, off: string): string {
  const which = role === "all" ? "the process" : `a ${role}`;
  return `that of ${which} on ${host} is ${off}`;
}

/** Finds processes whose log lines nobody takes. Undefined without one. */
function judgeLogs(known: readonly KnownProcess[]): Finding | undefined {
  const lossy = known.flatMap(({ role, host, logLoss, isMissing }) =>
    logLoss && !isMissing ? [{ role, host, ...logLoss }] : [],
  );
  if (lossy.length === 0) return undefined;
  const each = lossy.map(({ role, host, lines }) => {
    const which = role === "all" ? "the process" : `a ${role}`;
    return `that of ${which} on ${host} is lost (${counted(lines, "line")})`;
  });
  return {
    ...ill(firstFew(each, 5), "Work goes on."),
    advice:
      "Check what reads its standard output, and the disk behind it; then start the process again.",
    since: Math.min(...lossy.map(({ since }) => since)),
  };
}

/** Says that Slack doesn't answer this process. */
async function slackSilence(on: Pick<Checked, "slackProblem">): Promise<Finding | undefined> {
  const problem = await on.slackProblem();
  return problem === undefined ? undefined : trouble(problem);
}

/** Says that Redis takes no writes of this process. */
async function redisRefusal(on: Pick<Checked, "redis" | "key">): Promise<Finding | undefined> {
  const problem = await redisProblem(on.redis, on.key);
  return problem === undefined
    ? undefined
    : ill(problem, "Nothing can be changed until it is back.");
}

/** Says that this process may change nothing, because its policy isn't the one in force. */
async function policyStandstill({
  policyKeeper,
}: Pick<Checked, "policyKeeper">): Promise<Finding | undefined> {
  const still = policyKeeper.standstill();
  return still === undefined ? undefined : trouble(`nothing changes here: ${still}`);
}

/**
 * The checks in the order in which people see them; those of features and the version come after
 * them. `doctor`, `/gatehouse status`, and `/readyz` all use this list.
 */
export const checks: readonly Check[] = [
  {
    name: "Slack",
    fromOutside: async (config, now) => judgeSlack(await lookAtSlack(config, now)),
    async forPeople(on) {
      const silence = await slackSilence(on);
      if (silence) return silence;
      const problem = await callsProblem("slack", on);
      return problem === undefined ? well("answers") : trouble(problem);
    },
    forReadiness: slackSilence,
  },
  {
    name: "Redis",
    fromOutside: async (config, now) => judgeRedis(await lookAtRedis(config, now)),
    async forPeople(on) {
      const refusal = await redisRefusal(on);
      if (refusal) return refusal;
      const kept = await on.redisCheckNow();
      if (kept.kind !== "ok") {
        const doubt =
          kept.kind === "unchecked"
            ? "doesn't say how it stores"
            : `may forget what was sent${kept.allowed ? "" : ", so no change is sent"}`;
        return { ...trouble(doubt), advice: kept.sentence };
      }
      const problems = await on.storageProblemsNow();
      const stopping = problems.flatMap(({ stops, sentence }) => (stops ? [sentence] : []));
      const others = problems.flatMap(({ stops, sentence }) => (stops ? [] : [sentence]));
      const usage = await readMemory(on.redis);
      const memory = usage && judgeMemory(usage);
      const isNearlyFull = memory?.isNearlyFull === true;
      const full = isNearlyFull ? [memory.words] : [];
      const summary = ["answers, writes to disk", ...stopping, ...full].join("; ");
      const finding = stopping.length > 0 || isNearlyFull ? trouble(summary) : well(summary);
      const sayings = others.length === 0 ? [] : [others.join("; ")];
      const advice = [...sayings, ...(isNearlyFull ? [memory.mend] : [])].join(". ");
      return advice === "" ? finding : { ...finding, advice };
    },
    forReadiness: redisRefusal,
  },
  {
    name: "Compute service",
    fromOutside: async (config, now) => judgeService(await lookAtService(config, now)),
    async forPeople(on) {
      const { inventory, computeProblem } = on;
      const { refreshedAt, stale, vms, projects, unread, gaps = [] } = await inventory.state();
      const read =
        refreshedAt === undefined ? "never read" : `read ${duration(Date.now() - refreshedAt)} ago`;
      const missing = unread.length > 0 ? `; not readable: ${unread.slice(0, 5).join(", ")}` : "";
      const short = gaps.length > 0 ? `; incomplete: ${plain(gaps.join(". "), 600)}` : "";
      const known = `${vms} VMs in ${projects} projects, ${read}${missing}${short}`;
      const failing = await callsProblem("service", on);
      if (!stale && refreshedAt !== undefined && unread.length === 0) {
        if (failing !== undefined) return trouble(`${failing}; ${known}`);
        return gaps.length === 0 ? well(known) : trouble(known);
      }
      const problem = (await computeProblem()) ?? failing;
      return trouble(problem === undefined ? known : `${problem} (${known})`);
    },
  },
  {
    name: "Changes",
    async forPeople({ store }) {
      const frozen = await store.freezeState();
      if (!frozen) return well("allowed");
      return trouble(`frozen by ${frozen.by}${frozen.reason ? `: ${frozen.reason}` : ""}`);
    },
  },
  {
    name: "Policy",
    isOfPolicy: true,
    async fromOutside(config) {
      const { policyFile } = config;
      const { asWritten } = policyFile;
      const placed = [
        ...judgeRules(config.policy),
        ...judgeFolder(lookAtFolder(asWritten.attestation)),
      ].map((finding) => ({
        ...finding,
        text:
          (Array.isArray(finding.about) ? policyFile.placeOf(finding.about) : "") + finding.text,
      }));
      const stored = policyFile.missingAt === undefined ? await judgeStoredPolicy(config) : [];
      return [
        ...judgePolicy(await lookAtPolicy(config), policyFile.missingAt),
        ...stored,
        ...placed,
      ];
    },
    /**
     * It is about the process that answers. `/readyz` of each process says the same about that
     * process.
     */
    async forPeople({ config, policyKeeper }) {
      const standstill = await policyStandstill({ policyKeeper });
      if (standstill) return standstill;
      const { problems, missingAt } = config.policyFile;
      if (missingAt !== undefined)
        return trouble(
          "gatehouse.yml is missing, so everyone can view and no one can change anything",
        );
      const [problem] = problems;
      return problem === undefined
        ? well(`version ${policyName(config.policyVersion, config.policy.version)}`)
        : trouble(`${withPlaceAlone(problem)}; the former policy still applies`);
    },
    forReadiness: policyStandstill,
  },
  {
    name: "API",
    isOfPolicy: true,
    fromOutside: (config, _now, judge) => judgeApi(config, judge),
    async forPeople(on) {
      const { config, store } = on;
      const { api, policy, callerProblems } = config;
      if (!api) return offFinding(policy);
      if (callerProblems.length > 0)
        return ill(callerProblems.join("; "), "Until then Gatehouse refuses what it sends.");
      const untold = (await Promise.all(untoldOf(on).map((list) => list()))).flat();
      if (untold.length > 0) {
        const counts = [...Map.groupBy(untold, ({ words: [noun] }) => noun).values()].map(
          (some) => {
            const from = firstFew([...new Set(some.map(({ source: cause }) => cause))], 3);
            const [noun = "", more] = some[0]?.words ?? [];
            return `${counted(some.length, noun, more)} of ${from}`;
          },
        );
        return ill(
          `${counts.join(" and ")} can be shown in no channel`,
          "Invite Gatehouse to the channel, or name another one in gatehouse.yml; `policy check` says where they go.",
        );
      }
      const [calls, now] = await Promise.all([store.apiCalls(), store.now()]);
      const failing = await callsProblem("api", on);
      const last = callsInWords(policy, calls, now);
      return failing === undefined ? well(last) : trouble(`${failing}; ${last}`);
    },
  },
  { name: "Ports", fromOutside: judgePorts },
  { name: "Files", fromOutside: async (config) => judgeFiles(config) },
  {
    name: "Data directory",
    fromOutside: async ({ dataDir }) => judgeDirectory(lookAtDirectory(dataDir)),
  },
  {
    name: "Work",
    async forPeople({ store, queues, redis, key }) {
      const [open, unsaid, depths, workers] = await Promise.all([
        store.openCount(),
        store.outbox.depth(),
        queues.depths(),
        countWorkers(redis, key),
      ]);
      const requests = `${counted(open, "request")} open`;
      const { waiting = 0, delayed = 0 } = depths.find(({ queue }) => queue === "requests") ?? {};
      const steps = waiting + delayed;
      if (workers === 0)
        return ill(`no worker is running, and ${requests}`, "Start a worker, or read its log.");
      const summary = `${counted(workers, "worker")}, ${requests}, ${counted(steps, "job")} waiting, ${counted(unsaid, "message")} to deliver`;
      return unsaid < 100 ? well(summary) : trouble(summary);
    },
  },
  {
    name: "Processes",
    forPeople: async ({ presence }) => judgeProcesses(await presence.known()),
  },
  {
    name: "Log",
    // Without Redis, other checks say enough.
    forPeople: async ({ presence }) => judgeLogs(await presence.known().catch(() => [])),
  },
  {
    name: "Clocks",
    fromOutside: judgeClock,
    forPeople: async ({ presence }) => judgeClocks(await presence.known()),
    async forReadiness({ clock }) {
      return clockFinding(clock.offMs());
    },
  },
];

const ofVersion: Check = {
  name: "Version",
  async forPeople() {
    const started = duration(performance.now());
    return well(`${version}, Node.js ${process.version}; started ${started} ago`);
  },
};

/** How long the result of a check of Slack or of the compute service is reused (ms). */
const checkMs = 15_000;
/** The limit of a read including its retries, because a person waits (ms). */
const computeWithinMs = 5_000;

/**
 * Shares answers: a caller that asks while an answer is on its way, or within `forMs` after it,
 * gets that answer.
 */
export function shared<T>(ask: () => Promise<T>, forMs = 0): () => Promise<T> {
  let last: Promise<T> | undefined;
  const forget = () => void (last = undefined);
  const later = () => (forMs === 0 ? forget() : void setTimeout(forget, forMs).unref());
  return () => (last ??= ask().finally(later));
}

/** What isn't ready: a process, for its supervisor, or the API that it serves, for its callers. */
export type Probed = "process" | "API";

/** Why it isn't ready, for machines and in words. */
export interface Unready {
  reason: UnreadyReason;
  problem: string;
}

/** A check that takes longer counts as failed, because a prober waits (ms). */
const checkWithinMs = 1_900;
const tooSlow = "the check took longer than 2 s";

/**
 * The kinds of facts of which an alarm makes a process unready. `about` stands before a sentence that
 * doesn't name its subject, because a probe shows no kind.
 */
export const unreadyBy: Readonly<
  Record<string, { reason(text: string): UnreadyReason; about?: string; isFor: readonly Probed[] }>
> = {
  // The API takes calls while Slack is away.
  Slack: { reason: () => "slack", isFor: ["process"] },
  Redis: { reason: (text) => whyNoWrites(text) ?? "redis", isFor: ["process", "API"] },
  Policy: { reason: () => "policy", about: "policy: ", isFor: ["process", "API"] },
  Clocks: { reason: () => "clock", isFor: ["process", "API"] },
};

/**
 * Lists the kinds that can't be read without Redis on the fact about Redis, because each would say
 * the same.
 */
function withoutRepeats(facts: readonly GatehouseFact[]): readonly GatehouseFact[] {
  const isRepeat = ({ kind, unread }: GatehouseFact) =>
    kind !== "Redis" && unread !== undefined && redisTrouble(unread) !== undefined;
  const unread = facts.filter(isRepeat).map(({ kind }) => kind);
  if (unread.length === 0) return facts;
  const rest = `Until then these can't be read: ${unread.join(", ")}.`;
  return facts
    .filter((fact) => !isRepeat(fact))
    .map((fact) =>
      fact.kind === "Redis"
        ? { ...fact, next: fact.next === undefined ? rest : `${fact.next} ${rest}` }
        : fact,
    );
}

export type Status = ReturnType<typeof createStatus>;

/** How the installation is doing, as a running process asks its checks: for `/gatehouse status` and `/readyz`. */
export function createStatus(on: Running) {
  const checked: Checked = {
    ...on,
    slackProblem: shared(async () => {
      const answer = await on.web.call("auth.test");
      // A limit is an answer, too. Sending the person to another process wouldn't help.
      if (answer.ok || answer.kind === "limited") return undefined;
      return answer.kind === "refused"
        ? `Slack rejected the call: ${answer.error}`
        : `Slack: ${answer.kind}`;
    }, checkMs),
    /**
     * Why nothing can be read from the compute service here, whichever process does the refreshes.
     */
    computeProblem: shared(async () => {
      try {
        await on.compute.projects.listAll(1, { signal: deadlineSignal(computeWithinMs) });
        return undefined;
      } catch (error) {
        const isKey = error instanceof ComputeError && [401, 403].includes(error.status ?? 0);
        return messageOf(error) + (isKey ? ". Check COMPUTE_API_KEY." : "");
      }
    }, checkMs),
  };
  return {
    /**
     * The facts of `/gatehouse status`, one of each kind, with counts of VMs and projects from this
     * inventory, which is restricted to what the asker may see.
     */
    async facts(inventory: Inventory = on.inventory): Promise<readonly GatehouseFact[]> {
      const sourcesOf = (some: readonly Check[]) =>
        some.flatMap(({ name: kind, forPeople }): GatehouseFactSource[] =>
          forPeople ? [{ kind, read: () => forPeople({ ...checked, inventory }) }] : [],
        );
      return withoutRepeats(
        await readGatehouseFacts([
          ...sourcesOf(checks),
          ...gatehouseFactsOf(on),
          ...sourcesOf([ofVersion]),
        ]),
      );
    },
    redisProblem: () => redisProblem(on.redis, on.key),
    /**
     * Why this process or its API isn't ready now. Empty when it is.
     */
    async unready(probed: Probed): Promise<readonly Unready[]> {
      const sources = checks.flatMap(({ name: kind, forReadiness }): GatehouseFactSource[] => {
        if (!forReadiness || unreadyBy[kind]?.isFor.includes(probed) !== true) return [];
        const late = () => trouble(tooSlow);
        const read = () => within(deadlineMs(checkWithinMs), forReadiness(checked), late);
        return [{ kind, read }];
      });
      return (await readGatehouseFacts(sources)).flatMap(({ kind, severity, text }) => {
        const how = unreadyBy[kind];
        if (!how || severity !== "alarm") return [];
        return [{ reason: how.reason(text), problem: `${how.about ?? ""}${text}` }];
      });
    },
  };
}
