import { setTimeout as delay } from "node:timers/promises";
import { type Compute, ComputeError, type ListGaps, type Vm } from "../compute/compute.ts";
import { deadlineMs, within } from "../../deadline.ts";
import { UserError, messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { RedisClient } from "../../redis/redis.ts";
import { type Repeated, repeatHere } from "../../redis/repeat.ts";
import { plainForm } from "../../text/fold.ts";
import type { Inventory, KnownVm, NotedRead } from "./inventory.ts";
import {
  type KnownFleet,
  asCalledBefore,
  contentsOf,
  contentsRead,
  createKnownFleet,
  createScopes,
} from "./known.ts";
import { readEverything } from "./read-everything.ts";
import { createReplica } from "./replica.ts";

/** Redis is read at most this often for questions (ms). */
const lookEveryMs = 500;
const lookInBackgroundMs = 2_000;
/**
 * How long a caller waits for the first names (ms). A slash command must be answered within three
 * seconds.
 */
const firstPatienceMs = 2_000;
/**
 * How long a person waits for newer data (ms). A dialog must open within three seconds of the
 * command.
 */
const patienceMs = 1_500;
/**
 * The time between the starts of two refreshes for people, however many ask: one second, where
 * regular refreshes are a minute apart.
 */
const longestAgainMs = 1_000;
/**
 * The age that data for programs may have (ms). Programs that ask every second cause one read per
 * `readForProgramsEveryMs`, in all processes together, whether it succeeds or not.
 */
const newForProgramsMs = 2_000;
const readForProgramsEveryMs = 10_000;
/**
 * A larger fleet isn't read completely for one name. The answer says how old the list is instead.
 */
const maxProjectsToSeek = 50;
const didYouMean = 5;
/** While nobody has read the service yet, one process tries again after this time (ms). */
const retryAfterMs = 10_000;

export interface InventoryOptions {
  redis: RedisClient;
  /** Builds a key in Redis. All keys must be in one hash slot. */
  key: (...parts: string[]) => string;
  compute: Compute;
  log: Log;
  refreshMs: number;
  /** How many calls to the service run at a time. */
  concurrency?: number;
}

/**
 * One process at a time reads the service and writes what changed to Redis. Every process keeps a
 * copy in memory and answers from it without waiting.
 */
export function createInventory(options: InventoryOptions): Inventory {
  const { redis, key, compute, log, refreshMs, concurrency = 8 } = options;
  const known = createKnownFleet();
  const scopes = createScopes(known);
  const replica = createReplica({ redis, key, known, log });
  let looking: Repeated | undefined;
  const closing = new AbortController();
  let lookedAt = -Infinity;
  let refreshing: Promise<boolean> | undefined;
  let failing: string | undefined;
  let lacking = "";

  const isReady = () => replica.head().refreshedAt !== undefined;

  async function look(): Promise<void> {
    lookedAt = performance.now();
    try {
      await replica.sync();
    } catch (error) {
      log.debug("inventory.redis-away", { reason: messageOf(error) });
    }
  }

  /**
   * When nobody has read the service yet, this process does, so that a gateway knows names before a
   * worker is running.
   */
  async function lookOrRead(): Promise<void> {
    await look();
    if (isReady() || !replica.isReachable()) return;
    const first = redis.set(key("inventory", "first"), "held", "PX", retryAfterMs, "NX");
    if ((await first) !== null) await refreshOnce();
  }

  /** Looks at Redis in the background. Only the first look is waited for, and only briefly. */
  async function freshen(): Promise<void> {
    const isOpen = () => !closing.signal.aborted;
    if (isReady()) {
      if (isOpen() && performance.now() - lookedAt >= lookEveryMs) void look();
      return;
    }
    const until = performance.now() + deadlineMs(firstPatienceMs);
    while (isOpen() && !isReady() && performance.now() < until)
      await Promise.race([Promise.all([look(), pause(50)]), pause(until - performance.now())]);
  }

  async function knowing<T>(value: T): Promise<T> {
    await freshen();
    if (isReady()) return value;
    throw new UserError(
      "The VMs aren't known yet: Gatehouse is still reading the list from the compute service.",
      "Try again in a moment. If this continues, `/gatehouse status` says what is wrong.",
    );
  }

  /**
   * Logs the state of the list once. It is read every ten seconds while it fails, so a line is
   * written only when it fails, fails for another reason, or works again.
   */
  function tellOnce(reason: string | undefined): void {
    if (reason === failing) return;
    failing = reason;
    if (reason === undefined) log.info("inventory.list-read-again");
    else log.warn("inventory.list-failed", { reason });
  }

  /** Logs one line when other things than before can't be read, or when everything can. */
  function logGaps(): void {
    const gaps = [replica.head().gaps, ...known.gaps()].filter((words) => words !== "").join("; ");
    if (gaps === lacking) return;
    lacking = gaps;
    if (gaps === "") log.info("inventory.complete-again");
    else log.warn("inventory.incomplete", { gaps: gaps.slice(0, 1000) });
  }

  async function refresh(): Promise<boolean> {
    await replica.sync();
    const { signal } = closing;
    const result = await readEverything({ compute, known, replica, log, concurrency, signal });
    if (!result) return false;
    const { failed, reason, unread, gaps } = result;
    tellOnce(reason);
    if (failed) await replica.failed();
    else if (!(await replica.complete({ unread, gaps }))) return false;
    await replica.sync();
    logGaps();
    log.debug("inventory.refreshed", { ...known.count(), failed, unread: unread.length });
    return !failed;
  }

  /** Runs one refresh at a time in this process. */
  function refreshOnce(): Promise<boolean> {
    refreshing ??= refresh().finally(() => (refreshing = undefined));
    return refreshing;
  }

  /**
   * Never rejects. When Redis is unavailable, this process knows the change, and the next refresh
   * tells the others.
   */
  async function note({ vm, project, goneProjectId }: NotedRead): Promise<void> {
    if (project)
      await replica.change(project.id, (now) => {
        const namedProject = asCalledBefore({ ...now?.project, ...project }, now?.project);
        return contentsOf(namedProject, now?.vms ?? [], now?.gaps);
      });
    // A VM of an unknown project waits for the next refresh, because it can't be shown without the
    // project's name.
    if (vm)
      await replica.change(
        vm.projectId,
        (now) => now && contentsOf(now.project, merged(vm, now.vms), now.gaps),
      );
    if (goneProjectId !== undefined) await replica.change(goneProjectId, () => undefined);
  }

  // Something unknown is looked for before the answer is that it doesn't exist: other people create
  // VMs, too.
  const againMs = Math.min(longestAgainMs, refreshMs / 20);
  let begunAt = -Infinity;
  let next: Promise<boolean> | undefined;

  /** Starts a refresh. Everyone who asks before it begins shares it. */
  async function beginRefresh(): Promise<boolean> {
    await pause(begunAt + againMs - performance.now());
    next = undefined;
    begunAt = performance.now();
    // This refresh began before the question, so it doesn't count.
    await refreshing?.catch(() => undefined);
    // The regular refresh meets the same error and logs it.
    return refreshOnce().catch(() => false);
  }

  /** Waits for a refresh that began after the question. */
  async function upToDate(patience?: number, askedAt = performance.now()): Promise<void> {
    if (patience === undefined && known.count().projects > maxProjectsToSeek) return;
    const leftMs = () => askedAt + deadlineMs(patience ?? patienceMs) - performance.now();
    for (let isOver = false; !isOver && leftMs() > 0;)
      isOver = await within(leftMs(), (next ??= beginRefresh()), () => true);
  }

  /**
   * Whether a program's question may cause another read of the service. False without Redis, where
   * it isn't known whether another process has just read it.
   */
  async function isDueForPrograms(): Promise<boolean> {
    const { refreshedAt } = replica.head();
    // A time in the future is from before Redis's clock was set back.
    const ageMs = refreshedAt === undefined ? Infinity : Math.abs(Date.now() - refreshedAt);
    if (ageMs < newForProgramsMs) return false;
    const lease = key("inventory", "for-programs");
    const taken = redis.set(lease, "held", "PX", readForProgramsEveryMs, "NX");
    return (await taken.catch(() => null)) !== null;
  }

  async function readVm(id: string): Promise<void> {
    const vm = await compute.vms.get(id, { onGaps: () => undefined });
    if (!known.entry(vm.projectId)) await readProject(vm.projectId);
    await note({ vm });
  }

  const readProject = async (id: string) =>
    note({ project: await compute.projects.get(id, { onGaps: () => undefined }) });

  /**
   * Looks for something unknown: by ID with one read, or with a refresh if that `isDue`. `seen` is
   * what the person may see.
   */
  async function seek(
    kind: "vm" | "project",
    words: string,
    { seen, isDue }: { seen: KnownFleet; isDue: () => Promise<boolean> },
  ): Promise<void> {
    const isKnown = () => (kind === "vm" ? seen.findVm(words) : seen.findProject(words));
    if (isKnown()) return;
    const plain = plainForm(words);
    if (plain.includes("/")) {
      if (await isDue()) await seekIn(plain, seen);
      return;
    }
    const askedAt = performance.now();
    await quietly(kind === "vm" ? readVm(plain) : readProject(plain));
    if (!isKnown() && (await isDue())) await upToDate(undefined, askedAt);
  }

  /** For `project/name`, or a glob of that kind: reads the VMs of the one project that it names. */
  async function seekIn(words: string, seen: KnownFleet): Promise<void> {
    const project = seen.findProject(words.split("/")[0] ?? "");
    if (!project || !("found" in project)) return upToDate();
    const { id } = project.found;
    const readAndNote = async () => {
      let gaps: ListGaps | undefined;
      const onGaps = (noted: ListGaps) => void (gaps = noted);
      const vms = await compute.projects.vms(id, { onGaps });
      await replica.change(id, (now) => now && contentsRead(now.project, vms, gaps, now));
    };
    await quietly(readAndNote());
  }

  /** The answers from all that is known or from what a scope sees, for people or for programs. */
  function answersFrom(
    part: () => Promise<KnownFleet>,
    { isForPrograms = false } = {},
  ): Omit<Inventory, "start" | "close"> {
    const isDue = isForPrograms ? isDueForPrograms : async () => true;
    // A program must not get older data than what Gatehouse itself has learned since.
    const catchUp = async () => {
      if (isForPrograms || !isReady()) await look();
    };
    const ready = async () => {
      if (isForPrograms) await look();
      return knowing(await part());
    };
    return {
      async findVm(words, { onlyKnown = false } = {}) {
        const name = words.trim();
        await catchUp();
        const seen = await part();
        // An ID can't become ambiguous through what isn't known yet.
        if (!seen.vm(name)) await knowing(seen);
        if (!onlyKnown) await seek("vm", name, { seen, isDue });
        return seen.findVm(name) ?? { unknown: onlyKnown ? [] : seen.suggestVms(name, didYouMean) };
      },
      async findProject(words, { onlyKnown = false } = {}) {
        const name = words.trim();
        const seen = await ready();
        if (!onlyKnown) await seek("project", name, { seen, isDue });
        const unknown = () => (onlyKnown ? [] : seen.suggestProjects(name, didYouMean));
        return seen.findProject(name) ?? { unknown: unknown() };
      },
      async matchVms(words) {
        const glob = words.trim();
        const plain = plainForm(glob);
        const seen = await ready();
        if (await isDue()) await (plain.includes("/") ? seekIn(plain, seen) : upToDate());
        return seen.matchVms(glob);
      },
      async upToDate(patience) {
        await catchUp();
        if (await isDue()) await upToDate(patience);
      },
      async suggestVms(typed, most = 10) {
        await freshen();
        return (await part()).suggestVms(typed.trim(), most);
      },
      async suggestProjects(typed, most = 10) {
        await freshen();
        return (await part()).suggestProjects(typed.trim(), most);
      },
      vms: async (filter) => (await ready()).vms(filter),
      projects: async () => (await ready()).projects(),
      note,
      async state() {
        await (isReady() ? freshen() : look());
        const seen = await part();
        const { refreshedAt, version, failed, unread, gaps } = replica.head();
        // Somebody who sees only a part isn't told names of other projects.
        const ofList = seen === known ? gaps : "some of it can't be read";
        const all = [...(gaps === "" ? [] : [`the list of projects: ${ofList}`]), ...seen.gaps()];
        // Three intervals are the normal age, plus a failed refresh, plus a long one. A time in the
        // future doesn't tell an age.
        const isOverdue =
          refreshedAt === undefined || Math.abs(Date.now() - refreshedAt) > 3 * refreshMs;
        return {
          refreshedAt,
          version,
          stale: failed || isOverdue || !replica.isReachable(),
          ...seen.count(),
          unread: unread.filter((name) => seen === known || seen.findProject(name) !== undefined),
          gaps: all.length > 0 ? all : undefined,
        };
      },
      seenIn: (scope) => ({
        ...inventory,
        ...answersFrom(async () => {
          const viewerScope = await scope();
          return viewerScope ? await scopes(viewerScope) : known;
        }),
      }),
      forPrograms: () => ({ ...inventory, ...answersFrom(part, { isForPrograms: true }) }),
      refresh: refreshOnce,
    };
  }

  const inventory: Inventory = {
    ...answersFrom(async () => known),
    start() {
      looking = repeatHere("inventory-look", lookInBackgroundMs, lookOrRead, log);
      void looking.now();
    },
    async close() {
      closing.abort();
      // A call to the service may outlast this. Nothing is written after it.
      const ended = Promise.allSettled([refreshing, looking?.close()]);
      await within(1_000, ended, () => undefined);
    },
  };
  return inventory;
}

const pause = (ms: number) => delay(Math.max(0, ms), undefined, { ref: false });

/** Fields that a record omits stay as they were. */
function merged(vm: Vm, vms: readonly KnownVm[]): (KnownVm | Vm)[] {
  const before = vms.find(({ id }) => id === vm.id);
  const namedVm = asCalledBefore(vm, before);
  return before ? vms.map((old) => (old === before ? { ...old, ...namedVm } : old)) : [...vms, vm];
}

/**
 * Ignores that something doesn't exist, isn't a possible ID, or that the service is unreachable. It
 * stays unknown then.
 */
async function quietly(read: Promise<void>): Promise<void> {
  try {
    await read;
  } catch (error) {
    if (!(error instanceof ComputeError || error instanceof UserError)) throw error;
  }
}
