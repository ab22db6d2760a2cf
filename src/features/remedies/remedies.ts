import { hash } from "node:crypto";
import * as z from "zod";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { createRecords } from "../../redis/record.ts";
import { type Fields, type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import { keepFinalMs } from "../../core/request/record.ts";
import { type Verdict, firingIn, remedyVerdicts } from "./judge-remedy.ts";

/** An attempt to end alerts of a VM: a request that a button of their message made. */
export interface RemedyRecord {
  /** ID of the request, and of the remedy. */
  request: string;
  /** ID of the group of alerts. */
  alert: string;
  vmId: string;
  /** The VM's project then, whose people alone saw the attempt. */
  project: { id: string; name: string | undefined };
  /** The VM's projects when these alerts arrived. Their names are told only to who sees all of them. */
  alertProjects: readonly { id: string; name: string }[];
  /** Name of the command. */
  command: string;
  /** The names of the alerts that fired on the VM, each with its beginning (ms by its source). */
  fired: Readonly<Record<string, number>>;
}

/**
 * The life of a remedy, whose ID is that of its request.
 *
 *     open ◄─► judged   every alert that fired has ended, or nobody tells of it any more; one can
 *       │               fire again with the same beginning
 *       └────► void     the request changed nothing, or nobody knows when
 *
 * Some minutes after the request ended, an open remedy gets a judgment, which is replaced whenever
 * the alerts' source speaks again.
 */
const remedyStates = ["open", "judged", "void"] as const;

export interface StoredRemedy {
  record: RemedyRecord;
  state: (typeof remedyStates)[number];
  revision: number;
  createdAt: number;
  judgment: Judgment | undefined;
  /** The marks of its message, and of the one that takes it back. */
  mark: string | undefined;
  correctionMark: string | undefined;
}

export interface Judgment {
  /** The verdict for each alert name. */
  verdicts: Readonly<Record<string, Verdict>>;
  /** The alerts that fired by this judgment or by one that it replaced: what may have been told. */
  firedOnce: readonly string[];
  /** When the request ended, and when the alerts were looked at (ms by Redis). */
  changedAt: number;
  judgedAt: number;
  /** Later attempts changed the VM meanwhile, and their messages tell of all that still fires. */
  isSuperseded: boolean;
}

export const remedyState = defineRecord({
  name: "state of a remedy",
  schema: z.enum(remedyStates),
});

/** The VM's projects when its alerts arrived, in a remedy and in the audit record of its judgment. */
export const alertProjects = z.array(z.looseObject({ id: z.string(), name: z.string() }));

export const remedyRecord = defineRecord({
  name: "remedy",
  schema: objectOf<RemedyRecord>({
    request: z.string(),
    alert: z.string(),
    vmId: z.string(),
    // Release 1.0.0-rc.1 stored no project.
    project: z
      .looseObject({ id: z.string(), name: z.string().optional() })
      .default({ id: "" })
      .transform(({ id, name }) => ({ id, name })),
    alertProjects: alertProjects.default([]),
    command: z.string(),
    fired: z.record(z.string(), z.number()),
  }),
});

export const judgmentRecord = defineRecord<Judgment>({
  name: "judgment of a remedy",
  schema: z
    .looseObject({
      verdicts: z.record(z.string(), z.enum(remedyVerdicts)),
      firedOnce: z.array(z.string()).optional(),
      changedAt: z.number(),
      judgedAt: z.number(),
      isSuperseded: z.boolean(),
    })
    // Release 1.0.0-rc.1 judged once, so what it told is what fires by its judgment.
    .transform((judgment) => ({
      ...judgment,
      firedOnce: judgment.firedOnce ?? firingIn(judgment.verdicts),
    })),
});

/** The newest attempts that are kept for each alert of a VM. */
const mostKept = 10;
/** The most alerts of a VM that one attempt is about. */
const mostNames = 10;

export type Remedies = ReturnType<typeof createRemedies>;

/**
 * Stores remedies in Redis. The attempts at one alert of a VM are in a list of their IDs, which is
 * written before the remedy: an ID without a remedy is skipped.
 */
export function createRemedies(redis: RedisClient, key: Keys) {
  const outbox = createOutbox(redis, key, "remedy", (id) => key("remedy", id));
  const records = createRecords(redis, key, { open: key("remedies", "open"), outbox });
  const listOf = (vmId: string, alertName: string) =>
    key("remedies", "of", hash("sha256", JSON.stringify([vmId, alertName])).slice(0, 20));

  async function getMany(ids: readonly string[]): Promise<StoredRemedy[]> {
    const remedies = await Promise.all(
      ids.map(async (id) => parseRemedy(id, await outbox.get(id))),
    );
    return remedies.filter((remedy) => remedy !== undefined);
  }

  async function move(
    { record, revision }: Pick<StoredRemedy, "record" | "revision">,
    state: StoredRemedy["state"],
    fields: Readonly<Record<string, string>> = {},
    audit?: object,
  ): Promise<boolean> {
    const how = { id: record.request, revision, state, final: state !== "open", fields, audit };
    return (await records.move({ ...how, keptMs: keepFinalMs })) !== undefined;
  }

  return {
    outbox,
    now: () => redisNow(redis),
    touch: records.touch,
    openIds: records.openIds,

    get: async (id: string) => parseRemedy(id, await outbox.get(id)),

    /** Begins to follow a request. Idempotent. */
    async follow(record: RemedyRecord): Promise<void> {
      const at = await redisNow(redis);
      const names = Object.keys(record.fired).slice(0, mostNames);
      for (const name of names) {
        const list = listOf(record.vmId, name);
        await redis
          .multi()
          .zadd(list, "NX", at, record.request)
          .zremrangebyrank(list, 0, -mostKept - 1)
          .pexpire(list, keepFinalMs)
          .exec();
      }
      const fired = Object.fromEntries(names.map((name) => [name, record.fired[name] ?? 0]));
      const kept = { ...record, fired };
      await move({ record: kept, revision: 0 }, "open", { remedy: remedyRecord.write(kept) });
    },

    /**
     * Stores a judgment, with `audit` in the trail. It is the last one when its alerts are all over
     * (`isLast`).
     */
    judge: (
      remedy: StoredRemedy,
      judgment: Judgment,
      { isLast, audit }: { isLast: boolean; audit: object | undefined },
    ): Promise<boolean> =>
      move(remedy, isLast ? "judged" : "open", { judgment: judgmentRecord.write(judgment) }, audit),

    /** Forgets a remedy whose request changed nothing, or nobody knows when. */
    voided: (remedy: StoredRemedy): Promise<boolean> => move(remedy, "void"),

    /** The attempts to end this alert of a VM, newest first. */
    async of(vmId: string, alertName: string): Promise<readonly StoredRemedy[]> {
      const all = await getMany(await redis.zrevrange(listOf(vmId, alertName), 0, mostKept - 1));
      return all.filter(({ state }) => state !== "void");
    },
  };
}

/**
 * Parses a stored remedy; undefined when it is gone or can't be read. A judgment that can't be read
 * is made again.
 */
export function parseRemedy(id: string, fields: Fields): StoredRemedy | undefined {
  const { judgment } = fields;
  if (!fields["remedy"] || !fields["state"]) return undefined;
  const record = remedyRecord.parse(fields["remedy"], id);
  const state = remedyState.check(fields["state"], id);
  if (!record || !state) return undefined;
  return {
    record,
    state,
    revision: Number(fields["revision"]),
    createdAt: Number(fields["createdAt"]),
    judgment: judgment ? judgmentRecord.parse(judgment, id) : undefined,
    mark: fields["said:end"],
    correctionMark: fields["said:correction"],
  };
}
