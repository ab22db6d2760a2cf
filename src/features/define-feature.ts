import type * as z from "zod";
import type { AgentTool, Behind, OpenApiPaths } from "../api/api-context.ts";
import type { Route } from "../api/server.ts";
import type { ReadContext } from "../commands/context.ts";
import { commands } from "../commands/index.ts";
import type { Compute } from "../fleet/compute/compute.ts";
import type { Config } from "../config/config.ts";
import type { Policy } from "../config/policy-file.ts";
import type { PolicySection } from "../config/policy-section.ts";
import type { DigestPart, HandoverPart } from "./digest-part.ts";
import type { HomePart } from "./home-part.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import type { Finding } from "../messages/finding.ts";
import type { DependencyProbe } from "../monitor/dependency-probe.ts";
import type { Follow } from "../monitor/news.ts";
import type { PendingWork } from "../queue/pending-work.ts";
import type { Schedule } from "../queue/schedules.ts";
import type { Pending } from "../redis/pending.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { ChangeCommand, Command } from "../registry/define.ts";
import type { ServiceKey } from "../registry/service-key.ts";
import type { createAttestationNote } from "../core/deliver/after-result.ts";
import type { Journal } from "../core/request/journal.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import type { WorkerContext } from "../core/perform/worker-context.ts";
import type { MadeRequest } from "../talk/contributions.ts";
import type {
  Contributions,
  HomeTab,
  FormHandler,
  Picker,
  PressHandler,
  SeveralHandler,
} from "../talk/gateway-context.ts";
import type { Announce, Source } from "../core/deliver/deliver.ts";
import type { Web } from "../slack/web.ts";
import type { Snapshots } from "../fleet/inventory/snapshots.ts";
import type { Appraiser } from "../attestation/appraiser.ts";
import type { Message } from "../messages/message.ts";
import type { EmergencyWords } from "../registry/emergency.ts";
import type { NamedVm } from "../attestation/pins.ts";
import type { Appraisal } from "../attestation/appraise.ts";

/**
 * A capability of Gatehouse in a folder of its own. This half of it is known before a process runs: for `doctor` and `policy check`.
 * `features/index.ts` is the list of all, and the only file that names one.
 */
export interface Feature {
  name: string;
  /** Its commands, which find the feature's service by a key (`defineService`). */
  commands?: readonly Command<ReadContext>[];
  /** Flags that it adds to a command, whoever brings that; undefined for none. */
  flags?(command: Command): z.ZodRawShape | undefined;
  /** Its sections of gatehouse.yml. */
  policy?: readonly PolicySection[];
  /** Judges what gatehouse.yml says of it, for `doctor` and `policy check`. */
  judgePolicy?(policy: Policy): readonly Finding[];
  /** It has a Home tab: Slack's app has one. */
  showsHome?: true;
  /** Called once in each process, before anything is received or delivered. */
  start?(layers: Layers): RunningFeature;
}

/** A feature in a process: what it contributes, closed over its own state. */
export interface RunningFeature {
  /** Services that its commands answer from. */
  services?: readonly ReturnType<ServiceKey<never>["providedBy"]>[];
  /** Handlers of its buttons: by action, or by the word before its colon for all actions that begin so. */
  presses?: Readonly<Record<string, PressHandler>>;
  /** Actions of those that one person answers for all: `answerNotices` shows the answer in every message with the button. */
  answeredForAll?: readonly string[];
  /** Handlers of its forms, by callback. */
  forms?: Readonly<Record<string, FormHandler>>;
  /** Options of its pickers, by the name that arguments call them by. */
  pickers?: Readonly<Record<string, Picker>>;
  /** Handles a command that names several VMs. One feature at most has this. */
  several?: SeveralHandler;
  /** Words for changes that skip approvals. One feature at most has this; without one, no change can skip them. */
  emergency?: EmergencyWords;
  /** Sources of the messages that it owes to Slack. Each process delivers. */
  messages?: readonly Source[];
  /** Other work on pending IDs, in each process. */
  pending?: readonly PendingWork[];
  /** Work of workers on pending IDs, in addition to the steps of requests. */
  steps?: readonly WorkerSteps[];
  /** Tasks that one worker repeats for the installation; a function where they come and go. */
  schedules?: readonly Schedule[] | (() => Promise<readonly Schedule[]>);
  /** The Home tab, which one feature at most has. */
  homeTab?: HomeTab;
  /** Its part of the Home tab. */
  home?: HomePart;
  /** Its lines of digests and handovers. */
  digest?: DigestPart;
  /** What a handover lists of it beside what runs. */
  handover?: HandoverPart;
  /** Its lines of `/gatehouse status`. */
  status?: readonly StatusPart[];
  /** Lists what has waited for a channel for longer than a message takes, for `/gatehouse status`. */
  untold?(): Promise<readonly Untold[]>;
  /**
   * A request is about to be made: what it is made of can't be taken back from then on. Throws UserError where it may no longer be made.
   */
  beforeRequest?: Contributions["beforeRequest"];
  /** A request was made, or has ended: one of its messages may have made it. Idempotent. */
  afterRequest?(request: MadeRequest): Promise<unknown>;
  /** A request has ended: keeps what outlives it, before its result is posted. At least once for each; idempotent. */
  afterResult?(request: StoredRequest, command: ChangeCommand): Promise<unknown>;
  /** The evidence of a VM was appraised, whoever asked for it. Never rejects. */
  afterAppraisal?(vm: NamedVm, appraisal: Appraisal): Promise<void>;
  /** Tells others of an ended request, once its own messages are posted. Idempotent. */
  tellElsewhere?(request: StoredRequest, command: ChangeCommand): Promise<unknown>;
  /** Something happened to VMs, or changes were made. At least once for each. */
  follow?: Follow;
  /** Changes were frozen or allowed again: what its messages offer is different now. */
  afterFreeze?(): Promise<unknown>;
  /** Routes of the API that programs call. */
  routes?(behind: Behind): readonly Route[];
  /** The part of its routes that OpenAPI describes. */
  paths?: OpenApiPaths;
  /** Tools that agents can call. */
  tools?: readonly AgentTool[];
}

/** Steps of what is pending, which any worker takes and any process wakes. */
export interface WorkerSteps {
  pending: Pending;
  /** As `PendingWork` does, with the rules of the moment. */
  handle(id: string, mark: string, by: WorkerContext): Promise<unknown>;
  /** Whatever still has steps: each sweep puts what fell off the list on it again. */
  openIds(): Promise<readonly string[]>;
}

/** A line of `/gatehouse status`. */
export interface StatusPart {
  name: string;
  /** Rejects where it can't be read. */
  find(): Promise<Finding>;
}

/** A message that no channel shows. */
export interface Untold {
  /** Who caused it, as gatehouse.yml calls them. */
  by: string;
  /** Singular and plural: `alert group`. */
  words: readonly [one: string, more: string];
}

/** The layers below features, as this process opened them: a feature asks for those that it needs. */
export interface Layers {
  config: Config;
  log: Log;
  redis: RedisClient;
  key: Keys;
  compute: Compute;
  inventory: Inventory;
  commands: readonly Command[];
  /** Those that make requests. */
  changes: readonly ChangeCommand[];
  store: Journal;
  snapshots: Snapshots;
  appraiser: Appraiser;
  web: Web;
  announce: Announce;
  /** To the audit channel, once per ID. */
  tellAudit(id: string, message: Message): Promise<void>;
  attestationNote: ReturnType<typeof createAttestationNote>;
  /** The probe that watches Slack, Redis, and the compute service for this process. */
  watch: DependencyProbe;
  /** Why Redis takes no writes now, in words. */
  redisProblem(): Promise<string | undefined>;
  /** Repeats a task in this process until it stops. */
  repeat(name: string, everyMs: number, task: () => Promise<unknown>): void;
  /** Tells the features of what happened to VMs, or was changed. */
  follow: Follow;
  /** Aborted when this process stops: a long look ends then. */
  stopping: AbortSignal;
  /** Has the worker ask anew which schedules there are. */
  schedulesChanged(): Promise<unknown>;
  /** Resolves the name of a person by their user ID. */
  personName(userId: string): Promise<string>;
  /** Resolves the name that a project has now by its ID; undefined where that isn't known. */
  projectName(id: string): Promise<string | undefined>;
  /** All features of this process, once each was started: for one that shows what others contribute. */
  running(): readonly RunningFeature[];
  /** Between two edits that only show progress (ms). */
  editMs: number;
  /** Failpoint for crash tests. */
  at: ((point: string, what: string) => Promise<void>) | undefined;
}

/** All commands, in the order of help: those of features come last among those of their first word. */
export function commandsWith(features: readonly Feature[]): readonly Command<ReadContext>[] {
  const all = [...commands, ...features.flatMap((feature) => feature.commands ?? [])];
  const rootOf = ({ name }: Pick<Command, "name">) => name.split(" ")[0] ?? "";
  return [...Map.groupBy(all, rootOf).values()]
    .flat()
    .map((command) => withFlags(command, features));
}

/** The command with the flags that features add to it. Throws where it has an argument of that name. */
function withFlags(
  command: Command<ReadContext>,
  features: readonly Feature[],
): Command<ReadContext> {
  const added = features.flatMap((feature) => Object.entries(feature.flags?.(command) ?? {}));
  if (added.length === 0) return command;
  const twice = added.find(([key]) => Object.hasOwn(command.args.shape, key));
  if (twice) throw new Error(`${command.name} has an argument ${twice[0]}`);
  return { ...command, args: command.args.safeExtend(Object.fromEntries(added)) };
}

/** Declares a feature. `needs` names the layers that `start` gets, and it gets no other. */
export function defineFeature<const Need extends keyof Layers = never>({
  needs = [],
  start,
  ...feature
}: Omit<Feature, "start"> & {
  needs?: readonly Need[];
  start?(on: Pick<Layers, Need>): RunningFeature;
}): Feature {
  if (!start) return feature;
  return {
    ...feature,
    start(layers) {
      const needed = Object.fromEntries(needs.map((name) => [name, layers[name]]));
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.fromEntries forgets the names
      return start(needed as Pick<Layers, Need>);
    },
  };
}
