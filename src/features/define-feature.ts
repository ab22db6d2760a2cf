import type { NameOf } from "../core/permit/access.ts";
import type * as z from "zod";
import type { AgentTool, Behind, OpenApiPaths } from "../api/api-context.ts";
import type { Route } from "../api/server.ts";
import type { ReadContext } from "../commands/context.ts";
import { commands } from "../commands/index.ts";
import type { Compute } from "../fleet/compute/compute.ts";
import type { Config } from "../config/config.ts";
import type { Policy } from "../config/policy-file.ts";
import type { PolicySection } from "../config/policy-section.ts";
import type { FactSource } from "../core/facts/fact.ts";
import type { FactsAbout } from "../core/facts/facts-about.ts";
import type { EventSource } from "../core/events/event.ts";
import type { Events } from "../core/events/read-events.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import type { Finding } from "../messages/finding.ts";
import type { DependencyProbe } from "../monitor/dependency-probe.ts";
import type { Follow, News } from "../monitor/news.ts";
import type { PendingWork } from "../queue/pending-work.ts";
import type { Schedule } from "../queue/schedules.ts";
import type { Due, Pending } from "../redis/pending.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { ChangeCommand, Command } from "../registry/define.ts";
import type { Provided, Services } from "../registry/service-key.ts";
import type { createAttestationNote } from "../core/deliver/after-result.ts";
import type { Journal } from "../core/request/journal.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import type { WorkerContext } from "../core/perform/worker-context.ts";
import type { MadeRequest } from "../talk/contributions.ts";
import type { FormHandler, Picker, PressHandler } from "../talk/gateway-context.ts";
import type { Source } from "../core/deliver/deliver.ts";
import type { Announce, OwedNotices } from "../core/deliver/notices.ts";
import type { Web } from "../slack/web.ts";
import type { Snapshots } from "../fleet/inventory/snapshots.ts";
import type { Appraiser } from "../attestation/appraiser.ts";
import type { Message } from "../messages/blocks.ts";
import type { NamedVm } from "../attestation/pins.ts";
import type { Appraisal } from "../attestation/appraise.ts";

/**
 * A capability of Gatehouse, in a folder of its own. This half is known before a process runs, so
 * `doctor` and `policy check` use it. `features/index.ts` lists all features and is the only file
 * that names one.
 */
export interface Feature {
  name: string;
  /** Commands of the feature. They find its services by a key (`defineService`). */
  commands?: readonly Command<ReadContext>[];
  /** Flags that it adds to a command, whoever brings that; undefined for none. */
  flags?(command: Command): z.ZodRawShape | undefined;
  /** Its sections of gatehouse.yml. */
  policy?: readonly PolicySection[];
  /** Judges the feature's sections of gatehouse.yml, for `doctor` and `policy check`. */
  judgePolicy?(policy: Policy): readonly Finding[];
  /** Whether the feature provides the Home tab. Slack's app has only one. */
  showsHome?: true;
  /** Starts the feature. Called once in each process, before anything is received or delivered. */
  start?(layers: Layers): RunningFeature;
}

/** What a started feature contributes to its process, with its own state in closures. */
export interface RunningFeature {
  /** Handlers of what happens in this process. */
  on?: Partial<FeatureHooks>;
  /** Source of facts about targets. What tells of a target chooses among them by severity. */
  facts?: FactSource;
  /** The events that it tells from its own audit records. */
  events?: EventSource;
  /**
   * Services under typed keys for its own commands, the core, and other features,
   * and parts of what others show.
   */
  provides?: readonly Provided[];
  /**
   * Handlers of its buttons, keyed by action, or by the word before the colon to handle all actions
   * that begin with it.
   */
  presses?: Readonly<Record<string, PressHandler | SharedPress>>;
  /** Handlers of its forms, by callback. */
  forms?: Readonly<Record<string, FormHandler>>;
  /** Loaders of options, keyed by the name that an argument's `picker` gives. */
  pickers?: Readonly<Record<string, Picker>>;
  /** Routes and tools of the feature in the API for programs. */
  api?: ApiAdditions;
  /** Sources of messages that it owes to Slack. Each process delivers them. */
  messages?: readonly Source[];
  /** Work on pending IDs beside messages. */
  work?: {
    inProcesses?: readonly PendingWork[];
    /** In addition to the steps of requests. */
    inWorkers?: readonly WorkerSteps[];
  };
  /**
   * Tasks that one worker repeats for the whole installation; a function if the tasks change over
   * time.
   */
  schedules?: readonly Schedule[] | (() => Promise<readonly Schedule[]>);
}

/**
 * Handles a button that one person answers for all: `answerNotices` shows the answer in every
 * message with the button. Its key is the whole action.
 */
export interface SharedPress {
  isAnsweredForAll: true;
  handle: PressHandler;
}

export interface ApiAdditions {
  routes?(behind: Behind): readonly Route[];
  /** OpenAPI's description of these routes. */
  paths?: OpenApiPaths;
  /** Tools that agents can call over MCP. */
  tools?: readonly AgentTool[];
}

/** Events that a process tells its features, each with its facts. There are no other hooks. */
export interface Happenings {
  /**
   * A request was made. Told again for a duplicate of it, and not at all when the process dies in
   * between; `requestEnded` follows in any case.
   */
  requestMade: [request: MadeRequest];
  /**
   * A request ended, and its result isn't posted yet. Told at least once, and again when the
   * outcome changes: a hook keeps what outlives the request, and is idempotent.
   */
  requestEnded: [request: StoredRequest, command: ChangeCommand];
  /**
   * A request ended with a change (`isToldElsewhere`), and all of its own messages are posted. Told
   * at least once.
   */
  resultPosted: [request: StoredRequest, command: ChangeCommand];
  /**
   * A channel shows a result that says that a VM fails attestation, with the failure's mark
   * (`failureMark`). Not told when the process dies right after the post. A hook never rejects.
   */
  failurePosted: [vm: { id: string }, mark: string];
  /** A VM's evidence was appraised, for any reason. A hook never rejects. */
  appraised: [vm: NamedVm, appraisal: Appraisal];
  /** VMs went to ERROR or left it, or fail attestation. Told at least once for each event. */
  troubleChanged: [news: readonly News[]];
  /**
   * Changes were frozen or allowed again, so messages now offer something else. Told at least once.
   */
  freezeChanged: [];
}

export type FeatureHooks = {
  [Name in keyof Happenings]: (...happened: Happenings[Name]) => Promise<unknown>;
};

/** Steps on pending IDs. Any worker takes them, and any process can add an ID. */
export interface WorkerSteps {
  pending: Pending;
  /** Handles one pending ID under the worker's present policy, as in `PendingWork`. */
  handle(id: string, mark: string, context: WorkerContext): Promise<Due | undefined>;
  /** IDs that still have steps. Each sweep puts IDs that were lost from the list on it again. */
  openIds(): Promise<readonly string[]>;
}

/** The layers below features, as this process opened them. A feature names those that it needs. */
export interface Layers {
  config: Config;
  log: Log;
  redis: RedisClient;
  key: Keys;
  compute: Compute;
  inventory: Inventory;
  commands: readonly Command[];
  /** The commands that make requests. */
  changes: readonly ChangeCommand[];
  store: Journal;
  snapshots: Snapshots;
  appraiser: Appraiser;
  web: Web;
  announce: Announce;
  /** Decides about notices that were announced for later. */
  owed: OwedNotices;
  /** Posts in the audit channel, once per ID. */
  tellAudit(id: string, message: Message): Promise<void>;
  attestationNote: ReturnType<typeof createAttestationNote>;
  factsAbout: FactsAbout;
  /** The probe that watches Slack, Redis, and the compute service for this process. */
  watch: DependencyProbe;
  /** Says why Redis takes no writes now; undefined when it does. */
  redisProblem(): Promise<string | undefined>;
  /** What happened, from the audit trail. */
  events: Events;
  /** The time by Redis's clock, by which everything is decided (ms). */
  now(): number;
  /** Repeats a task in this process until it stops. */
  repeat(name: string, everyMs: number, task: () => Promise<unknown>): void;
  /** Tells all features which trouble of VMs began or ended. */
  follow: Follow;
  /** Aborted when this process stops, so that long reads end. */
  stopping: AbortSignal;
  /** Makes the worker read the list of schedules again. */
  schedulesChanged(): Promise<unknown>;
  /** Reads the names of people and groups. */
  namesOf(ids: readonly string[]): Promise<NameOf>;
  /** Resolves the name of a person by their user ID. */
  personName(userId: string): Promise<string>;
  /** Services that the features of this process provide, once each was started. */
  services: Services;
  /** Resolves a project's present name by its ID; undefined when it isn't known. */
  projectName(id: string): Promise<string | undefined>;
  /** Shortest time between two edits that only show progress (ms). */
  editMs: number;
  /** Failpoint for crash tests. */
  at: ((point: string, subject: string) => Promise<void>) | undefined;
}

/**
 * All commands in the order of help. A feature's commands come after the core's commands with the
 * same first word.
 */
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

/** Declares a feature. `needs` names the layers that `start` gets; it gets no others. */
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
