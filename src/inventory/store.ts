import { randomUUID } from "node:crypto";
import * as z from "zod";
import { defineScript, type RedisClient } from "../redis/redis.ts";
import { createLeases } from "../redis/lease.ts";
import { type Contents, pack, unpack } from "./packing.ts";
import * as scripts from "./scripts.ts";

/** Read at once: enough to be quick, few enough that neither Redis nor this process stands still. */
const chunk = 100;
/** Removed projects remembered; a reader that missed more reads everything again. */
const rememberedGone = 1000;

const texts = z.array(z.string());
// As the scripts answer
const putReply = z.tuple([z.number(), z.string()]);
const changesReply = z.tuple([
  z.string(),
  z.string(),
  z.string(),
  z.string(),
  z.string(),
  z.number(),
  texts,
  texts,
]);

/** How the last refresh ended, for all processes. */
export interface Head {
  /** Names this set of data. Undefined when Redis has none. */
  epoch: string | undefined;
  version: number;
  refreshedAt: number | undefined;
  failed: boolean;
  unread: readonly string[];
}

interface Changes extends Head {
  /** `changed` is all there is, not just what is new. */
  full: boolean;
  changed: ReadonlyMap<string, number>;
  gone: readonly string[];
}

interface Verdict {
  failed: boolean;
  refreshedAt: number;
  unread: readonly string[];
  /** How long nobody needs to refresh again (ms). */
  recentMs: number;
}

/** The inventory in Redis. Every call rejects when Redis is away. */
export type InventoryStore = ReturnType<typeof createInventoryStore>;

export function createInventoryStore(redis: RedisClient, key: (...parts: string[]) => string) {
  // The layout's version is in the name: an older process next to a newer one keeps to its own.
  const named = (name: string) => key("inventory", "v1", name);
  const head = named("head");
  const projects = named("projects");
  const vms = named("vms");
  const changes = named("changes");
  const gone = named("gone");
  const lease = named("lease");
  const recent = named("recent");
  const put = defineScript(redis, "inventoryPut", scripts.put);
  const changesSince = defineScript(redis, "inventoryChangesSince", scripts.changesSince);
  const read = defineScript(redis, "inventoryRead", scripts.read);
  const claim = defineScript(redis, "inventoryClaim", scripts.claim);
  const leases = createLeases(redis);
  const release = defineScript(redis, "inventoryRelease", scripts.release);

  return {
    /** `contents` undefined removes the project. The new version, or why it wasn't written. */
    async put(
      projectId: string,
      expected: number,
      contents: Contents | undefined,
      token = "",
    ): Promise<{ version: number; epoch: string } | "changed" | "lease lost"> {
      const packed = contents ? pack(contents) : { project: "", vms: "" };
      const values = [
        projectId,
        `${expected}`,
        packed.project,
        packed.vms,
        randomUUID(),
        token,
        `${rememberedGone}`,
      ];
      const answer = await put([head, projects, vms, changes, gone, lease], values);
      const [version, epoch] = putReply.parse(answer);
      return version === -1 ? "changed" : version === -2 ? "lease lost" : { version, epoch };
    },

    /** Whether a reader that knows this much has nothing to take over. One command, where `changesSince` is several. */
    async isCurrent(known: Head): Promise<boolean> {
      const now = await redis.hmget(head, "epoch", "version", "refreshedAt", "failed");
      const mine = [known.epoch, known.version, known.refreshedAt, known.failed ? 1 : 0];
      return known.epoch !== undefined && mine.every((one, at) => String(one) === now[at]);
    },

    async changesSince(version: number, epoch: string | undefined): Promise<Changes> {
      const answer = await changesSince([head, changes, gone], [version, epoch ?? ""]);
      const [nowEpoch, nowVersion, refreshedAt, failed, unread, full, changed, removed] =
        changesReply.parse(answer);
      const versions = new Map<string, number>();
      for (let at = 0; at + 1 < changed.length; at += 2)
        versions.set(changed[at] ?? "", Number(changed[at + 1]));
      return {
        epoch: nowEpoch || undefined,
        version: Number(nowVersion),
        refreshedAt: refreshedAt ? Number(refreshedAt) : undefined,
        failed: failed === "1",
        unread: namesFrom(unread),
        full: full === 1,
        changed: versions,
        gone: removed,
      };
    },

    /** Calls back for each: with undefined when it isn't there (or isn't readable). */
    async read(
      projectIds: readonly string[],
      seen: (
        projectId: string,
        stored: { version: number; contents: Contents } | undefined,
      ) => void,
    ): Promise<void> {
      for (let from = 0; from < projectIds.length; from += chunk) {
        const ids = projectIds.slice(from, from + chunk);
        const rows = texts.parse(await read([projects, vms, changes], ids));
        for (const [index, id] of ids.entries()) {
          const [version, project = "", list = ""] = rows.slice(index * 3, index * 3 + 3);
          const contents = version ? unpack(id, { project, vms: list }) : undefined;
          seen(id, contents && { version: Number(version), contents });
        }
      }
    },

    async claim(token: string, leaseMs: number, force: boolean): Promise<boolean> {
      return Number(await claim([lease, recent], [token, `${leaseMs}`, force ? "1" : "0"])) === 1;
    },

    renew: (token: string, leaseMs: number): Promise<boolean> =>
      leases.extend(lease, token, leaseMs),

    /** Without a verdict the refresh was given up: the next process may start over at once. */
    async release(token: string, verdict?: Verdict): Promise<void> {
      const { failed = "", refreshedAt = 0, unread = [], recentMs = 1 } = verdict ?? {};
      const ended = failed === "" ? "" : failed ? "1" : "0";
      const values = [
        token,
        ended,
        `${refreshedAt}`,
        JSON.stringify(unread),
        `${Math.ceil(recentMs)}`,
        randomUUID(),
      ];
      await release([lease, recent, head], values);
    },
  };
}

function namesFrom(json: string | undefined): string[] {
  const names: unknown = json ? JSON.parse(json) : [];
  return Array.isArray(names) ? names.map(String) : [];
}
