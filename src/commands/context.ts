import type { Appraiser } from "../attestation/appraiser.ts";
import type { Compute } from "../fleet/compute/compute.ts";
import type { Policy } from "../config/policy-file.ts";
import type { GatehouseFact } from "../core/facts/gatehouse-fact.ts";
import type { FactsAbout } from "../core/facts/facts-about.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Snapshots } from "../fleet/inventory/snapshots.ts";
import type { DriftRecords } from "../monitor/drift-records.ts";
import { type Message } from "../messages/blocks.ts";
import { type ButtonSpec } from "../messages/buttons.ts";
import { type Markdown, duration, md, dayAndTime } from "../messages/markdown.ts";
import type { ChannelFound } from "../slack/find-channel.ts";
import type { Asking, LackedRight, Permit, ServiceAsking } from "../core/permit/permit.ts";
import type { SeenTarget } from "../core/permit/sight.ts";
import type { RedisPlace } from "../redis/redis.ts";
import type { Command, Target } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import type { WithServices } from "../registry/service-key.ts";
import type { Journal } from "../core/request/journal.ts";

/** How people and groups are called, only for display. */
export interface PeopleNames {
  /** The name of a person or group, once it is known. */
  nameOf(id: string): string | undefined;
  /** Looks up people by their user IDs, so that `nameOf` knows them. */
  learnNames(ids: readonly string[]): Promise<void>;
}

/** Finds the targets that a person means by typed words. */
export interface TargetWords {
  /** Resolves words to exactly one target, or throws UserError or PickOne. */
  resolve(kind: "vm" | "project", words: string): Promise<Target>;
}

/** The audit trail, with the folder of its anchors and its signing key. */
export interface TrailPlace extends RedisPlace {
  dataDir: string;
}

/** The part of a read command's context that doesn't depend on who asks. */
export interface Surroundings extends WithServices, PeopleNames {
  ourTeamId: string;
  commands: readonly Command[];
  policy: Policy;
  compute: Compute;
  appraiser: Appraiser;
  inventory: Inventory;
  snapshots: Snapshots;
  /** Returns the facts about targets, as far as the reader may know them. */
  factsAbout: FactsAbout;
  /** Tells which VMs fail attestation. */
  drift: Pick<DriftRecords, "failing" | "failure" | "unverifiable" | "verifiedAt">;
  trail: TrailPlace;
  /** Posts to the audit channel once per ID, if the policy names one. */
  announceIn(where: "audit", id: string, message: Message): Promise<void>;
  now(): number;
}

/**
 * Whether an answer stays where others read it later: shared, or in a direct message. Such an
 * answer gives times, because an age is true only for someone who reads it at once.
 */
export const isKept = ({ isShared, channelId }: { isShared: boolean; channelId: string }) =>
  isShared || channelId.startsWith("D");

/** `5 min ago`, or the time when the answer is kept. */
export const agoOrAt = (at: number, reading: Pick<ReadContext, "isShared" | "channelId" | "now">) =>
  isKept(reading) ? dayAndTime(at) : md`${duration(reading.now() - at)} ago`;

/** The whole context of a read command, for one person in one place. */
export interface ReadContext extends Surroundings, TargetWords {
  /** The right by which names are looked up. */
  asking: Asking | ServiceAsking;
  person: Person;
  /**
   * The act in Slack that asks, and when it was received (ms). It may be answered twice, and late,
   * when a gateway dies. Undefined when a program asks.
   */
  interaction?: { id: string; at: number } | undefined;
  /** Empty when there is no channel. */
  channelId: string;
  /**
   * True when the whole channel sees the answer, so that what it offers must work for everybody.
   */
  isShared: boolean;
  /** Whether a command may name several VMs. */
  takesSeveral: boolean;
  /** The ID of the approved request that this answers. */
  approved?: string;
  journal: Journal;
  /** Tells what would happen to a permitted change. Undefined where no feature does. */
  rehearse?: ((permit: Permit) => Promise<Rehearsed>) | undefined;
  /** Whether the reader sees all of these targets, as they were and as they are called now. */
  sees(targets: readonly SeenTarget[]): Promise<boolean>;
  /** Whether the reader sees every VM and project. */
  seesAll(): Promise<boolean>;
  /**
   * Whether the person may run a command on these targets, or on some target when none is named.
   */
  mayRun(command: Command, targets?: readonly Target[]): boolean;
  /** The link to a message in Slack, if Slack gives one. */
  linkTo(message: { channelId: string; ts: string } | undefined): Promise<string | undefined>;
  /** Buttons beside a refusal for lack of this right, as features offer them. */
  offersAtRefusal(lacked: LackedRight): readonly ButtonSpec[];
  status(): Promise<readonly GatehouseFact[]>;
  /** The channel that a typed word names: `C02STATUS` or `#status`. */
  findChannel(word: string): Promise<ChannelFound>;
  /** Posts in a channel, or returns why it can't. */
  post(channelId: string, message: Message): Promise<string | undefined>;
}

/** Records in the audit trail what a person asks for in a channel, before it is done. */
export const noteInChannel = (
  { journal, person }: { journal: Journal; person: Person },
  kind: string,
  channel: string,
  words: string,
) => journal.note({ what: kind, who: person.id, team: person.teamId, channel, words });

/**
 * The VM, or else the project, with this name or ID. Undefined when none is known. Throws PickOne
 * for several VMs.
 */
export async function targetMeant(
  words: string,
  { inventory, resolve }: { inventory: Inventory } & TargetWords,
): Promise<Target | undefined> {
  const isKnown = (match: object) => !("unknown" in match);
  if (isKnown(await inventory.findVm(words, { onlyKnown: true }))) return resolve("vm", words);
  const project = await inventory.findProject(words, { onlyKnown: true });
  return isKnown(project) ? resolve("project", words) : undefined;
}

/** What would happen to a change, as far as it is known. */
export interface Rehearsed {
  /** The change in plain words: `Restore db-1 (payments) from nightly`. */
  deed: string;
  /** Who must approve it, and who could now, or that nobody must. Undefined when it isn't known. */
  approval: Markdown | undefined;
  /** Says that changes are frozen. Undefined when they aren't. */
  frozen: Markdown | undefined;
  /** What would stop it, how long it takes, what is lost by then, and what isn't known. */
  lines: readonly Markdown[];
}
