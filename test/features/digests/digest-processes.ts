import { inject } from "vitest";
import { createDigests, type Digests } from "../../../src/features/digests/create-digests.ts";
import type { RequestSource } from "../../../src/features/digests/request-facts.ts";
import type {
  Inventory,
  InventoryState,
  KnownVm,
  Scope,
} from "../../../src/fleet/inventory/inventory.ts";
import { startMessaging } from "../../support/start-delivery.ts";
import { silentLog } from "../../../src/log/log.ts";
import type { Message } from "../../../src/messages/message.ts";
import { emptyPolicy, type Policy } from "../../../src/config/policy-file.ts";
import { connectRedis } from "../../../src/redis/redis.ts";
import type { SeenMessage } from "../../../sandbox/slack/seen.ts";
import { createNotices } from "../../../src/core/deliver/deliver.ts";
import { createPostDue } from "../../../src/features/digests/post-due.ts";
import type { Journal } from "../../../src/core/request/journal.ts";
import { createReviews } from "../../../src/core/request/reviews.ts";
import type { DigestRule } from "../../../src/features/digests/digests-section.ts";

export const noRequests: RequestSource = {
  open: async () => [],
  endedSince: async () => [],
  reviews: async () => [],
  consoles: async () => [],
};

/** What all processes of a test see, changed as the test goes on. */
export interface Scene {
  now: number;
  vms: readonly KnownVm[];
  state: Partial<InventoryState>;
  rules: DigestRule[];
  requests: RequestSource;
  policy: Policy;
}

/** A policy with these digests in place of its own. */
const withDigests = (policy: Policy, digests: readonly DigestRule[]): Policy => {
  const some = { ...policy, digests };
  return some;
};

/** What an inventory of these VMs says, of all or within a scope. */
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
    // Only what digests ask for
    seenIn: (within) => inventoryOf(set, within) as Inventory,
  };
}

type DigestInventory = Parameters<typeof createDigests>[0]["inventory"];

export interface DigestProcess {
  digests: Digests;
  store: Pick<Journal, "noteReviewAsked" | "reviewAskedSince">;
  answerNotices: ReturnType<typeof createNotices>["answer"];
  postDue(): Promise<void>;
  close(): Promise<void>;
}

/** Processes that make digests, each with its own connection, at one Redis and one Slack, under one clock that the test sets. */
export async function startScene(scene: Partial<Scene> = {}) {
  const level = await startMessaging();
  const { slack, key } = level;
  const log = silentLog();
  const set: Scene = {
    now: Date.now(),
    vms: [],
    state: {},
    rules: [],
    requests: noRequests,
    policy: emptyPolicy(),
    ...scene,
  };
  const processes: DigestProcess[] = [];
  const alarms: { id: string; message: Message }[] = [];

  async function start(
    how: { at?: (point: "digest", id: string) => Promise<void>; leaseMs?: number } = {},
  ): Promise<DigestProcess> {
    const own = await connectRedis(inject("redisUrl"), "commands", log);
    const notices = createNotices({ redis: own, key });
    const delivery = level.deliver([notices.source], undefined, own);
    const now = () => set.now;
    const { noteReviewAsked, reviewAskedSince } = createReviews(own, key);
    const store = { noteReviewAsked, reviewAskedSince };
    const digests = createDigests({
      redis: own,
      key,
      config: { policy: withDigests(set.policy, set.rules) },
      inventory: inventoryOf(set),
      requests: set.requests,
      log,
      now,
    });
    const process: DigestProcess = {
      digests,
      store,
      answerNotices: notices.answer,
      postDue: createPostDue({
        redis: own,
        key,
        leaseMs: how.leaseMs ?? 5000,
        digests,
        store,
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
