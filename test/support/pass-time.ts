import { callOf } from "../../src/core/request/stage.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import type { TestWorld } from "./start-world.ts";
import { until } from "./until.ts";

/** Writes fields of a request that has not changed since it was read, as a change of it. Returns whether it did. */
const replace = `if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[1] then return 0 end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1`;

type Change = Partial<Record<"record" | "stage", object>>;

/** Changes times in the journal, so that a test doesn't wait for them to pass. Returns whether the request was as it was read. */
async function write(world: TestWorld, request: StoredRequest, change: Change): Promise<boolean> {
  const hash = world.key("request", request.record.id);
  const fields = Object.entries(change).flatMap(([field, value]) => [field, JSON.stringify(value)]);
  return (await world.client.eval(replace, 1, hash, request.revision, ...fields)) === 1;
}

const newest = async ({ store }: TestWorld) => store.getMany(await store.recentIds({}, 50));

/** Changes the times of the newest request of this target in the journal. */
export async function rewrite(
  world: TestWorld,
  targetId: string,
  change: (request: StoredRequest) => Change,
): Promise<void> {
  await until(async () => {
    const request = (await newest(world)).find(({ record }) => record.target.id === targetId);
    return request !== undefined && write(world, request, change(request));
  });
}

/** Resolves once the newest change was seen to be under way, as it stays where weather keeps it `stuck`. */
export const seenUnderWay = (world: TestWorld): Promise<unknown> =>
  until(async () => callOf((await newest(world))[0]?.stage ?? { state: "draft" })?.mark);

/** Lets the time be over in which the request of this target could begin. */
export const passStart = (world: TestWorld, targetId: string): Promise<void> =>
  rewrite(world, targetId, ({ record }) => ({ record: { ...record, runsUntil: 1 } }));

/**
 * Lets the quiet period of calls in doubt be over, or all their time where the service can't be read. Resolves when so many requests
 * are `unknown`.
 */
export async function passQuiet(world: TestWorld, unknown = 1): Promise<void> {
  const timing = world.processes[0]?.config.policy.timing;
  if (!timing) throw new Error("no process is there to wait");
  await until(async () => {
    const [requests, now] = await Promise.all([newest(world), world.store.now()]);
    for (const request of requests) {
      const { stage } = request;
      if (stage.state !== "unclear") continue;
      const isBlind = stage.reads.blindSince !== undefined;
      const sentAt = now - (isBlind ? timing.settleDeadlineMs : timing.quiesceMs) - 1_000;
      if (stage.call.sentAt <= sentAt) continue;
      const reads = isBlind ? { ...stage.reads, blindSince: sentAt } : stage.reads;
      const call = { ...stage.call, sentAt, endedAt: sentAt };
      await write(world, request, { stage: { ...stage, call, reads } });
    }
    return requests.filter(({ state }) => state === "unknown").length;
  }).toBe(unknown);
}
