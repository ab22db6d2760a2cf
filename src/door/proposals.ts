import type { Policy, ServiceRule } from "../config/policy-file.ts";
import { matchesAny, matchingTarget } from "../policy/refusal.ts";
import { createOutbox, shownIn } from "../redis/due-list.ts";
import { createRecords } from "../redis/record.ts";
import { type Fields, type Keys, type RedisClient, redisNow } from "../redis/redis.ts";
import { type Command, dottedName, type Labels, type Target } from "../registry/define.ts";
import type { Input } from "../registry/invocation.ts";
import { keepFinalMs } from "../requests/journal/record.ts";

/** Who proposes: a service of gatehouse.yml, or a person whose agent asks. */
export type Proposer =
  | { service: string }
  | { person: { id: string; teamId: string; name: string } };

/** What never changes of a proposal. */
export interface ProposalRecord {
  id: string;
  by: Proposer;
  /** As it was worded: the same key with other words is refused. */
  words: string;
  reason: string;
  command: string;
  /** With the target and the snapshot by their IDs. */
  input: Input;
  target: Target;
  labels: Labels;
  /** What it would lose or interrupt, as Slack shows it. */
  risk: readonly string[];
  /** A channel, or the person who proposes. */
  channelId: string;
  expiresAt: number;
}

interface Who {
  id: string;
  name: string;
}

/**
 * The life of a proposal. Each move is one compare-and-set in Redis, which also notes what Slack must be told.
 *
 *     open ──► running    somebody ran it: one request is made of it, and whoever presses again makes no second one
 *       ├────► dismissed  by somebody, who says why
 *       └────► expired    nobody did either in time; `running` too, where the request was never made
 */
export type ProposalState = "open" | "running" | "dismissed" | "expired";

export interface StoredProposal {
  record: ProposalRecord;
  state: ProposalState;
  revision: number;
  createdAt: number;
  changedAt: number;
  /** The request made of it, once its card links to it. */
  request: string | undefined;
  dismissal: (Who & { reason: string }) | undefined;
  delivered: ReturnType<typeof shownIn> & { shown: string };
}

/** How an interaction that runs a proposal is named: it makes one request. */
export const onceOfProposal = (id: string) => `proposal:${id}`;
export const proposalIn = (interactionId: string) =>
  /^proposal:(p-\w{1,40})$/.exec(interactionId)?.[1];

/** The place of a service in gatehouse.yml, or the ID of a person. */
export const proposerName = (by: Proposer) =>
  "service" in by ? `services.${by.service}` : by.person.id;

/** Whether a service may propose a command, on this target or on some. */
export const mayPropose = ({ propose }: ServiceRule, command: Command, target?: Target): boolean =>
  propose.some(
    ({ operations, targets }) =>
      matchesAny(operations, dottedName(command)) &&
      (!target || !targets || matchingTarget(targets, target) !== undefined),
  );

/** Why a proposal that stands can't be run or dismissed by this person now. */
export function proposalRefusal(
  proposal: StoredProposal,
  command: Command,
  by: { personId: string; policy: Pick<Policy, "services">; now: number },
): string | undefined {
  const { record, dismissal } = proposal;
  const { by: proposer, target } = record;
  if (dismissal) return `${dismissal.name} dismissed this: “${dismissal.reason}”.`;
  if (hasExpired(proposal, by.now)) return "This proposal has expired.";
  if ("person" in proposer)
    return proposer.person.id === by.personId
      ? undefined
      : "Only the person in whose name it was proposed can decide this.";
  const rule = Object.hasOwn(by.policy.services, proposer.service)
    ? by.policy.services[proposer.service]
    : undefined;
  if (rule && mayPropose(rule, command, target)) return undefined;
  return `gatehouse.yml no longer lets ${proposer.service} propose this.`;
}

/** Whoever was about to make a request of it has done so by then, or died (ms). */
const takenForMs = 60_000;

/** Whether its time is over by Redis time, without a request. */
export function hasExpired({ record, state, changedAt, request }: StoredProposal, now: number) {
  if (request !== undefined || (state !== "open" && state !== "running"))
    return state === "expired";
  return now >= record.expiresAt && (state === "open" || now >= changedAt + takenForMs);
}

export type Proposals = ReturnType<typeof createProposals>;

/** Changes that programs propose, and people run. `at` is a failpoint. */
export function createProposals(
  redis: RedisClient,
  key: Keys,
  at?: (point: "proposal-taken", id: string) => Promise<void>,
) {
  const outbox = createOutbox(redis, key("proposals", "outbox"), (id) => key("proposal", id));
  const records = createRecords(redis, key, key("proposals", "open"), outbox);

  const get = async (id: string) => parseProposal(await outbox.get(id));

  /** False, with nothing written, when it changed since it was read. */
  async function move(
    { record, revision }: Pick<StoredProposal, "record" | "revision">,
    state: ProposalState,
    {
      final,
      audit,
      fields = {},
    }: { final: boolean; audit?: object; fields?: Record<string, string> },
  ): Promise<boolean> {
    const how = { id: record.id, revision, state, final, keptMs: keepFinalMs, fields };
    return (await records.move({ ...how, ...(audit ? { audit } : {}) })) !== undefined;
  }

  return {
    outbox,
    now: () => redisNow(redis),
    get,

    /** False where one of this ID is on record. */
    propose: (record: ProposalRecord): Promise<boolean> =>
      move({ record, revision: 0 }, "open", {
        final: false,
        audit: { ...auditOf(record), move: "open", why: record.reason },
        fields: { record: JSON.stringify(record) },
      }),

    /** Right before its request is made: from here on nobody dismisses it. */
    async take(proposal: StoredProposal): Promise<boolean> {
      const isTaken = await move(proposal, "running", { final: false });
      if (isTaken) await at?.("proposal-taken", proposal.record.id);
      return isTaken;
    },

    /** Its request stands in the journal. */
    settle: (proposal: StoredProposal, request: string): Promise<boolean> =>
      move(proposal, "running", { final: true, fields: { request } }),

    dismiss(proposal: StoredProposal, by: Who & { teamId: string }, reason: string) {
      const { id, teamId, name } = by;
      const audit = { ...auditOf(proposal.record), what: "dismissal", who: id, team: teamId };
      const fields = { dismissal: JSON.stringify({ id, name, reason }) };
      return move(proposal, "dismissed", { final: true, audit: { ...audit, why: reason }, fields });
    },

    expire: (proposal: StoredProposal): Promise<boolean> =>
      move(proposal, "expired", {
        final: true,
        audit: { ...auditOf(proposal.record), move: "expired" },
      }),

    /** Those of one proposer that nobody has run or dismissed, as of now. */
    async openOf(proposer: string): Promise<number> {
      const now = await redisNow(redis);
      const all = await Promise.all((await records.openIds()).map(get));
      return all.filter(
        (one) => one && proposerName(one.record.by) === proposer && !hasExpired(one, now),
      ).length;
    },
  };
}

/** IDs, not names, for people. */
function auditOf({ id, by, command, target }: ProposalRecord) {
  const { kind, id: targetId, name } = target;
  const who = { who: proposerName(by), ...("person" in by ? { team: by.person.teamId } : {}) };
  return { what: "proposal", proposal: id, ...who, command, target: { kind, id: targetId, name } };
}

/** Undefined for one that is gone. */
export function parseProposal(fields: Fields): StoredProposal | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  return {
    record: JSON.parse(fields["record"]) as ProposalRecord,
    state: fields["state"] as ProposalState,
    revision: Number(fields["revision"]),
    createdAt: Number(fields["createdAt"]),
    changedAt: Number(fields["changedAt"]),
    request: fields["request"] || undefined,
    dismissal: fields["dismissal"]
      ? (JSON.parse(fields["dismissal"]) as StoredProposal["dismissal"])
      : undefined,
    delivered: { ...shownIn(fields), shown: fields["shown"] ?? "" },
  };
}
