import { closedField } from "../../core/deliver/open-place.ts";
import { boardOf, createBoards } from "../../redis/board.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { createRecords } from "../../redis/record.ts";
import { type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import { placeIn } from "../../redis/shown.ts";
import { detailsOf, fires } from "./alert-group.ts";
import { type AlertRecord, alertRecord } from "./alert-record.ts";
import { shortHash } from "./read-alerts.ts";
import { type FiringAlert, type StoredAlert, parseAlert } from "./stored-alert.ts";

const keptMs = 7 * 24 * 3600_000;
const maxTries = 20;
const untoldMs = 30_000;

/** The ID that a group gets when it fires anew. It follows from this one, so every process finds it. */
export const idAfter = (id: string) => `a-${shortHash(id)}`;

export type AlertStore = ReturnType<typeof createAlertStore>;

/** Groups of alerts in Redis: what stands, and each change as one compare-and-set. */
export function createAlertStore(redis: RedisClient, key: Keys) {
  const alertKey = (id: string) => key("alert", id);
  const outbox = createOutbox(redis, key, "alert", alertKey);
  /** Groups with a held delivery, each due when that delivery counts. */
  const held = createOutbox(redis, key, "alert-held", alertKey);
  const records = createRecords(redis, key, { open: key("alerts", "open"), outbox });
  /** Overviews: messages that tell of several groups. */
  const overviews = createBoards(redis, {
    outbox,
    memberKey: alertKey,
    openKey: (...place) => key("alerts", "overview", ...place),
    letter: "o",
    opensForMs: 10 * 60_000,
    keptMs,
  });
  const now = () => redisNow(redis);
  const get = async (id: string) => parseAlert(id, await outbox.get(id));

  async function getMany(ids: readonly string[]): Promise<StoredAlert[]> {
    const alerts = await Promise.all(ids.map(get));
    return alerts.filter((alert) => alert !== undefined);
  }

  /** The group, and each one that it became since by firing anew, oldest first. */
  async function getWithLater(id: string): Promise<StoredAlert[]> {
    const all: StoredAlert[] = [];
    for (let alert = await get(id); alert; alert = await get(idAfter(alert.id))) all.push(alert);
    return all;
  }

  /**
   * Writes a new state of the group. False, with nothing written, when the group changed since it
   * was read.
   */
  async function move(
    { id, revision }: Pick<StoredAlert, "id" | "revision">,
    record: AlertRecord,
    audit?: object,
  ): Promise<boolean> {
    const state = fires(record.group) ? "firing" : "ended";
    const how = { id, revision, state, final: state === "ended", keptMs };
    const fields = { alert: alertRecord.write(record) };
    return (await records.move({ ...how, audit, fields })) !== undefined;
  }

  /** Redraws the group's message. */
  async function touch(id: string): Promise<void> {
    if (await redis.exists(alertKey(id))) await records.touch(id);
  }

  const readOpen = async () => getMany(await records.openIds());

  /** The groups that fire and name this VM, the oldest first. */
  async function openOn(vmId: string): Promise<readonly StoredAlert[]> {
    const open = await readOpen();
    const named = open.filter(({ record }) => record.vms.some(({ id }) => id === vmId));
    return named.toSorted((a, b) => a.createdAt - b.createdAt);
  }

  return {
    outbox,
    held,
    overviews,
    now,
    get,
    getMany,
    getWithLater,
    move,
    readOpen,
    touch,
    refresh: records.refresh,

    openOn,

    /** Redraws the messages of firing groups that name this VM. */
    async touchOn(vmId: string): Promise<void> {
      for (const { id } of await openOn(vmId)) await touch(id);
    },

    /**
     * Notes on the group that its button made this request, or redraws the group when the request
     * has ended. Idempotent.
     */
    async note(id: string, request: string): Promise<void> {
      for (let tries = 0; tries < maxTries; tries++) {
        const before = await get(id);
        const { requests = [] } = before?.record ?? {};
        if (!before || requests.includes(request)) return touch(id);
        if (await move(before, { ...before.record, requests: [...requests, request] })) return;
      }
    },

    /**
     * Notes that the channel took no message of a group or an overview. It is tried again later.
     */
    async close(id: string, channelId: string): Promise<void> {
      await outbox.remember(id, closedField(channelId, await now()));
    },

    /** Firing groups that no channel shows, though a message should have been posted by now. */
    async untold(afterMs = untoldMs): Promise<StoredAlert[]> {
      const [open, at] = [await readOpen(), await now()];
      return open.filter(({ delivered, createdAt }) => {
        const isShown = delivered.card !== undefined || boardOf(delivered) !== undefined;
        return !isShown && at - createdAt >= afterMs;
      });
    },

    /** Where the group's message stands: its own card, or its overview. */
    async placeOf(alert: StoredAlert) {
      const overview = boardOf(alert.delivered);
      return overview ? placeIn((await outbox.get(overview))["card"]) : alert.delivered.card;
    },

    /** Alerts that fire now, for digests and the Home tab. */
    async firing(): Promise<readonly FiringAlert[]> {
      const open = await readOpen();
      return open.flatMap(({ id, record: { group, vms, silence } }) => {
        const quietSince = silence === undefined ? undefined : group.told?.heardAt;
        return detailsOf(group).flatMap(({ name, vm: label, since, endedAt }) => {
          const { id: vmId, project } = vms.find((vm) => vm.label === label) ?? {};
          const line = `${id} ${name} ${label}`;
          return endedAt ? [] : [{ key: line, name, label, vmId, project, since, quietSince }];
        });
      });
    },
  };
}
