import * as z from "zod";
import type { Policy } from "../../config/policy-file.ts";
import { callerName } from "../../api/callers.ts";
import { scopeOfView } from "../../core/permit/access.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import { mayPropose } from "../../core/permit/service-rights.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { type RecordMove, createRecords } from "../../redis/record.ts";
import { type Fields, type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import { shownIn } from "../../redis/shown.ts";
import { plain } from "../../messages/markdown.ts";
import { type Command, type Labels, type Target } from "../../registry/define.ts";
import { storedPerson, storedTarget } from "../../registry/stored-target.ts";
import type { Input, Person, PersonIdentity } from "../../registry/invocation.ts";
import { defineService } from "../../registry/service-key.ts";
import type { Journal } from "../../core/request/journal.ts";
import { keepFinalMs } from "../../core/request/record.ts";
import { type ClosedChannels, closedField, closedIn } from "../../core/deliver/open-place.ts";

/**
 * Who proposed: a service of gatehouse.yml, the person for whom an agent asks and who alone may run
 * it, or a person who asks others, because they lack the right themselves.
 */
export type Proposer = { service: string } | { person: PersonIdentity } | Asker;

/** A person who asks others, and never runs or approves what they asked for. */
export interface Asker {
  asker: PersonIdentity;
  /** IDs of the people and groups who may run it. */
  allowed: readonly string[];
  /** The channel in which it was asked; empty where there was none. */
  askedIn: string;
}

/** The place of a service in gatehouse.yml, or the ID of a person. */
export const proposerName = (proposer: Proposer): string =>
  callerName("asker" in proposer ? { person: proposer.asker } : proposer);

/** The part of a proposal that never changes. */
export interface ProposalRecord {
  id: string;
  by: Proposer;
  /** The words of the proposed command. */
  words: string;
  reason: string;
  command: string;
  /** Arguments, with the target and the snapshot by their IDs. */
  input: Input;
  target: Target;
  labels: Labels;
  /** Warnings about what it would lose or interrupt, in Slack's markup. */
  risk: readonly string[];
  channelId: string;
  expiresAt: number;
}

/**
 * The life of a proposal. Each move is one compare-and-set in Redis, which also notes what Slack
 * must be told.
 *
 *     open ──► running    a person runs it: one request is made of it, however often it is pressed
 *       ├────► dismissed  by a person, who gives a reason
 *       └────► expired    nobody did either in time; also from `running`, if its request wasn't
 *                         made. A request that was on its way then leads back to `running`.
 */
const proposalStates = ["open", "running", "dismissed", "expired"] as const;

export interface StoredProposal {
  record: ProposalRecord;
  state: (typeof proposalStates)[number];
  revision: number;
  createdAt: number;
  /** When it was last taken; before that, when it was proposed (Redis, ms). */
  takenAt: number;
  /** ID of the request made of it, once that request is known to be stored. */
  request?: string;
  dismissal?: { id: string; name: string; reason: string };
  delivered: ReturnType<typeof shownIn>;
  /** Address of its card in Slack, once that was asked. */
  cardLink?: string;
  closed: ClosedChannels;
}

export const proposalState = defineRecord({
  name: "state of a proposal",
  schema: z.enum(proposalStates),
});

export const proposalRecord = defineRecord({
  name: "proposal",
  schema: objectOf<ProposalRecord>({
    id: z.string(),
    by: z.union([
      z.looseObject({ service: z.string() }),
      z.looseObject({ person: storedPerson }),
      objectOf<Asker>({
        asker: storedPerson,
        allowed: z.array(z.string()),
        askedIn: z.string(),
      }),
    ]),
    words: z.string(),
    reason: z.string(),
    command: z.string(),
    input: z.record(z.string(), z.unknown()),
    target: storedTarget,
    labels: z.record(z.string(), z.string()),
    risk: z.array(z.string()),
    channelId: z.string(),
    expiresAt: z.number(),
  }),
});

export const dismissalRecord = defineRecord({
  name: "dismissal of a proposal",
  schema: objectOf<NonNullable<StoredProposal["dismissal"]>>({
    id: z.string(),
    name: z.string(),
    reason: z.string(),
  }),
});

/**
 * Finds the request made of a proposal, if any. A process that took the proposal and was held up
 * for long may have made its request after the proposal expired.
 */
export async function requestOf(
  { record, state, request }: StoredProposal,
  store: Pick<Journal, "get" | "madeBy">,
) {
  if (request !== undefined) return store.get(request);
  const mayHaveOne = state === "running" || state === "expired";
  return mayHaveOne ? store.madeBy({ kind: "proposal", proposal: record.id }) : undefined;
}

/** The process that took the proposal last has made its request by then, or died (ms). */
const takenForMs = 60_000;

/** Whether a proposal without a request has expired (`now` in ms by Redis). */
export function hasExpired({ record, state, takenAt }: StoredProposal, now: number): boolean {
  if (state !== "open" && state !== "running") return state === "expired";
  return now >= record.expiresAt && (state === "open" || now >= takenAt + takenForMs);
}

/** Why this person can no longer run or dismiss the proposal; undefined when they can. */
export function decidedRefusal(
  { request, dismissal, ...proposal }: StoredProposal,
  { personId, now }: { personId: string; now: number },
): string | undefined {
  const { by: proposer } = proposal.record;
  if (request !== undefined) return "Someone already ran this.";
  if (dismissal) return `${dismissal.name} dismissed this: “${dismissal.reason}”`;
  if (hasExpired(proposal, now)) return "This proposal has expired. Nothing was done.";
  return "person" in proposer && proposer.person.id !== personId
    ? "This was proposed in someone else's name."
    : undefined;
}

/**
 * Why this person can't run the proposal now; undefined when they can. A service that may no longer
 * propose it is a reason too; such a proposal can still be dismissed.
 */
export function proposalRefusal(
  proposal: StoredProposal,
  command: Command,
  { personId, policy, now }: { personId: string; policy: Pick<Policy, "services">; now: number },
): string | undefined {
  const decided = decidedRefusal(proposal, { personId, now });
  const { by: proposer, target, input } = proposal.record;
  if (decided !== undefined || "person" in proposer) return decided;
  if ("asker" in proposer) return proposer.asker.id === personId ? askedYourself : undefined;
  const rule = Object.entries(policy.services).find(([name]) => name === proposer.service)?.[1];
  const { id, name = "" } = ownerOf(target);
  // A project that doesn't exist yet has no ID and is in no view.
  const scope = rule && id !== "" ? scopeOfView(rule.view) : undefined;
  const isSeen = scope?.sees({ id, name }) ?? true;
  if (rule && isSeen && mayPropose(rule, command, target, input)) return undefined;
  return `gatehouse.yml no longer lets ${proposer.service} propose this. Nothing was done.`;
}

export const askedYourself = "You asked for this: someone else must run it.";

/** Posting a card takes less (ms). */
const untoldMs = 30_000;

export type Proposals = ReturnType<typeof createProposals>;

export const proposalsOf = defineService<Proposals>("proposals");

/**
 * Stores changes that programs propose. A move resolves with false, and writes nothing, when the
 * proposal changed meanwhile.
 */
export function createProposals(
  redis: RedisClient,
  key: Keys,
  /** Failpoint for crash tests. */
  at?: (point: "proposal-taken", id: string) => Promise<void>,
) {
  const outbox = createOutbox(redis, key, "proposal", (id) => key("proposal", id));
  const records = createRecords(redis, key, { open: key("proposals", "open"), outbox });
  const get = async (id: string) => parseProposal(id, await outbox.get(id));

  async function move(
    { record, revision }: Pick<StoredProposal, "record" | "revision">,
    state: StoredProposal["state"],
    { audit, fields = {}, final = true }: Partial<Pick<RecordMove, "audit" | "fields" | "final">>,
  ): Promise<boolean> {
    const of = { id: record.id, revision, state, final, keptMs: keepFinalMs, fields };
    const noted = audit && { ...auditOf(record), move: state, ...audit };
    return (await records.move({ ...of, audit: noted })) !== undefined;
  }

  return {
    outbox,
    get,
    now: () => redisNow(redis),
    refresh: records.refresh,

    /** Has the card of a proposal drawn again, because its request was made or has ended. */
    async redraw(id: string): Promise<void> {
      if (await get(id)) await records.touch(id);
    },

    /** Open proposals that no channel shows, though a card should have been posted by now. */
    async untold(afterMs = untoldMs): Promise<StoredProposal[]> {
      const [ids, now] = [await records.openIds(), await redisNow(redis)];
      const open = await Promise.all(ids.map(get));
      return open.flatMap((proposal) => {
        const isShown = proposal?.state !== "open" || proposal.delivered.card !== undefined;
        return isShown || now - proposal.createdAt < afterMs ? [] : [proposal];
      });
    },

    /** Keeps the address of the card, which never changes, so that Slack is asked once. */
    async keepCardLink({ record, delivered }: StoredProposal, link: string): Promise<void> {
      await outbox.remember(record.id, { [linkField(delivered.card)]: link });
    },

    /** Notes that the channel took no card. It is tried again later. */
    async close(id: string, channelId: string): Promise<void> {
      await outbox.remember(id, closedField(channelId, await redisNow(redis)));
    },

    /** Stores a new proposal. False when its ID is taken. */
    propose: (record: ProposalRecord): Promise<boolean> =>
      move({ record, revision: 0 }, "open", {
        audit: { why: record.reason },
        fields: { record: proposalRecord.write(record) },
        final: false,
      }),

    /** Takes the proposal, right before its request is made: from here on nobody can dismiss it. */
    async take(proposal: StoredProposal): Promise<boolean> {
      const fields = { takenAt: String(await redisNow(redis)) };
      const isTaken = await move(proposal, "running", { fields, final: false });
      if (isTaken) await at?.("proposal-taken", proposal.record.id);
      return isTaken;
    },

    /** Notes that its request is stored. */
    settle: (proposal: StoredProposal, request: string) =>
      move(proposal, "running", { fields: { request } }),

    dismiss: (proposal: StoredProposal, { id, teamId, name }: Person, reason: string) =>
      move(proposal, "dismissed", {
        audit: { what: "dismissal", who: id, team: teamId, why: reason },
        fields: { dismissal: dismissalRecord.write({ id, name, reason }) },
      }),

    expire: (proposal: StoredProposal) => move(proposal, "expired", { audit: {} }),
  };
}

/** Who proposed it to others, and why, as its request keeps it. Undefined in somebody's own name. */
export function askedOthers({ by: proposer, reason }: Pick<ProposalRecord, "by" | "reason">) {
  if ("person" in proposer) return undefined;
  return {
    by: plain("asker" in proposer ? proposer.asker.name : proposer.service, 100),
    why: plain(reason, 500),
  };
}

/** The entry for the audit trail, which names people by their IDs. */
function auditOf({
  id,
  by: proposer,
  command,
  target: { kind, id: targetId, name },
}: ProposalRecord) {
  const person =
    "asker" in proposer ? proposer.asker : "person" in proposer ? proposer.person : undefined;
  const who = { who: proposerName(proposer), ...(person ? { team: person.teamId } : {}) };
  return { what: "proposal", proposal: id, ...who, command, target: { kind, id: targetId, name } };
}

/** A card that was posted again has another address. */
const linkField = (card: StoredProposal["delivered"]["card"]) => `link:${card?.ts ?? ""}`;

/** Parses a stored proposal. Undefined when it is gone or can't be read: then nobody can run it. */
export function parseProposal(id: string, fields: Fields): StoredProposal | undefined {
  const { request } = fields;
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = proposalRecord.parse(fields["record"], id);
  const state = proposalState.check(fields["state"], id);
  const dismissal = fields["dismissal"]
    ? dismissalRecord.parse(fields["dismissal"], id)
    : undefined;
  if (!record || !state || (state === "dismissed" && !dismissal)) return undefined;
  const delivered = shownIn(fields);
  const cardLink = fields[linkField(delivered.card)];
  return {
    record,
    state,
    revision: Number(fields["revision"]),
    createdAt: Number(fields["createdAt"]),
    takenAt: Number(fields["takenAt"] ?? fields["createdAt"]),
    ...(request ? { request } : {}),
    ...(dismissal ? { dismissal } : {}),
    delivered,
    ...(cardLink ? { cardLink } : {}),
    closed: closedIn(fields),
  };
}
