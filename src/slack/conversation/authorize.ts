import { UserError } from "../../errors.ts";
import {
  placesSeen,
  isFullMember,
  scopeOfPerson,
  scopeOfView,
  seesUnder,
} from "../../policy/access.ts";
import { decide, mayMeet, needsOf } from "../../policy/approval-rule.ts";
import { accessRefusal, type Asked, ownerOf } from "../../policy/refusal.ts";
import {
  type Command,
  type ChangeCommand,
  dottedName,
  requestable,
  type Target,
} from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import { namesWithin } from "../../requests/submit/submit.ts";
import type { ModalView } from "@slack/types";
import type { Markdown } from "../../messages/message.ts";
import { frozenWords } from "../../requests/render/asking.ts";
import { redisTrouble } from "../../redis/redis.ts";
import type { Inventory, Scope } from "../../inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import type { StatusLine, Surroundings } from "../../commands/context.ts";
import type { Journal, JournalReads } from "../../requests/journal/journal.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import type { Alerts } from "../../door/alerts.ts";
import type { Proposals } from "../../door/proposals.ts";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Announce, AnswerNotices } from "../deliver/deliver.ts";
import { errorReply } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import type { Web } from "../web.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";

/** `vmNames` are those known now, unless others are meant. */
export interface AskedFor extends Omit<Asked, keyof Rules> {
  /** It ends or holds something: never refused because the policy is an old one. */
  isStop?: boolean;
  /** Prefix of the rule in the audit trail. */
  notedAs?: string;
}

/** What break-glass asks for. */
export const emergency = { breakGlass: true, notedAs: "break-glass: " } as const;

/** Refused by policy, and recorded in the audit trail. */
export class Refused extends UserError {}

/**
 * Whether this person may run this here, on these targets, for every kind of interaction; the gate checks it again right
 * before the claim. Names are resolved after the person is judged, so that a stranger learns none. Throws Refused.
 */
export async function authorize(asked: AskedFor, gateway: GatewayContext): Promise<void> {
  if (!isSafeUnderOldPolicy(asked)) refuseUnderOldPolicy(gateway);
  await authorizeRights({ ...asked, targets: [] }, gateway);
  if (asked.targets.length === 0) return;
  const vmNames = asked.vmNames ?? (await namesWithin(asked.targets, gateway));
  const { refused } = decide({ ...rules(asked, gateway), vmNames });
  if (refused) await refuse(asked, refused, gateway);
}

/** Rights over the targets alone: what `protect` says doesn't matter to what ends something. */
export async function authorizeRights(asked: AskedFor, gateway: GatewayContext): Promise<void> {
  const refused = accessRefusal(rules(asked, gateway));
  if (refused) await refuse(asked, refused, gateway);
}

/** Reads go on, and what stops changes. */
function isSafeUnderOldPolicy({ command, isStop = false }: AskedFor): boolean {
  if (isStop) return true;
  return command.class === "read" || (command.kind === "read" && command.approversToo === true);
}

/** Throws a UserError where other processes have a newer policy than this one: what it allows may be forbidden by now. */
export function refuseUnderOldPolicy({ standstill }: Pick<GatewayContext, "standstill">): void {
  if (standstill() === undefined) return;
  throw new UserError(
    "The policy changed, and this process of Gatehouse doesn't have the new one yet, so it changes nothing. Nothing was done.",
    "Try again in a minute. If it stays so, report to the team that runs Gatehouse: `/gatehouse status` says why.",
  );
}

type Rules = Pick<GatewayContext, "policy" | "ourTeamId" | "nameOf">;

export function rules(asked: AskedFor, { policy, ourTeamId, nameOf }: Rules): Asked {
  return { ...asked, policy, ourTeamId, nameOf };
}

type Noted = Pick<AskedFor, "command" | "person" | "targets" | "notedAs">;

/** Records in the audit trail that a rule refused it. Throws Refused. */
export async function refuse(
  asked: Noted,
  { rule, text, hint }: { rule: string; text: string; hint?: string | undefined },
  gateway: Pick<GatewayContext, "store">,
): Promise<never> {
  await noteRefusal(asked, rule, gateway);
  throw new Refused(text, hint);
}

/** Whether this person may see names of VMs and projects in pickers and on the Home tab. */
export function maySeeNames(person: Person, { policy, ourTeamId }: GatewayContext): boolean {
  return placesSeen(policy, person, ourTeamId).length > 0;
}

export async function noteRefusal(
  { command, person, targets, notedAs = "" }: Noted,
  rule: string,
  { store }: Pick<GatewayContext, "store">,
): Promise<void> {
  await store.note({
    what: "refusal",
    who: person.id,
    team: person.teamId,
    command: command.name,
    targets: targets.map(({ id }) => id),
    rule: `${notedAs}${rule}`,
  });
}

/** What a read command answers from, for whoever asks, and what changes need besides. */
export interface GatewayContext extends Surroundings {
  policyVersion: string;
  /** Why this process may change nothing now, in words (`start/policy-keeper.ts`). */
  standstill(): string | undefined;
  store: Journal;
  rollouts: Rollouts;
  alerts: Alerts;
  proposals: Proposals;
  web: Web;
  /** Uploads go only to its hosts. */
  apiUrl: string;
  /** Rejects when Slack can't tell who the person is. */
  person(userId: string, teamId: string, options?: { fresh?: boolean }): Promise<Person>;
  /** Reads the members of these groups; undefined for a group that can't be read. */
  membersOf(
    entries: readonly string[],
  ): Promise<(groupId: string) => readonly string[] | undefined>;
  /** Counting the VMs of this inventory, or all. */
  status(inventory?: Inventory): Promise<readonly StatusLine[]>;
  wake(id: string): Promise<void>;
  announce: Announce;
  answerNotices: AnswerNotices;
  /** What is known of an ended request's VM since: a result never hides it. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  log: Log;
}

/** An act of a person in Slack, the ways to answer it, and what they may see of everything. */
export interface Act<I = Interaction> {
  interaction: I;
  reply: Reply;
  gateway: GatewayContext;
}

/** Before the ack only the errors of a form answer it. */
export type BeforeAck<I = Interaction> = Omit<Act<I>, "reply">;

export function personOf(
  { interaction, gateway }: BeforeAck<Pick<Interaction, "userId" | "teamId">>,
  options?: { fresh?: boolean },
): Promise<Person> {
  return gateway.person(interaction.userId, interaction.teamId, options);
}

/** Says to the person what went wrong; without Redis the interaction isn't handled yet, and comes again. */
export async function orSayWhy<A extends Act>(
  act: A,
  handle: (act: A) => Promise<unknown>,
): Promise<void> {
  try {
    await handle(act);
  } catch (error) {
    if (redisTrouble(error) !== undefined) throw error;
    await act.reply.privately(errorReply(error, act.gateway.log));
  }
}

/** Throws UserError where there is none any more. */
export function commandNamed(dotted: string, { commands }: GatewayContext): Command {
  const command = commands.find((one) => dottedName(one) === dotted);
  if (!command) throw outdated();
  return command;
}

export function changeNamed(
  name: string | undefined,
  { commands }: Pick<GatewayContext, "commands">,
): ChangeCommand | undefined {
  return requestable(commands).find((command) => command.name === name);
}

export function outdated(): UserError {
  return new UserError(
    "This button no longer works.",
    "Use a command instead; `/gatehouse help` lists them.",
  );
}

/** Throws UserError where the trigger was too old. */
export async function openOr({ reply }: Pick<Act, "reply">, view: ModalView): Promise<void> {
  if ((await reply.open(view)) === undefined) throw tooSlow();
}

export function tooSlow(): UserError {
  return new UserError("That took too long to open.", "Press the button again.");
}

/** Stands first in a form that is opened during a freeze. */
export async function frozenLine({ store }: GatewayContext): Promise<Markdown | undefined> {
  return frozenWords(await store.freezeState());
}

/** Requests read at once, and at most, to find those that somebody sees. */
const readAtOnce = 200;
const maxRead = 2_000;

/** Whose view of everything it is. */
interface Viewer {
  /** Empty for who asks for no rollouts. */
  id: string;
  /** Undefined for those who see everything. */
  scope(): Promise<Scope | undefined>;
  /** Seen whatever it is about. */
  mayReadAnyway(request: StoredRequest): Promise<boolean>;
}

/**
 * What the person behind an interaction may see of everything: the VMs and projects of their teams and of no team, and the
 * requests, rollouts, and snapshots of them. Every handler gets this instead of the whole, so that a new command can't
 * forget it; what is hidden is answered like what doesn't exist. Without teams, and without rules that name who votes, it is
 * the whole.
 */
export function seenBy(
  { userId, teamId }: Pick<Interaction, "userId" | "teamId">,
  gateway: GatewayContext,
): GatewayContext {
  const { policy, ourTeamId } = gateway;
  const { teams, approvals } = policy;
  if (Object.keys(teams).length === 0 && approvals.every(({ votes }) => !votes)) return gateway;
  let asked: Promise<Person> | undefined;
  const person = () => (asked ??= gateway.person(userId, teamId));
  const viewer: Viewer = {
    id: userId,
    scope: async () => scopeOfPerson(policy, await person(), ourTeamId),
    /** Whoever asked for it, and whoever may vote on it. */
    async mayReadAnyway({ record }) {
      const one = await person();
      if (record.requester.id === one.id) return true;
      const needs =
        record.approval && isFullMember(one, ourTeamId) ? needsOf(policy, record.approval) : [];
      return needs.some((need) => mayMeet(need, one));
    },
  };
  return seenFrom(viewer, gateway);
}

/** The same for a program: what its `view` in gatehouse.yml names, and nothing else. */
export function seenByService(view: readonly string[], gateway: GatewayContext): GatewayContext {
  const scope = scopeOfView(view);
  const viewer = { id: "", scope: async () => scope, mayReadAnyway: async () => false };
  return seenFrom(viewer, gateway);
}

/** Those of which it is true. */
async function those<T>(all: readonly T[], isSeen: (one: T) => Promise<boolean>): Promise<T[]> {
  const seen = await Promise.all(all.map(isSeen));
  return all.filter((_, index) => seen[index]);
}

function seenFrom(viewer: Viewer, gateway: GatewayContext): GatewayContext {
  const { scope } = viewer;
  const { store, rollouts, snapshots } = gateway;
  const inventory = gateway.inventory.seenIn(scope);

  async function sees(target: Target): Promise<boolean> {
    const places = await scope();
    if (!places) return true;
    const { id, name } = ownerOf(target);
    const known = id !== "" && (await gateway.inventory.findProject(id, { onlyKnown: true }));
    const now = known && "found" in known && known.found.id === id ? known.found.name : undefined;
    return seesUnder(places, id, [name, now]);
  }

  const mayRead = async (request: StoredRequest) =>
    (await viewer.mayReadAnyway(request)) || sees(request.record.target);

  const ifSeen = async (request: StoredRequest | undefined) =>
    request && (await mayRead(request)) ? request : undefined;
  const get: JournalReads["get"] = async (id) => ifSeen(await store.get(id));
  const getMany: JournalReads["getMany"] = async (ids) => those(await store.getMany(ids), mayRead);
  const idsSeen = async (ids: readonly string[]) =>
    (await getMany(ids)).map(({ record }) => record.id);
  const recentIds: JournalReads["recentIds"] = async (filter, most) => {
    const ids = await store.recentIds(filter, maxRead);
    const found: string[] = [];
    for (let from = 0; from < ids.length && found.length < most; from += readAtOnce)
      found.push(...(await idsSeen(ids.slice(from, from + readAtOnce))));
    return found.slice(0, most);
  };
  /** The whole half, or it doesn't compile. */
  const reads: JournalReads = {
    get,
    getMany,
    recentIds,
    openIds: async () => idsSeen(await store.openIds()),
    openCount: async () => (await recentIds({ open: true }, maxRead)).length,
    idsAskedBetween: async (...between) => idsSeen(await store.idsAskedBetween(...between)),
    madeBy: async (interactionId) => ifSeen(await store.madeBy(interactionId)),
    history: async (id) => ((await get(id)) ? store.history(id) : []),
    openReviews: async () => {
      const reviews = await store.openReviews();
      const ids = new Set(await idsSeen(reviews.map(({ request }) => request)));
      return reviews.filter(({ request }) => ids.has(request));
    },
  };

  /** A rollout that the viewer asked for, or whose every VM they see. */
  const getRollout: Rollouts["get"] = async (id) => {
    const rollout = await rollouts.get(id);
    if (!rollout || !(await scope()) || rollout.record.requester.id === viewer.id) return rollout;
    const isSeen = await Promise.all(rollout.targets.map(sees));
    return isSeen.length > 0 && isSeen.every(Boolean) ? rollout : undefined;
  };

  const seesVm = async (vmId: string) => {
    if (!(await scope())) return true;
    const known = await inventory.findVm(vmId, { onlyKnown: true });
    return "found" in known && known.found.id === vmId;
  };

  return {
    ...gateway,
    inventory,
    store: { ...store, ...reads },
    rollouts: {
      ...rollouts,
      get: getRollout,
      stateOf: async (id) => (await getRollout(id))?.state ?? null,
      openIds: async () =>
        those(await rollouts.openIds(), async (id) => (await getRollout(id)) !== undefined),
    },
    snapshots: {
      ...snapshots,
      of: async (vmId) => ((await seesVm(vmId)) ? snapshots.of(vmId) : []),
      find: async (vmId, words) => ((await seesVm(vmId)) ? snapshots.find(vmId, words) : undefined),
      newest: async () =>
        new Map(await those([...(await snapshots.newest())], ([vmId]) => seesVm(vmId))),
      /**
       * Whoever doesn't see everything restores only what is known to be of a VM that they see: any other ID may hold the data
       * of another team. Throws UserError, the same for an ID that is hidden and for one that is unknown.
       */
      async ownerOf(snapshotId) {
        const owner = await snapshots.ownerOf(snapshotId);
        if (!(await scope()) || (owner !== undefined && (await seesVm(owner)))) return owner;
        throw new UserError(
          `Gatehouse knows no snapshot ${snapshotId} of a VM that you can see.`,
          "With teams, only snapshots taken with Gatehouse can be restored: `/vm snapshots` lists them.",
        );
      },
    },
    status: () => gateway.status(inventory),
  };
}
