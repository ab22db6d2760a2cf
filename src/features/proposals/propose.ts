import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { UserError } from "../../errors.ts";
import { plain, plainWords } from "../../messages/message.ts";
import { channelOfProject, scopeOfChannel } from "../../core/permit/access.ts";
import { isRunIn, ownerOf, renamed } from "../../core/permit/refusal.ts";
import { mayPropose } from "../../core/permit/service-rights.ts";
import { type Unrunnable, forbiddenToAll, withoutPeople } from "../../core/permit/unrunnable.ts";
import {
  type ChangeCommand,
  type Target,
  restoresSnapshot,
  snapshotLister,
} from "../../registry/define.ts";
import {
  type ChangeInvocation,
  type Input,
  asksForChange,
  withTarget,
  withIds,
} from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import { noteOutcome } from "../../core/deliver/after-result.ts";
import { newRequestId } from "../../core/request/journal.ts";
import { headline } from "../../core/cards/render-result.ts";
import { resolveOne, resolveSeveral } from "../../core/submit/resolve-targets.ts";
import { authorize, noteRefusal, authorizeTargets } from "../../talk/authorize.ts";
import { labelsOf, unread } from "../../talk/dialog-facts.ts";
import { type GatewayContext, changeNamed } from "../../talk/gateway-context.ts";
import {
  type ProposalRecord,
  type Proposer,
  type StoredProposal,
  hasExpired,
  proposalsOf,
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
import { restoringOf } from "../../talk/permit-by-facts.ts";
import {
  approvalsFor,
  type Asking,
  type ServiceAsking,
  serviceMayAsk,
} from "../../core/permit/permit.ts";
import { whyOf } from "../../core/request/stage.ts";

/** A proposal as a caller words it. */
export interface Wanted {
  /** Its words. */
  command: string;
  reason: string;
  /** The same key is the same proposal, however often it is sent. */
  key?: string | undefined;
}

const wrong = (title: string, detail?: string, { status = 422, field = "command" } = {}) =>
  new ApiProblem(status, title, detail, { field });

const personsOpen = 20;

/** Where its proposals are posted, how long they stand, and how many may be open. A person's go to that person alone. */
const termsOf = (caller: Caller, { policy }: GatewayContext) =>
  "service" in caller
    ? {
        by: { service: caller.service } as Proposer,
        channelId: caller.rule.channel ?? "",
        expiresMs: caller.rule.expires,
        most: caller.rule.limits.openProposals,
        setBy: ` \`services.${caller.service}.limits.openProposals\` in gatehouse.yml sets this limit.`,
      }
    : {
        by: { person: { ...caller.person } } as Proposer,
        channelId: caller.person.id,
        expiresMs: policy.timing.approvalExpiresMs,
        most: personsOpen,
        setBy: "",
      };

/** Puts a change before people; it is made once one of them runs it. Throws Problem, and UserError for names. */
export async function propose(
  caller: Caller,
  { command: typed, reason, key }: Wanted,
  behind: Behind,
): Promise<ProposalState> {
  const { store, gatewayNow, at } = behind;
  const gateway = gatewayNow();
  const proposals = proposalsOf(gateway);
  const { by, channelId, expiresMs, most, setBy } = termsOf(caller, gateway);
  const proposer = callerName(by);
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
  const places = { windowMs: expiresMs, most, of: "proposal", isOver };
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
  await proposals.propose({ id, by, words, reason, target, ...change, command, ...when });
  await at?.("proposal-kept", id);
  return same(await proposals.get(id));

  function same(one: StoredProposal | undefined): Promise<ProposalState> {
    if (one?.record.words === words && one.record.reason === reason)
      return stateOf(caller, id, behind);
    const title = "This Idempotency-Key was already used for another proposal.";
    throw wrong(title, "Use a new key.", { field: "Idempotency-Key" });
  }
}

/** What these words mean, where this caller may propose it. */
async function readChange(
  caller: Caller,
  words: string,
  gateway: GatewayContext,
): Promise<
  Pick<ProposalRecord, "input" | "target" | "labels" | "risk"> & { command: ChangeCommand }
> {
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
  const asked = { command, targets: [target] };
  const { snapshots, inventory, policy, ourTeamId } = gateway;
  const isProject = target.kind === "project" && target.id !== "";
  const vms = isProject ? await inventory.vms({ projectId: target.id }) : [];
  const exact = await withIds(command, written, target, gateway);
  const input = withTarget(command, exact, target);
  const ofVm = target.kind === "vm" ? await snapshots.of(target.id) : [];
  const facts = { ...unread(target, input), vms, snapshots: ofVm };
  const judged = { ...asked, input, policy, ourTeamId, vmNames: vms.map(({ name }) => name) };
  const restoring = restoringOf(facts, gateway.now());
  const needed = approvalsFor({ ...judged, restoring }, gateway);
  const runner = "person" in caller ? caller.person.id : undefined;
  const never =
    forbiddenToAll(judged) ??
    (await snapshotProblem(command, input, target, gateway)) ??
    withoutPeople(judged, needed, runner);
  if (never)
    await refuseNoted(caller, asked, never.rule, gateway, wrong(never.title, never.detail));
  const { labels = {}, snapshotAt: since } = labelsOf(facts);
  const lost = since === undefined ? undefined : { since, forMs: gateway.now() - since };
  const risk = command.risk?.({ target, input, vms, lost }) ?? [];
  return { command, input, target, labels, risk: risk.map(String) };
}

/** A restore says of which snapshot, and that is one of its VM as far as anybody knows. Throws UserError for one that isn't seen. */
async function snapshotProblem(
  command: ChangeCommand,
  { snapshot }: Input,
  { id, name }: Target,
  { snapshots, commands }: Pick<GatewayContext, "snapshots" | "commands">,
): Promise<Unrunnable | undefined> {
  if (!restoresSnapshot(command)) return undefined;
  const rule = "input.snapshot";
  if (typeof snapshot !== "string")
    return {
      rule,
      title: "The snapshot is missing.",
      detail: "Name it behind the VM: what is restored isn't left open.",
    };
  const owner = await snapshots.ownerOf(snapshot);
  if (owner === undefined || owner === id) return undefined;
  const lister = snapshotLister(commands);
  const detail = lister
    ? `\`/${lister.name} ${name}\` lists those that can be restored.`
    : "Name one of its own.";
  return { rule, title: `The snapshot ${snapshot} isn't one of ${name}.`, detail };
}

/** Before any name is looked up. Throws Problem, and Refused. */
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

/** Because gatehouse.yml doesn't let this service propose it: on this target, or on any. */
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

/** Records in the audit trail by which rule. Throws `why`. */
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

/** Names that nothing has, or that the caller doesn't see, are refused in the same words. */
async function oneTarget(
  asker: Asking | ServiceAsking,
  invocation: ChangeInvocation,
  gateway: GatewayContext,
): Promise<Target> {
  const several = await resolveSeveral(asker, invocation, gateway);
  if (!several) return resolveOne(asker, invocation, gateway);
  throw wrong("A proposal is for one VM.", "Propose one for each.");
}

/**
 * Where it can be run: in the channel of the service, where that may be told of the target; else in that of the target's team, and
 * then those of alarms. Throws Problem.
 */
async function channelFor(
  caller: ServiceCaller,
  command: ChangeCommand,
  target: Target,
  gateway: GatewayContext,
): Promise<string> {
  const { policy } = gateway;
  const { id, name = "" } = ownerOf(target);
  const isTold = (channel: string) => scopeOfChannel(policy, channel)?.sees({ id, name }) ?? true;
  const team = channelOfProject(policy, { id, name });
  const told = [caller.rule.channel, team, policy.alerts?.channel, policy.audit?.channel].filter(
    (channel) => channel !== undefined && (channel === team || isTold(channel)),
  );
  const found = told.find((channelId) => isRunIn({ policy, command, channelId: channelId ?? "" }));
  if (found !== undefined) return found;
  const asked = { command, targets: [target] };
  if (told.length === 0) {
    const way = "In gatehouse.yml the service, the target's team, or `alerts` needs `channel`.";
    const why = wrong("No channel can be told of this target.", way);
    return refuseNoted(caller, asked, `${callerName(caller)}.channel`, gateway, why);
  }
  const title = `\`channels\` in gatehouse.yml lets nobody run /${command.name} where its card would be.`;
  const way = "It must list the `channel` of the service, or of the target's team.";
  return refuseNoted(caller, asked, "channels", gateway, wrong(title, way));
}

/** A proposal, or the request that was made of it, as it is told to whoever proposed. */
export interface ProposalState {
  id: string;
  /** `open`, `dismissed`, `expired`, or that of its request, as in docs/promise.md. */
  state: string;
  /** Nothing more becomes of it. `unknown` isn't final: a person must check. */
  final: boolean;
  command: string;
  reason: string;
  expiresAt: string;
  request?: string;
  /** Who ran or dismissed it. */
  by?: string;
  why?: string;
  /** Once its request has ended, in a sentence. */
  result?: string;
}

const lookEveryMs = 250;

/**
 * What became of a proposal of this caller. With `waitMs`, once it has another state than `after`, or than now, if that happens in
 * time. Throws Problem, the same for another's and for one that nobody made.
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
    // It may be gone from gatehouse.yml since it began to wait
    if ("service" in caller && !Object.hasOwn(gatewayNow().policy.services, caller.service))
      throw unauthorized();
    const proposal = await proposals.get(id);
    if (!proposal || callerName(proposal.record.by) !== proposer)
      throw new ApiProblem(404, "There is no such request.");
    const now = await described(proposal, behind);
    after ??= now.state;
    const isOver = performance.now() >= until || signal?.aborted === true;
    if (now.final || now.state !== after || isOver) return now;
    await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

async function described(
  proposal: StoredProposal,
  { store, gatewayNow }: Behind,
): Promise<ProposalState> {
  const proposals = proposalsOf(gatewayNow());
  const { record, state, dismissal } = proposal;
  const { id, words: command, reason } = record;
  const told = { id, command, reason, expiresAt: new Date(record.expiresAt).toISOString() };
  const request = await requestOf(proposal, store);
  if (request) {
    const { final, stage, record: made } = request;
    const why = whyOf(stage);
    const its = changeNamed(made.command, gatewayNow());
    // Whoever is told that it ended reads what that changed from here on, though a worker records it only in a moment
    const isRecorded = request.delivered.said["afterwards"] !== undefined;
    if (final && its && !isRecorded) await noteOutcome(request, its, gatewayNow().inventory);
    return {
      ...told,
      state: request.state,
      final,
      request: made.id,
      by: made.requester.name,
      ...(why ? { why: plain(why, 500) } : {}),
      ...(final && its ? { result: plainWords(headline(request, its)) } : {}),
    };
  }
  if (dismissal) return { ...told, state, final: true, by: dismissal.name, why: dismissal.reason };
  if (hasExpired(proposal, await proposals.now()))
    return { ...told, state: "expired", final: true, why: "no one ran it in time" };
  return { ...told, state: "open", final: false };
}

const text = (most: number) =>
  z
    .string("must be text")
    .trim()
    .min(1, "must not be empty")
    .max(most, `must be at most ${most} characters`);
const wanted = z.object({ command: text(4_000), reason: text(300) }, "must be a JSON object");
const keyShape = /^[\x21-\x7e]{1,200}$/;

function wantedIn({ headers, body }: Call): Wanted {
  const read = wanted.safeParse(jsonOf(body), { reportInput: false });
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

/** The longest that a call waits for the next state (s). */
const longestWait = 30;

/** For services; a person's agent comes in over MCP. */
export function proposalRoutes(behind: Behind): readonly Route[] {
  const known = (call: Call, named: Parameters<Handle>[1]) =>
    serviceOf(call, named, behind.gatewayNow());
  const onPost: Handle = async (call, named) => {
    const caller = await known(call, named);
    const state = await propose(caller, wantedIn(call), behind);
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
