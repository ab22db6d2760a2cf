import type { Policy } from "../../config/policy-file.ts";
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { UserError } from "../../errors.ts";
import { plain, plainWords } from "../../messages/markdown.ts";
import { renamed } from "../../core/permit/refusal.ts";
import { mayPropose } from "../../core/permit/service-rights.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import { type ChangeInvocation, asksForChange } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import { linkTo } from "../../core/deliver/permalink.ts";
import { noteOutcome } from "../../core/deliver/after-result.ts";
import { newRequestId } from "../../core/request/journal.ts";
import { headline } from "../../core/cards/render-result.ts";
import { resolveOne, resolveSeveral } from "../../core/submit/resolve-targets.ts";
import { authorize, noteRefusal, authorizeTargets } from "../../talk/authorize.ts";
import { type GatewayContext, changeNamed } from "../../talk/gateway-context.ts";
import { type PreparedChange, placeFor, prepareChange } from "./prepare-change.ts";
import {
  type Proposer,
  type StoredProposal,
  hasExpired,
  proposalsOf,
  proposerName,
  requestOf,
} from "./proposals.ts";
import type { Behind } from "../../api/api-context.ts";
import {
  type Caller,
  type ServiceCaller,
  callerName,
  seenFrom,
  serviceOf,
} from "../../api/callers.ts";
import {
  type Call,
  type Handle,
  ApiProblem,
  type Route,
  jsonOf,
  unauthorized,
} from "../../api/server.ts";
import { asPerson, wordsOf } from "../../api/read-for.ts";
import { type Asking, type ServiceAsking, serviceMayAsk } from "../../core/permit/permit.ts";
import { whyOf } from "../../core/request/stage.ts";

/** A proposal as a caller sends it. */
export interface Wanted {
  /** The words of the command. */
  command: string;
  reason: string;
  /** Idempotency key: the same key means the same proposal, however often it is sent. */
  key?: string | undefined;
}

const wrong = (title: string, detail?: string, { status = 422, field = "command" } = {}) =>
  new ApiProblem(status, title, detail, { field });

const personsOpen = 20;

/**
 * Where the caller's proposals are posted, how long they stand, and how many may be open. Those of
 * a person go only to that person.
 */
const termsOf = (caller: Caller, { policy }: { policy: Policy }) =>
  "service" in caller
    ? {
        proposedBy: { service: caller.service } as Proposer,
        channelId: caller.rule.channel ?? "",
        expiresMs: caller.rule.expires,
        most: caller.rule.limits.openProposals,
        setBy: ` \`services.${caller.service}.limits.openProposals\` in gatehouse.yml sets this limit.`,
      }
    : {
        proposedBy: { person: { ...caller.person } } as Proposer,
        channelId: caller.person.id,
        expiresMs: policy.timing.approvalExpiresMs,
        most: personsOpen,
        setBy: "",
      };

/** Stores a proposal, which is run only when a person runs it. Throws ApiProblem. */
export async function propose(
  caller: Caller,
  { command: typed, reason, key }: Wanted,
  behind: Behind,
): Promise<ProposalState> {
  const { store, gatewayNow, at } = behind;
  const gateway = gatewayNow();
  const proposals = proposalsOf(gateway);
  const { proposedBy, channelId, expiresMs, most, setBy } = termsOf(caller, gateway);
  const proposer = proposerName(proposedBy);
  const words = typed.trim().replace(/^\/+/, "");
  const keyed = hash("sha256", JSON.stringify([proposer, key])).slice(0, 16);
  const id = key === undefined ? newRequestId().replace("r-", "p-") : `p-${keyed}`;
  const known = await proposals.get(id);
  if (known) return same(known);
  const seen = seenFrom(caller, gateway);
  const { target, ...change } = await readChange(caller, words, seen).catch((error: unknown) => {
    throw error instanceof UserError ? wrong(...wordsOf(error, behind.log)) : error;
  });
  const place =
    "service" in caller ? await channelFor(caller, change.command, target, gateway) : channelId;
  const now = await proposals.now();
  const when = { channelId: place, expiresAt: now + expiresMs };
  const isOver = (state: string) => state !== "open";
  const places = { windowMs: expiresMs, most, holderKind: "proposal" as const, isOver };
  if ((await store.takeApiPlace(`open ${proposer}`, id, places)) > 0) {
    await behind.onLimit(proposer, `${most} open proposals`);
    throw new ApiProblem(
      429,
      `${most} of your proposals are open, which is the limit.`,
      `Wait until one is run or dismissed, or expires.${setBy}`,
    );
  }
  await at?.("proposal", id);
  const command = change.command.name;
  await proposals.propose({
    id,
    by: proposedBy,
    words,
    reason,
    target,
    ...change,
    command,
    ...when,
  });
  await at?.("proposal-kept", id);
  return same(await proposals.get(id));

  function same(proposal: StoredProposal | undefined): Promise<ProposalState> {
    if (proposal?.record.words === words && proposal.record.reason === reason)
      return stateOf(caller, id, behind);
    const title = "This Idempotency-Key was already used for another proposal.";
    throw wrong(title, "Use a new key.", { field: "Idempotency-Key" });
  }
}

/**
 * Reads the proposed command and checks that this caller may propose it. Throws ApiProblem, Refused
 * and UserError.
 */
async function readChange(
  caller: Caller,
  words: string,
  gateway: GatewayContext,
): Promise<PreparedChange & { command: ChangeCommand }> {
  const invocation = parseCommand(words, gateway.commands);
  if ("refusal" in invocation) throw wrong(invocation.refusal.text, invocation.refusal.hint);
  if (!asksForChange(invocation) || invocation.breakGlass !== undefined)
    throw wrong(
      `/${invocation.command.name} can't be proposed like this.`,
      "Only a change can be proposed, without --break-glass.",
    );
  const { command } = invocation;
  const { input: written } = invocation;
  const asker = await askFor(caller, invocation, gateway);
  const target = await oneTarget(asker, invocation, gateway);
  if ("service" in caller && !mayPropose(caller.rule, command, target, written))
    await refuseUnlisted(caller, invocation, gateway, target);
  if ("command" in asker) await authorizeTargets(asker, { targets: [target] }, gateway);
  const runner = "person" in caller ? caller.person.id : undefined;
  const change = await prepareChange({ command, input: written, target }, gateway, { runner });
  if (!("never" in change)) return { command, ...change };
  const { rule, title, detail } = change.never;
  return refuseNoted(caller, { command, targets: [target] }, rule, gateway, wrong(title, detail));
}

/**
 * Asks policy whether the caller may ask for this command, before any name is looked up. Throws
 * ApiProblem and Refused.
 */
async function askFor(
  caller: Caller,
  invocation: ChangeInvocation,
  gateway: GatewayContext,
): Promise<Asking<ChangeCommand> | ServiceAsking> {
  const { command, input } = invocation;
  const person = asPerson(caller);
  if ("person" in caller) return authorize({ command, input, person, channelId: "" }, gateway);
  const asking = serviceMayAsk(person, caller.rule, command);
  return asking ?? refuseUnlisted(caller, invocation, gateway);
}

/**
 * Refuses a command that gatehouse.yml doesn't let this service propose, on this target or on any.
 * Throws ApiProblem.
 */
async function refuseUnlisted(
  caller: ServiceCaller,
  { command, input }: ChangeInvocation,
  gateway: GatewayContext,
  ...targets: Target[]
): Promise<never> {
  const [target] = targets;
  const rule = `${callerName(caller)}.propose`;
  const [newly] = mayPropose(caller.rule, command, target)
    ? renamed({ command, targets, input })
    : [];
  const because = newly ? ` (because of ${newly.after.because})` : "";
  const on = target?.name ? ` on ${target.name}${because}` : "";
  const title = `${caller.service} may not propose /${command.name}${on}.`;
  const why = wrong(title, `\`${rule}\` in gatehouse.yml says what it may.`, { status: 403 });
  return refuseNoted(caller, { command, targets }, rule, gateway, why);
}

/** Records in the audit trail which rule refused the proposal, then throws `why`. */
async function refuseNoted(
  caller: Caller,
  { command, targets }: { command: ChangeCommand; targets: readonly Target[] },
  rule: string,
  gateway: GatewayContext,
  why: ApiProblem,
): Promise<never> {
  await noteRefusal({ command, person: asPerson(caller), targets }, rule, gateway);
  throw why;
}

/**
 * Resolves the one target of a proposal. A name that doesn't exist and one that the caller doesn't
 * see are refused with the same words. Throws ApiProblem and UserError.
 */
async function oneTarget(
  asker: Asking | ServiceAsking,
  invocation: ChangeInvocation,
  gateway: GatewayContext,
): Promise<Target> {
  const several = await resolveSeveral(asker, invocation, gateway);
  if (!several) return resolveOne(asker, invocation, gateway);
  throw wrong("A proposal is for one VM.", "Propose one for each.");
}

/** Finds the channel for a service's proposal (`placeFor`). Throws ApiProblem. */
async function channelFor(
  caller: ServiceCaller,
  command: ChangeCommand,
  target: Target,
  gateway: GatewayContext,
): Promise<string> {
  const { channel } = caller.rule;
  const place = placeFor({ command, target }, gateway, { first: channel });
  if ("channelId" in place) return place.channelId;
  const asked = { command, targets: [target] };
  if (place.lacks === "channel") {
    const way = "In gatehouse.yml the service, the target's team, or `alerts` needs `channel`.";
    const why = wrong("No channel can be told of this target.", way);
    return refuseNoted(caller, asked, `${callerName(caller)}.channel`, gateway, why);
  }
  const title = `\`channels\` in gatehouse.yml lets nobody run /${command.name} where its card would be.`;
  const way = "It must list the `channel` of the service, or of the target's team.";
  return refuseNoted(caller, asked, "channels", gateway, wrong(title, way));
}

/** The state of a proposal, or of the request made of it, as the proposer reads it. */
export interface ProposalState {
  id: string;
  /** `open`, `dismissed`, `expired`, or the request's state, as in docs/promise.md. */
  state: string;
  /**
   * True when nothing more is expected to change the state. `unknown` isn't final: a person must
   * check. `expired` still becomes the state of a request that was on its way.
   */
  final: boolean;
  command: string;
  reason: string;
  expiresAt: string;
  /** Address of its card in Slack, once it stands there. */
  card?: string;
  request?: string;
  /** Name of the person who ran or dismissed it. */
  by?: string;
  why?: string;
  /** The result in a sentence, once the request has ended. */
  result?: string;
}

const lookEveryMs = 250;

/**
 * Reads the state of this caller's proposal. With `waitMs` it waits that long for a state other
 * than `after`, or than the present one. Throws ApiProblem, which is the same for another caller's
 * proposal and for an ID that nobody used.
 */
export async function stateOf(
  caller: Caller,
  id: string,
  behind: Behind,
  how: { waitMs?: number; after?: string | undefined; signal?: AbortSignal } = {},
): Promise<ProposalState> {
  const { gatewayNow } = behind;
  const proposals = proposalsOf(gatewayNow());
  const { signal, waitMs = 0 } = how;
  const until = performance.now() + waitMs;
  const proposer = callerName(caller);
  for (let { after } = how; ;) {
    // The service may have been removed from gatehouse.yml while this call waits.
    if ("service" in caller && !Object.hasOwn(gatewayNow().policy.services, caller.service))
      throw unauthorized();
    const proposal = await proposals.get(id);
    if (!proposal || proposerName(proposal.record.by) !== proposer)
      throw new ApiProblem(404, "There is no such request.");
    const now = await described(proposal, behind);
    after ??= now.state;
    const isOver = performance.now() >= until || signal?.aborted === true;
    if (now.final || now.state !== after || isOver)
      return { ...now, ...(await cardOf(proposal, gatewayNow())) };
    await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

/** The address of the card, once it stands in Slack and Slack has told it. */
async function cardOf(
  proposal: StoredProposal,
  gateway: GatewayContext,
): Promise<Pick<ProposalState, "card">> {
  const { cardLink, delivered } = proposal;
  const card = cardLink ?? (await linkTo(delivered.card, gateway));
  if (card === undefined) return {};
  if (card !== cardLink) await proposalsOf(gateway).keepCardLink(proposal, card);
  return { card };
}

async function described(
  proposal: StoredProposal,
  { store, gatewayNow }: Behind,
): Promise<ProposalState> {
  const proposals = proposalsOf(gatewayNow());
  const { record, state, dismissal } = proposal;
  const { id, words: command, reason } = record;
  const fields = { id, command, reason, expiresAt: new Date(record.expiresAt).toISOString() };
  const request = await requestOf(proposal, store);
  if (request) {
    const { final, stage, record: made } = request;
    const why = whyOf(stage);
    const change = changeNamed(made.command, gatewayNow());
    // A caller who reads that the request ended must also read its effect in the next call, even
    // before a worker has recorded it.
    const isRecorded = request.delivered.marks["afterwards"] !== undefined;
    if (final && change && !isRecorded) await noteOutcome(request, change, gatewayNow().inventory);
    return {
      ...fields,
      state: request.state,
      final,
      request: made.id,
      by: made.requester.name,
      ...(why ? { why: plain(why, 500) } : {}),
      ...(final && change ? { result: plainWords(headline(request, change)) } : {}),
    };
  }
  if (dismissal)
    return { ...fields, state, final: true, by: dismissal.name, why: dismissal.reason };
  if (hasExpired(proposal, await proposals.now()))
    return { ...fields, state: "expired", final: true, why: "no one ran it in time" };
  return { ...fields, state: "open", final: false };
}

const text = (most: number) =>
  z
    .string("must be text")
    .trim()
    .min(1, "must not be empty")
    .max(most, `must be at most ${most} characters`);
const wanted = z.object({ command: text(4_000), reason: text(300) }, "must be a JSON object");
const keyShape = /^[\x21-\x7e]{1,200}$/;

async function wantedIn({ headers, readBody }: Call): Promise<Wanted> {
  const read = wanted.safeParse(jsonOf(await readBody()), { reportInput: false });
  if (!read.success) {
    const [issue] = read.error.issues;
    const field = String(issue?.path[0] ?? "body");
    throw wrong(`\`${field}\` ${issue?.message}.`, "It has `command` and `reason`.", { field });
  }
  const key = headers["idempotency-key"];
  if (key !== undefined && !keyShape.test(String(key))) {
    const title = "Idempotency-Key must be up to 200 characters without spaces.";
    throw wrong(title, undefined, { field: "Idempotency-Key" });
  }
  return { ...read.data, key: key?.toString() };
}

/** The longest time that a call waits for the next state (s). */
const longestWait = 30;

/** Routes for services. Agents of people use MCP instead. */
export function proposalRoutes(behind: Behind): readonly Route[] {
  const known = (call: Call, named: Parameters<Handle>[1]) =>
    serviceOf(call, named, behind.gatewayNow());
  const onPost: Handle = async (call, named) => {
    const caller = await known(call, named);
    const state = await propose(caller, await wantedIn(call), behind);
    const url = ["/v1/requests", state.id].join("/");
    return { status: 202, headers: { location: url }, body: { ...state, url } };
  };
  const onGet: Handle = async (call, named) => {
    const caller = await known(call, named);
    const { path, query, signal } = call;
    const waitMs = Math.min(longestWait, Number(query.get("wait")) || 0) * 1000;
    const after = query.get("after") ?? undefined;
    const id = path.replace("/v1/requests/", "");
    return { status: 200, body: await stateOf(caller, id, behind, { waitMs, after, signal }) };
  };
  const name = "proposals";
  return [
    { name, path: /^\/v1\/proposals$/, methods: ["POST"], handle: onPost },
    { name, path: /^\/v1\/requests\/[^/]+$/, methods: ["GET"], handle: onGet },
  ];
}
