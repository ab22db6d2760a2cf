import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import type { Policy } from "../../config/policy-file.ts";
import { UserError } from "../../errors.ts";
import { plain, plainWords } from "../../messages/message.ts";
import { channelOfProject, scopeOfChannel } from "../../policy/access.ts";
import { type Judged, ownerOf, protection } from "../../policy/refusal.ts";
import { isChange, type Target } from "../../registry/define.ts";
import { asksForChange, type ChangeInvocation, withTarget } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import { noteOutcome } from "../../requests/after-result.ts";
import { newRequestId } from "../../requests/journal/journal.ts";
import { headline } from "../../requests/render/render-result.ts";
import { resolveOne, resolveSeveral, withSnapshotId } from "../../requests/submit/submit.ts";
import {
  authorize,
  changeNamed,
  type GatewayContext,
  noteRefusal,
} from "../../slack/conversation/authorize.ts";
import { labelsOf, unread } from "../../slack/conversation/submit.ts";
import {
  hasExpired,
  mayPropose,
  type ProposalRecord,
  type Proposer,
  proposerName,
  requestOf,
  type StoredProposal,
} from "../proposals.ts";
import type { Behind } from "./behind.ts";
import { type Caller, seenFrom, serviceOf } from "./callers.ts";
import { type Call, type Handle, jsonOf, Problem, type Route, unauthorized } from "./door.ts";
import { asPerson, wordsOf } from "./reads.ts";

/** A proposal as a caller words it. */
export interface Wanted {
  /** Its words. */
  command: string;
  reason: string;
  /** The same key is the same proposal, however often it is sent. */
  key?: string | undefined;
}

const wrong = (title: string, detail?: string, { status = 422, field = "command" } = {}) =>
  new Problem(status, title, detail, { field });

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
  const { proposals, store, gatewayNow, at } = behind;
  const gateway = gatewayNow();
  const { by, channelId, expiresMs, most, setBy } = termsOf(caller, gateway);
  const proposer = proposerName(by);
  const words = typed.trim().replace(/^\/+/, "");
  const keyed = hash("sha256", JSON.stringify([proposer, key])).slice(0, 16);
  const id = key === undefined ? newRequestId().replace("r-", "p-") : `p-${keyed}`;
  const known = await proposals.get(id);
  if (known) return same(known);
  const seen = seenFrom(caller, gateway);
  const { target, ...change } = await readChange(caller, words, seen).catch((error: unknown) => {
    throw error instanceof UserError ? wrong(...wordsOf(error, behind.log)) : error;
  });
  const now = await proposals.now();
  const place = "service" in caller ? channelFor(channelId, target, gateway) : channelId;
  const when = { channelId: place, expiresAt: now + expiresMs };
  const isOver = (state: string) => state !== "open";
  const places = { windowMs: expiresMs, most, of: "proposal", isOver };
  if ((await store.takeDoorPlace(`open ${proposer}`, id, places)) > 0) {
    await behind.onLimit(proposer, `${most} open proposals`);
    throw new Problem(
      429,
      `${most} of your proposals are open, which is the limit.`,
      `Wait until one is run or dismissed, or expires.${setBy}`,
    );
  }
  await at?.("proposal", id);
  await proposals.propose({ id, by, words, reason, target, ...change, ...when });
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
): Promise<Pick<ProposalRecord, "command" | "input" | "target" | "labels" | "risk">> {
  const invocation = parseCommand(words, gateway.commands);
  if ("refusal" in invocation) throw wrong(invocation.refusal.text, invocation.refusal.hint);
  const { command } = invocation;
  if (!asksForChange(invocation) || invocation.breakGlass !== undefined)
    throw wrong(
      `/${command.name} can't be proposed like this.`,
      "Only a change can be proposed, without --break-glass.",
    );
  await refuseUnlessListed(caller, invocation, gateway);
  const target = await oneTarget(invocation, gateway);
  await refuseUnlessListed(caller, invocation, gateway, target);
  const asked = { command, input: invocation.input, targets: [target], channelId: "" };
  if ("person" in caller) await authorize({ ...asked, person: caller.person }, gateway);
  const { snapshots, inventory, policy } = gateway;
  const isProject = target.kind === "project" && target.id !== "";
  const vms = isProject ? await inventory.vms({ projectId: target.id }) : [];
  refuseUnrunnable({ ...asked, policy, vmNames: vms.map(({ name }) => name) });
  const exact = await withSnapshotId(invocation.command, invocation.input, target, gateway);
  const input = withTarget(command, exact, target);
  if (typeof input["snapshot"] === "string") await snapshots.ownerOf(input["snapshot"]);
  const ofVm = target.kind === "vm" ? await snapshots.of(target.id) : [];
  const { labels = {}, snapshotAt: since } = labelsOf({
    ...unread(target, input),
    snapshots: ofVm,
  });
  const lost = since === undefined ? undefined : { since, forMs: gateway.now() - since };
  const risk = invocation.command.risk?.({ target, input, vms, lost }) ?? [];
  return { command: command.name, input, target, labels, risk: risk.map(String) };
}

/** What nobody may ever run makes no card: whoever proposed it would wait for nothing. Throws Problem. */
function refuseUnrunnable(asked: Judged & { policy: Policy }): void {
  const { command, input = {}, policy } = asked;
  const found = protection(policy, asked);
  if (found?.glob !== undefined) {
    const { target, because } = found;
    const what = because === undefined ? target.name : `${target.name} (because of ${because})`;
    const title = `${what} is protected, so nobody can run /${command.name} on it.`;
    throw wrong(title, "`protect` in gatehouse.yml says what is.");
  }
  const needsSnapshot = isChange(command) && command.on === "vm" && command.snapshot === "restores";
  if (needsSnapshot && typeof input["snapshot"] !== "string")
    throw wrong(
      "The snapshot is missing.",
      "Name it behind the VM: what is restored isn't left open.",
    );
}

async function refuseUnlessListed(
  caller: Caller,
  { command }: ChangeInvocation,
  gateway: GatewayContext,
  ...targets: Target[]
): Promise<void> {
  const [target] = targets;
  if ("person" in caller || mayPropose(caller.rule, command, target)) return;
  const rule = `${proposerName(caller)}.propose`;
  await noteRefusal({ command, person: asPerson(caller), targets }, rule, gateway);
  const on = target === undefined ? "" : ` on ${target.name}`;
  throw wrong(
    `${caller.service} may not propose /${command.name}${on}.`,
    `\`${rule}\` in gatehouse.yml says what it may.`,
    { status: 403 },
  );
}

/** Names that nothing has, or that the caller doesn't see, are refused in the same words. */
async function oneTarget(invocation: ChangeInvocation, gateway: GatewayContext): Promise<Target> {
  if (!(await resolveSeveral(invocation, gateway))) return resolveOne(invocation, gateway);
  throw wrong("A proposal is for one VM.", "Propose one for each.");
}

/** That of the service, where that may be told of the target; else that of the target's team, and then those of alarms. */
function channelFor(channelId: string, target: Target, { policy }: GatewayContext): string {
  const { id, name = "" } = ownerOf(target);
  const isTold = (channel = "") =>
    channel !== "" && (scopeOfChannel(policy, channel)?.sees({ id, name }) ?? true);
  const team = channelOfProject(policy, { id, name });
  const all = [channelId, team, policy.alerts?.channel, policy.audit?.channel];
  const found = all.find(
    (channel) => channel !== undefined && (channel === team || isTold(channel)),
  );
  if (found !== undefined) return found;
  const way = "In gatehouse.yml the service, the target's team, or `alerts` needs `channel`.";
  throw wrong("No channel can be told of this target.", way);
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
  const { proposals, gatewayNow } = behind;
  const { signal, waitMs = 0 } = how;
  const until = performance.now() + waitMs;
  const proposer = proposerName(caller);
  for (let { after } = how; ;) {
    // It may be gone from gatehouse.yml since it began to wait
    if ("service" in caller && !Object.hasOwn(gatewayNow().policy.services, caller.service))
      throw unauthorized();
    const proposal = await proposals.get(id);
    if (!proposal || proposerName(proposal.record.by) !== proposer)
      throw new Problem(404, "There is no such request.");
    const now = await described(proposal, behind);
    after ??= now.state;
    const isOver = performance.now() >= until || signal?.aborted === true;
    if (now.final || now.state !== after || isOver) return now;
    await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

async function described(
  proposal: StoredProposal,
  { store, proposals, gatewayNow }: Behind,
): Promise<ProposalState> {
  const { record, state, dismissal } = proposal;
  const { id, words: command, reason } = record;
  const told = { id, command, reason, expiresAt: new Date(record.expiresAt).toISOString() };
  const request = await requestOf(proposal, store);
  if (request) {
    const { final, progress, record: made } = request;
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
      ...(progress.why ? { why: plain(progress.why, 500) } : {}),
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
