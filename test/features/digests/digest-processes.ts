import { inject } from "vitest";
import { createDigestStore } from "../../../src/features/digests/digest-store.ts";
import { createStatusRecords } from "../../../src/monitor/status-records.ts";
import { judgeMemory, readMemory } from "../../../src/redis/check.ts";
import { createDigests, type Digests } from "../../../src/features/digests/create-digests.ts";
import type { DigestPart, HandoverPart } from "../../../src/features/digest-part.ts";
import type { Events } from "../../../src/core/events/read-events.ts";
import type { ReadOpenRequests } from "../../../src/features/digests/open-requests.ts";
import type {
  Inventory,
  InventoryState,
  KnownVm,
  Scope,
} from "../../../src/fleet/inventory/inventory.ts";
import { startMessaging } from "../../support/start-delivery.ts";
import { silentLog } from "../../../src/log/log.ts";
import { type Message } from "../../../src/messages/blocks.ts";
import { type ButtonSpec } from "../../../src/messages/buttons.ts";
import { md } from "../../../src/messages/markdown.ts";
import { emptyPolicy, type Policy } from "../../../src/config/policy-file.ts";
import { connectRedis } from "../../../src/redis/redis.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { createNotices } from "../../../src/core/deliver/notices.ts";
import { createPostDue } from "../../../src/features/digests/post-due.ts";
import type { DigestRule } from "../../../src/features/digests/digests-section.ts";

/** Nothing is open, and nothing happened. */
export const quiet = {
  openRequests: (async () => []) satisfies ReadOpenRequests as ReadOpenRequests,
  events: {
    since: async (since) => ({ events: [], since, isCut: false, unread: [] }),
  } satisfies Pick<Events, "since"> as Pick<Events, "since">,
};

/** A button that one person answers for all, as a feature adds it. */
export const signParcel = (parcel: string): ButtonSpec => ({
  label: "Sign for it",
  action: "parcel:sign",
  value: JSON.stringify({ parcel }),
});

/** Asks in each digest for somebody who signs for these parcels. */
export const parcelsToSign = (...parcels: readonly string[]): DigestPart => ({
  name: "parcels",
  read: async () => ({
    all: [
      {
        kind: "parcel",
        words: ["parcel to sign for", "parcels to sign for"],
        place: "review",
        isLasting: true,
        lines: parcels.map((parcel) => ({
          key: parcel,
          text: md`📦 Parcel ${parcel} came.`,
          button: signParcel(parcel),
        })),
      },
    ],
  }),
});

/** The world that all processes of a test see. The test changes it as it goes on. */
export interface Scene {
  now: number;
  vms: readonly KnownVm[];
  state: Partial<InventoryState>;
  rules: DigestRule[];
  openRequests: ReadOpenRequests;
  events: Pick<Events, "since">;
  parts: readonly DigestPart[];
  handoverParts: readonly HandoverPart[];
  policy: Policy;
}

/** The policy with these digests instead of its own. */
const withDigests = (policy: Policy, digests: readonly DigestRule[]): Policy => {
  const some = { ...policy, digests };
  return some;
};

/** An inventory of these VMs, limited to a scope if one is given. */
function inventoryOf(set: Scene, scope?: () => Promise<Scope | undefined>): DigestInventory {
  const vms = async () => {
    const seen = await scope?.();
    const sees = ({ projectId: id, projectName }: KnownVm) =>
      seen === undefined || seen.sees({ id, name: projectName });
    return set.vms.filter(sees);
  };
  return {
    upToDate: async () => undefined,
    vms,
    async projects() {
      const all = (await vms()).map(({ projectId: id, projectName }) => [id, projectName] as const);
      return [...new Map(all)].map(([id, name]) => ({ id, name, type: "", status: "" }));
    },
    state: async () => ({
      refreshedAt: set.now - 5000,
      version: 1,
      stale: false,
      vms: set.vms.length,
      projects: 1,
      unread: [],
      ...set.state,
    }),
    // Only the parts that digests use.
    seenIn: (within) => inventoryOf(set, within) as Inventory,
  };
}

type DigestInventory = Parameters<typeof createDigests>[0]["inventory"];

export interface DigestProcess {
  digests: Digests;
  answerNotices: ReturnType<typeof createNotices>["answer"];
  postDue(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts processes that make digests, each with its own connection, on one Redis and one Slack,
 * with one clock that the test sets.
 */
export async function startScene(scene: Partial<Scene> = {}) {
  const level = await startMessaging();
  const { slack, key } = level;
  const log = silentLog();
  const set: Scene = {
    now: Date.now(),
    vms: [],
    state: {},
    rules: [],
    ...quiet,
    parts: [],
    handoverParts: [],
    policy: emptyPolicy(),
    ...scene,
  };
  const processes: DigestProcess[] = [];
  const alarms: { id: string; message: Message }[] = [];

  async function start(
    how: { at?: (point: "digest", id: string) => Promise<void> } = {},
  ): Promise<DigestProcess> {
    const own = await connectRedis(inject("redisUrl"), "commands", log);
    const notices = createNotices({
      redis: own,
      key,
      answeredForAll: () => [signParcel("").action],
    });
    const delivery = level.deliver([notices.source], undefined, own);
    const now = () => set.now;
    const config = { policy: withDigests(set.policy, set.rules) };
    const digests = createDigests({
      store: createDigestStore({ redis: own, key, config }),
      config,
      statusSince: createStatusRecords(own, key).since,
      async memory() {
        const memory = await readMemory(own);
        return memory && judgeMemory(memory);
      },
      inventory: inventoryOf(set),
      openRequests: () => set.openRequests(),
      events: { since: (...about) => set.events.since(...about) },
      parts: () => set.parts,
      handoverParts: () => set.handoverParts,
      log,
      now,
    });
    const process: DigestProcess = {
      digests,
      answerNotices: notices.answer,
      postDue: createPostDue({
        redis: own,
        key,
        leaseMs: 600_000,
        digests,
        announce: notices.announce,
        alarm: async (_channel, id, message) => void alarms.push({ id, message }),
        ...(how.at ? { at: how.at } : {}),
        now,
        log,
      }),
      async close() {
        await delivery.close(5000);
        own.disconnect();
      },
    };
    processes.push(process);
    return process;
  }

  const posted = (channel = "status"): SeenMessage[] =>
    slack.person("vera").seesChannel(channel).messages;
  return {
    ...level,
    set,
    start,
    posted,
    alarms,
    /** Resolves when nothing waits to be posted. */
    said: () => level.empty("notice"),
    async [Symbol.asyncDispose]() {
      for (const process of processes) await process.close();
      await level[Symbol.asyncDispose]();
    },
  };
}
