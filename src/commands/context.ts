import type { Appraiser } from "../attestation/appraiser.ts";
import type { Compute } from "../fleet/compute/compute.ts";
import type { Policy } from "../config/policy-file.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Snapshots } from "../fleet/inventory/snapshots.ts";
import type { DriftRecords } from "../monitor/drift-records.ts";
import { type Message, duration, md, utc, when } from "../messages/message.ts";
import type { Asking, ServiceAsking } from "../core/permit/permit.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { Command, Target } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import type { WithServices } from "../registry/service-key.ts";
import type { Journal } from "../core/request/journal.ts";
import type { EmergencyWords } from "../registry/emergency.ts";

/** What read commands answer from, whoever asks. */
export interface Surroundings extends WithServices {
  ourTeamId: string;
  commands: readonly Command[];
  policy: Policy;
  compute: Compute;
  appraiser: Appraiser;
  inventory: Inventory;
  snapshots: Snapshots;
  /** Which VMs fail attestation. */
  drift: Pick<DriftRecords, "failing" | "failure">;
  /** The audit trail, its anchors, and its signing key. */
  trail: { redis: RedisClient; key: Keys; dataDir: string };
  /** Of changes that skip approvals; without it none can. */
  emergency: EmergencyWords | undefined;
  /** The name of a person or group, only for display. */
  nameOf(id: string): string | undefined;
  /** Looks up people by their user IDs, so that `nameOf` knows them. */
  learnNames(ids: readonly string[]): Promise<void>;
  /** Posts to the audit channel once per ID, where the policy names one. */
  tell(where: "audit", id: string, message: Message): Promise<void>;
  /** To the audit channel, and to each channel where something is open or was requested within the last hour. */
  tellBusy(id: string, message: Message): Promise<void>;
  now(): number;
}

/**
 * Whether an answer stays where others read it later: shared, or in a direct message. There it names times. An age is true only
 * for whoever reads it at once.
 */
export const isKept = ({ isShared, channelId }: Pick<ReadContext, "isShared" | "channelId">) =>
  isShared || channelId.startsWith("D");

/** `5 min ago`, or where the answer is kept the time. */
export const agoOrAt = (at: number, reading: Pick<ReadContext, "isShared" | "channelId" | "now">) =>
  isKept(reading)
    ? when(at, "{date_short_pretty} {time}", utc(at))
    : md`${duration(reading.now() - at)} ago`;

/** What a read command answers from. */
export interface ReadContext extends Surroundings {
  /** The right by which names are looked up. */
  asking: Asking | ServiceAsking;
  person: Person;
  /** Empty where there is no channel. */
  channelId: string;
  /** For the whole channel: what stands in it must work for everybody. */
  isShared: boolean;
  /** Whether a command may name several VMs. */
  takesSeveral: boolean;
  /** The approved request that this answers. */
  approved?: string;
  journal: Journal;
  /** Resolves words to exactly one target, or throws UserError or PickOne. */
  resolve(kind: "vm" | "project", words: string): Promise<Target>;
  /** On these targets, or on some when none is named. */
  mayRun(command: Command, targets?: readonly Target[]): boolean;
  /** The address of a message in Slack, where Slack says it. */
  linkTo(message: { channelId: string; ts: string } | undefined): Promise<string | undefined>;
  status(): Promise<readonly StatusLine[]>;
  /** Posts in a channel, or returns why it can't. */
  post(channelId: string, message: Message): Promise<string | undefined>;
}

/** Records in the audit trail what a person asks for in a channel, before it is done. */
export const noteInChannel = (
  { journal, person }: Pick<ReadContext, "journal" | "person">,
  what: string,
  channel: string,
  words: string,
) => journal.note({ what, who: person.id, team: person.teamId, channel, words });

/** The VM, or else the project, that has this name or ID; undefined where none is known. Throws PickOne for several VMs. */
export async function targetMeant(
  words: string,
  { inventory, resolve }: Pick<ReadContext, "inventory" | "resolve">,
): Promise<Target | undefined> {
  const isKnown = (found: object) => !("unknown" in found);
  if (isKnown(await inventory.findVm(words, { onlyKnown: true }))) return resolve("vm", words);
  const project = await inventory.findProject(words, { onlyKnown: true });
  return isKnown(project) ? resolve("project", words) : undefined;
}

export interface StatusLine {
  name: string;
  ok: boolean;
  detail: string;
  /** What to configure, for administrators. */
  advice?: string | undefined;
  /** When it began (ms), of what goes on. */
  since?: number | undefined;
}
