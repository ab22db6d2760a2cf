import type { Policy } from "../../config/policy-file.ts";
import { UserError } from "../../errors.ts";
import { counted, duration } from "../../messages/markdown.ts";
import { type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import type { Origin } from "./origin.ts";
import { createSlidingWindows, type PlaceOptions, type SlidingWindows } from "./sliding-windows.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;
/** How long it is known when programs last called, after the last call of any (ms). */
const callsForMs = 90 * 24 * hourMs;
/** Longer than any approval may take. */
const draftMs = 30 * 24 * hourMs;

/** The limits of policy, counted in Redis for all processes together. */
type Limits = Policy["limits"];

/**
 * Places that everyone shares. An emergency has places of its own: it neither takes those of others
 * nor waits for them.
 */
export type Hourly = "destructivePerHour" | "breakGlassPerHour";

/** Says which shared place a request takes right before its send. */
export function hourlyOf(
  command: { class: string },
  record: { breakGlass?: boolean | undefined; approval?: unknown; origin: Pick<Origin, "kind"> },
): Hourly | undefined {
  if (record.breakGlass && !record.approval)
    return record.origin.kind === "safety" ? undefined : "breakGlassPerHour";
  return command.class === "destroy" ? "destructivePerHour" : undefined;
}

/** Says in a sentence why there is no place. */
export function limitWords(hourly: Hourly, most: number): string {
  const isDestructive = hourly === "destructivePerHour";
  if (most === 0)
    return `${isDestructive ? "Destructive commands are" : "Break-glass is"} disabled`;
  const s = most === 1 ? "" : "s";
  const noun = isDestructive ? `destructive request${s}` : `use${s} of break-glass`;
  return `Limit reached: ${most} ${noun} an hour in total`;
}

/** States in which a request had no effect. */
const harmless = ["denied", "expired", "cancelled", "rejected", "not-applied"];

/** What is counted against the limits of policy. */
interface Counted {
  personId: string;
  /** Is counted once: the key of an origin, or the ID of a rollout or an interaction. */
  holder: string;
  hourly?: Hourly | undefined;
  limits: Limits;
}

/** A limit without room: a sentence without full stop, and what to do. */
interface Reached {
  limit: keyof Limits;
  sentence: string;
  way: string;
}

/** Looks at a limit or takes a place of it. */
interface Looking {
  /** Takes no place. */
  onlyLooks: boolean;
}

/** Finds the limits of policy that have no room. */
function createReached(places: SlidingWindows, key: Keys) {
  const waitForHourly = (hourly: Hourly, holder: string, limits: Limits, { onlyLooks }: Looking) =>
    places.waitFor(key("rate", hourly), holder, {
      windowMs: hourMs,
      most: limits[hourly],
      onlyLooks,
      isOver: (state) => harmless.includes(state),
    });

  /** Which limit has no room for what a person asks for. */
  async function limitReached(
    { personId, holder, hourly, limits }: Counted,
    { onlyLooks }: Looking,
  ): Promise<Reached | undefined> {
    // The shared place is taken right before the send.
    const hourWaitMs = hourly
      ? await waitForHourly(hourly, holder, limits, { onlyLooks: true })
      : 0;
    if (hourly && hourWaitMs > 0) {
      const most = limits[hourly];
      const way = most === 0 ? "" : tryAgain(hourWaitMs);
      return { limit: hourly, sentence: limitWords(hourly, most), way };
    }
    const most = limits.requestsPerMinute;
    const own = key("rate", "person", personId);
    const waitMs = await places.waitFor(own, holder, { windowMs: minuteMs, most, onlyLooks });
    const words = `You requested ${counted(most, "change")} within a minute, the limit for one person`;
    return waitMs > 0
      ? { limit: "requestsPerMinute", sentence: words, way: tryAgain(waitMs) }
      : undefined;
  }

  async function draftsReached(
    { personId, requestId, limits }: { personId: string; requestId: string; limits: Limits },
    { onlyLooks }: Looking,
  ): Promise<Reached | undefined> {
    const most = limits.draftsPerPerson;
    const drafts = key("rate", "drafts", personId);
    const isOver = (state: string) => state !== "draft";
    const how = { windowMs: draftMs, most, isOver, onlyLooks };
    if ((await places.waitFor(drafts, requestId, how)) === 0) return undefined;
    const words = `${most} of your requests wait for approval, the limit for one person`;
    return {
      limit: "draftsPerPerson",
      sentence: words,
      way: "Cancel one, or wait for a decision. ",
    };
  }

  return { waitForHourly, limitReached, draftsReached };
}

/** Counts against the limits of policy (decision 020). */
export function createLimits(redis: RedisClient, key: Keys) {
  const places = createSlidingWindows(redis, key);
  const { waitForHourly, limitReached, draftsReached } = createReached(places, key);

  return {
    /**
     * Counts what a person asks for, and checks that a place for its send is free. Throws UserError
     * over a limit.
     */
    async countAgainstLimits(asked: Counted): Promise<void> {
      const reached = await limitReached(asked, { onlyLooks: false });
      if (reached) throw overLimit(reached);
    },

    /**
     * Says in a sentence which limit would refuse this now, and counts nothing. `isDraft`: it would
     * wait for approval.
     */
    async limitRefusal(
      asked: Omit<Counted, "holder"> & { isDraft: boolean },
    ): Promise<string | undefined> {
      const { personId, isDraft, limits } = asked;
      const reached =
        (await limitReached({ ...asked, holder: "" }, { onlyLooks: true })) ??
        (isDraft
          ? await draftsReached({ personId, requestId: "", limits }, { onlyLooks: true })
          : undefined);
      return reached && `${reached.sentence}. ${reached.way}`.trim();
    },

    /**
     * Takes a program's place, for a call or an open proposal. Resolves with 0, or with how long
     * until there is room (ms).
     */
    takeApiPlace: (caller: string, id: string, how: PlaceOptions) =>
      places.waitFor(key("rate", "api", caller), id, how),

    async noteApiCall(route: string, caller: string): Promise<void> {
      const last = key("api", "last");
      await redis.hset(last, `${route} ${caller}`, await redisNow(redis));
      await redis.pexpire(last, callsForMs);
    },
    /** When something of a program was last taken (Redis time), by `<route> <caller>`. */
    async apiCalls(): Promise<ReadonlyMap<string, number>> {
      const calls = Object.entries(await redis.hgetall(key("api", "last")));
      return new Map(calls.map(([who, at]) => [who, Number(at)]));
    },

    /**
     * Takes a request's place right before its send, and tells whether there was one. Idempotent.
     */
    async takeHourlyPlace(hourly: Hourly, requestId: string, limits: Limits): Promise<boolean> {
      return (await waitForHourly(hourly, requestId, limits, { onlyLooks: false })) === 0;
    },

    /**
     * Takes a place right before a request that waits for approval is stored. Throws UserError when
     * too many of the person's requests wait.
     */
    async takeDraftPlace(personId: string, requestId: string, limits: Limits): Promise<void> {
      const reached = await draftsReached({ personId, requestId, limits }, { onlyLooks: false });
      if (reached) throw overLimit(reached);
    },
    /** Gives the place back when the request was not stored. */
    async leaveDraftPlace(personId: string, requestId: string): Promise<void> {
      await redis.zrem(key("rate", "drafts", personId), requestId);
    },
  };
}

const tryAgain = (inMs: number) => `Try again in ${duration(inMs)}. `;

const overLimit = ({ limit, sentence: words, way }: Reached) =>
  new UserError(
    `${words}. Nothing was done.`,
    `${way}\`limits.${limit}\` in gatehouse.yml sets this limit.`,
  );
