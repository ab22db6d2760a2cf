import * as z from "zod";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import type { RedisClient } from "../../redis/redis.ts";
import type { LeftOut, Specs } from "../compute/compute.ts";
import { type Contents, contentsOf } from "./contents.ts";
import type { KnownProject, KnownVm } from "./inventory.ts";
import { pauseNowAndThen } from "./pause-now-and-then.ts";

/**
 * How many projects are read at once: enough to be quick, and few enough that neither Redis nor
 * this process is blocked.
 */
const chunk = 100;
const optionalText = z.string().exactOptional();
const optionalNumber = z.number().exactOptional();
const commonMembers = {
  id: z.string(),
  name: z.string(),
  status: z.string(),
  region: optionalText,
  createdAt: optionalText,
};

export const contentsRecord = defineRecord({
  name: "project of the inventory",
  schema: objectOf<Contents>({
    project: objectOf<KnownProject>({ ...commonMembers, type: z.string() }),
    vms: z.array(
      objectOf<KnownVm>({
        ...commonMembers,
        projectId: z.string(),
        projectName: z.string(),
        specs: objectOf<Specs>({
          cpu: optionalNumber,
          memory: optionalNumber,
          disk: optionalNumber,
        }).exactOptional(),
      }),
    ),
    gaps: objectOf<NonNullable<Contents["gaps"]>>({
      leftOut: z.array(objectOf<LeftOut>({ name: z.string().optional(), problem: z.string() })),
      isCut: z.boolean(),
    }).exactOptional(),
  }),
});

export const unreadProjects = defineRecord<readonly string[]>({
  name: "unread projects of the inventory",
  schema: z.array(z.string()),
});

/** Where the inventory is kept. */
export type Place = { redis: RedisClient; key: (...parts: string[]) => string };

/**
 * Reads projects from Redis. The contents are undefined for a project that is gone, and
 * `unreadable` for one that can't be read; a project that isn't in Redis is left out.
 */
export async function* readProjects(
  { redis, key }: Place,
  ids: readonly string[],
): AsyncGenerator<[id: string, contents: Contents | "unreadable" | undefined]> {
  const pause = pauseNowAndThen();
  for (let from = 0; from < ids.length; from += chunk) {
    const some = ids.slice(from, from + chunk);
    const named = key("inventory", "projects");
    const texts = await redis.hmget(named, ...some);
    for (const [index, id] of some.entries()) {
      const text = texts[index] ?? undefined;
      if (text === undefined) continue;
      const stored = text === "" ? undefined : contentsRecord.parse(text, `${named} ${id}`);
      if (text !== "" && !stored) yield [id, "unreadable"];
      else yield [id, stored && contentsOf(stored.project, stored.vms, stored.gaps)];
      await pause();
    }
  }
}

/** The state of the whole inventory, which all processes share. */
export function headOf(
  { version, refreshedAt, failed, unread = "[]", gaps = "" }: Record<string, string>,
  key: string,
) {
  const unreadNames = unreadProjects.parse(unread, key);
  // Where nobody can tell what wasn't read, nothing counts as read completely.
  const isComplete = refreshedAt !== undefined && unreadNames !== undefined;
  return {
    /** The highest version given so far; 0 when Redis is empty. */
    version: Number(version ?? 0),
    /**
     * When the last complete refresh ended (Redis time, ms). Undefined when there was none since
     * Redis was emptied.
     */
    refreshedAt: isComplete ? Number(refreshedAt) : undefined,
    /** Whether the last refresh failed. */
    failed: failed === "1" || unreadNames === undefined,
    unread: unreadNames ?? [],
    /** The gaps of the list of projects then, in words. Empty when it had none. */
    gaps,
  };
}

export type Head = ReturnType<typeof headOf>;
