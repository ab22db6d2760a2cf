import { tmpdir } from "node:os";
import path from "node:path";
import {
  type SandboxCompute,
  startSandboxCompute,
} from "../../sandbox/compute/start-sandbox-compute.ts";
import type { ReadContext } from "../../src/commands/context.ts";
import { help } from "../../src/commands/gatehouse/help.ts";
import { createCompute } from "../../src/fleet/compute/create-compute.ts";
import { createFactsAbout } from "../../src/core/facts/facts-about.ts";
import { createStatusRecords } from "../../src/monitor/status-records.ts";
import { createDriftRecords } from "../../src/monitor/drift-records.ts";
import { type Feature, type Layers, commandsWith } from "../../src/features/define-feature.ts";
import { features as allFeatures } from "../../src/features/index.ts";
import { createInventory } from "../../src/fleet/inventory/create-inventory.ts";
import type { Inventory } from "../../src/fleet/inventory/inventory.ts";
import { type Snapshots, createSnapshots } from "../../src/fleet/inventory/snapshots.ts";
import { silentLog } from "../../src/log/log.ts";
import type { Message } from "../../src/messages/blocks.ts";
import { startFeatures } from "../../src/operate/start-features.ts";
import { type Target, requestable } from "../../src/registry/define.ts";
import { emergencyWordsOf } from "../../src/registry/emergency.ts";
import { parseCommand } from "../../src/registry/parse.ts";
import { type Journal, createJournal } from "../../src/core/request/journal.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { resolveTarget } from "../../src/core/submit/resolve-targets.ts";
import { called } from "../core/asking.ts";
import { ourTeamId, person, usual } from "../core/permit/sample.ts";
import { sandboxAppraiser } from "../support/appraiser.ts";
import { askingFor } from "../support/permits.ts";
import { emergency } from "../support/commands.ts";
import { testRedis } from "../support/with-redis.ts";

/** The parts of the world that commands which only read look at: the service, its inventory, the snapshots we know. */
export interface Reading extends AsyncDisposable {
  service: SandboxCompute;
  inventory: Inventory;
  snapshots: Snapshots;
  journal: Journal;
  /** Everything that a command reads from. */
  context: ReadContext;
  /** What Gatehouse said in its channels meanwhile. */
  told: string[];
  /** What the person typed, answered. */
  reads(words: string): Promise<Message>;
}

/** A request that only lists look at. */
export function listed(
  some: { id?: string; command?: string; requesterId?: string; state?: string } & {
    target: Target;
    createdAt: number;
  },
): StoredRequest {
  const { id = "r-7fk3m9q2xw", command = "vm restart", requesterId = "U0OLA" } = some;
  const { target, createdAt, state = "accepted" } = some;
  const requester = { id: requesterId, teamId: ourTeamId, name: requesterId };
  const record = { id, command, target, createdAt, requester, input: {} };
  const rest = { votes: [], delivered: { marks: {} }, final: state === "done" };
  return { record, state, stage: { ...called(), state }, ...rest } as unknown as StoredRequest;
}

/** The journal's lists, as if it held these. */
function holding(requests: readonly StoredRequest[]): Pick<Journal, "recentIds" | "getMany"> {
  return {
    recentIds: async ({ requesterId, targetId }, most) =>
      requests
        .filter(({ record }) => requesterId === undefined || record.requester.id === requesterId)
        .filter(({ record }) => targetId === undefined || record.target.id === targetId)
        .map(({ record }) => record.id)
        .slice(0, most),
    getMany: async (ids) =>
      ids.flatMap((id) => requests.find(({ record }) => record.id === id) ?? []),
  };
}

const withCommands = allFeatures.filter((feature) => feature.commands);

export async function startReading(
  over: Partial<ReadContext> & {
    world?: "demo" | "empty";
    requests?: readonly StoredRequest[];
    /** Those whose commands are there, too; by default all. */
    features?: readonly Feature[];
  } = {},
): Promise<Reading> {
  const { world = "demo", requests, features = withCommands, ...rest } = over;
  const commands = commandsWith(features);
  const service = await startSandboxCompute({ world });
  const compute = createCompute({
    baseUrl: service.url,
    apiKey: service.apiKey,
    timeoutMs: 60_000,
  });
  const { redis, key, ...at } = await testRedis();
  const inventory = createInventory({
    redis,
    key,
    compute,
    log: silentLog(),
    refreshMs: 4_000,
    againMs: 50,
  });
  const snapshots = createSnapshots(redis, key);
  await inventory.refresh();
  const journal = { ...createJournal(redis, key), ...(requests ? holding(requests) : {}) };
  const policy = usual;
  const told: string[] = [];

  const log = silentLog();
  const factsAbout = createFactsAbout({
    appraiser: sandboxAppraiser({ compute, policy, redis, key }),
    statuses: createStatusRecords(redis, key),
    commands,
    sources: () => facts,
    log,
    now: Date.now,
  });
  // What commands answer from: whatever else a feature needs isn't asked for
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- some layers are enough here
  const layers = {
    config: { policy },
    log,
    redis,
    key,
    compute,
    inventory,
    snapshots,
    commands,
    changes: requestable(commands),
    store: journal,
    factsAbout,
    projectName: async () => undefined,
    async announce({ channelId, message }: { channelId: string; message: Message }) {
      told.push(`${channelId}: ${message.text}`);
    },
    now: Date.now,
    schedulesChanged: async () => undefined,
    repeat: () => undefined,
  } as unknown as Layers;
  const { services, facts } = startFeatures(features, layers);
  const asking = askingFor(help, person("U0VERA"));
  const context: ReadContext = {
    asking,
    person: asking.person,
    channelId: "C01OPS",
    ourTeamId,
    isShared: false,
    takesSeveral: true,
    sees: async () => true,
    seesAll: async () => true,
    commands,
    policy,
    compute,
    appraiser: sandboxAppraiser({ compute, policy, redis, key }),
    inventory,
    snapshots,
    journal,
    factsAbout,
    drift: createDriftRecords(redis, key),
    services: new Map([...services, emergencyWordsOf.providedBy(emergency)]),
    trail: { redis, key, dataDir: path.join(tmpdir(), key("nothing-here")) },
    resolve: (kind, words) => resolveTarget(asking, kind, words, inventory),
    mayRun: () => true,
    nameOf: () => undefined,
    learnNames: async () => undefined,
    linkTo: async () => undefined,
    findChannel: async (id) => (/^C\d/.test(id) ? { kind: "found", id } : { kind: "none" }),
    offersAtRefusal: () => [],
    status: async () => [],
    post: async (channelId, { text }) => void told.push(`${channelId}: ${text}`),
    announceIn: async (where, _id, { text }) => void told.push(`${where}: ${text}`),
    now: Date.now,
    ...rest,
  };

  return {
    service,
    inventory,
    snapshots,
    journal,
    context,
    told,
    async reads(words) {
      const parsed = parseCommand(words, commands);
      if ("refusal" in parsed) throw new Error(parsed.refusal.text);
      const { command, args } = parsed;
      if (command.kind !== "read") throw new Error(`${command.name} changes something`);
      const answer = await command.answer(args as never, context as never);
      return "message" in answer ? answer.message : answer;
    },
    async [Symbol.asyncDispose]() {
      await inventory.close();
      await compute.close();
      await at[Symbol.asyncDispose]();
      await service.close();
    },
  };
}
