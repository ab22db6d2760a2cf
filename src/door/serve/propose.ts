import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { plain, plainWords } from "../../messages/message.ts";
import { channelOfProject, scopeOfChannel, scopeOfView } from "../../policy/access.ts";
import { ownerOf } from "../../policy/refusal.ts";
import { asksForChange, type ChangeInvocation, withTarget } from "../../registry/invocation.ts";
import type { Target } from "../../registry/define.ts";
import { parseCommand } from "../../registry/parse.ts";
import { newRequestId } from "../../requests/journal/journal.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import { headline } from "../../requests/render/render-result.ts";
import {
  PickOne,
  resolveOne,
  resolveSeveral,
  withSnapshotId,
} from "../../requests/submit/submit.ts";
import { changeNamed, type GatewayContext, seenBy } from "../../slack/conversation/authorize.ts";
import { labelsOf, unread } from "../../slack/conversation/submit.ts";
import {
  hasExpired,
  mayPropose,
  onceOfProposal,
  type ProposalRecord,
  type Proposer,
  proposerName,
  type StoredProposal,
} from "../proposals.ts";
import { type Caller, serviceOf } from "./callers.ts";
import { type Answered, type Call, jsonOf, Problem, type Route, unauthorized } from "./door.ts";
import type { Behind } from "./routes.ts";

/** A proposal as a caller words it. */
export interface Wanted {
  words: string;
  reason: string;
  /** The same key means the same proposal, however often it is sent. */
  key?: string | undefined;
}

/** A person's goes to their direct messages and expires as soon as an approval would. */
const placeOf = (caller: Caller, { policy }: GatewayContext) =>
  "service" in caller
    ? { channelId: caller.rule.channel ?? "", expiresMs: caller.rule.expires }
    : { channelId: caller.person.id, expiresMs: policy.timing.approvalExpiresMs };

const limitOf = (caller: Caller) =>
  "service" in caller ? caller.rule.limits.openProposals : personsOpen;
const personsOpen = 20;

function proposerOf(caller: Caller): Proposer {
  if ("service" in caller) return { service: caller.service };
  const { id, teamId, name } = caller.person;
  return { person: { id, teamId, name } };
}

/** What this caller sees of everything. */
function seenFrom(caller: Caller, gateway: GatewayContext): GatewayContext {
  if ("person" in caller)
    return seenBy({ userId: caller.person.id, teamId: caller.person.teamId }, gateway);
  const scope = scopeOfView(caller.rule.view);
  return { ...gateway, inventory: gateway.inventory.seenIn(async () => scope) };
}

const fieldOf = (field: string) => ({ field });

/** Puts a change before people; it runs once one of them presses. Throws Problem, and UserError for words. */
export async function propose(
  caller: Caller,
  { words: typed, reason, key }: Wanted,
  behind: Behind,
): Promise<StoredProposal> {
  const { proposals } = behind;
  const by = proposerOf(caller);
  const words = typed.trim().replace(/^\/+/, "");
  const whose = JSON.stringify([proposerName(by), key]);
  const id =
    key === undefined
      ? newRequestId().replace("r-", "p-")
      : `p-${hash("sha256", whose).slice(0, 16)}`;
  const known = key === undefined ? undefined : await proposals.get(id);
  if (known) return same(known);
  const record = await recordOf(caller, { id, by, words, reason }, behind);
  const most = limitOf(caller);
  if ((await proposals.openOf(proposerName(by))) >= most)
    throw new Problem(
      429,
      `${most} of your proposals are open, which is the limit.`,
      "Wait until one is run or dismissed, or expires. `limits.openProposals` of the service in gatehouse.yml sets this limit.",
    );
  await proposals.propose(record);
  const stored = await proposals.get(id);
  if (!stored) throw new Error(`proposal ${id} is gone`);
  return same(stored);

  function same(stored: StoredProposal): StoredProposal {
    if (stored.record.words === words && stored.record.reason === reason) return stored;
    const detail = "Use a new key for another command or reason.";
    const title = "This Idempotency-Key was already used for another proposal.";
    throw new Problem(422, title, detail, fieldOf("Idempotency-Key"));
  }
}

/** What these words mean, where this caller may propose it. */
async function recordOf(
  caller: Caller,
  { id, by, words, reason }: Pick<ProposalRecord, "id" | "by" | "words" | "reason">,
  { gatewayNow, proposals }: Behind,
): Promise<ProposalRecord> {
  const gateway = seenFrom(caller, gatewayNow());
  const invocation = parseCommand(words, gateway.commands);
  if ("refusal" in invocation)
    throw new Problem(422, invocation.refusal.text, invocation.refusal.hint, fieldOf("command"));
  if (!asksForChange(invocation) || invocation.breakGlass !== undefined)
    throw new Problem(
      422,
      `/${invocation.command.name} can't be proposed like this.`,
      "Only a change can be proposed, without --break-glass.",
      fieldOf("command"),
    );
  const { command } = invocation;
  refuseUnless(caller, invocation);
  const target = await oneTarget(invocation, gateway);
  refuseUnless(caller, invocation, target);
  const exact = await withSnapshotId(command, invocation.input, target, gateway);
  const snapshots = target.kind === "vm" ? await gateway.snapshots.of(target.id) : [];
  const vms =
    target.kind === "project" && target.id !== ""
      ? await gateway.inventory.vms({ projectId: target.id })
      : [];
  const input = withTarget(command, exact, target);
  const { labels = {}, snapshotAt } = labelsOf({ ...unread(target, input), snapshots });
  const now = await proposals.now();
  const lost =
    snapshotAt === undefined ? undefined : { since: snapshotAt, forMs: now - snapshotAt };
  const { channelId, expiresMs } = placeOf(caller, gateway);
  return {
    ...{ id, by, words, reason, command: command.name, input, target, labels },
    risk: (command.risk?.({ target, input, vms, lost }) ?? []).map(({ value }) => value),
    channelId: "service" in caller ? channelFor(channelId, target, gateway) : channelId,
    expiresAt: now + expiresMs,
  };
}

function refuseUnless(caller: Caller, { command }: ChangeInvocation, target?: Target): void {
  if ("person" in caller || mayPropose(caller.rule, command, target)) return;
  const on = target === undefined ? "" : ` on ${target.name}`;
  throw new Problem(
    403,
    `${caller.service} may not propose /${command.name}${on}.`,
    `\`services.${caller.service}.propose\` in gatehouse.yml says what it may.`,
    fieldOf("command"),
  );
}

/** Names that nothing has, or that the caller doesn't see, are refused in the same words. */
async function oneTarget(invocation: ChangeInvocation, gateway: GatewayContext): Promise<Target> {
  try {
    if (await resolveSeveral(invocation, gateway))
      throw new Problem(
        422,
        "A proposal is for one VM.",
        "Propose one for each.",
        fieldOf("command"),
      );
    return await resolveOne(invocation, gateway);
  } catch (error) {
    if (!(error instanceof PickOne)) throw error;
    const names = error.candidates
      .slice(0, 5)
      .map(({ name, projectName }) => (projectName ? `${projectName}/${name}` : name));
    throw new Problem(422, error.message, names.join(", "), fieldOf("command"));
  }
}

/** That of the service, where that may be told of the target; else that of its team. */
function channelFor(channelId: string, target: Target, { policy }: GatewayContext): string {
  const { id, name = "" } = ownerOf(target);
  if (scopeOfChannel(policy, channelId)?.sees({ id, name }) ?? true) return channelId;
  const teams = channelOfProject(policy, { id, name });
  if (teams !== undefined) return teams;
  throw new Problem(422, "No channel may be told of this target.", "Its team needs `channel`.");
}

/** The state of a proposal, or of the request that was made of it, in the words of docs/promise.md. */
export interface ProposalState {
  id: string;
  /** `open`, `dismissed`, `expired`, or that of its request. */
  state: string;
  /** Nothing more becomes of it. `unknown` isn't: a person must check. */
  final: boolean;
  command: string;
  reason: string;
  expiresAt: string;
  request?: string;
  /** Who ran or dismissed it. */
  by?: string;
  why?: string;
  /** Once it has ended, in a sentence. */
  result?: string;
}

/**
 * What became of a proposal of this caller; undefined for any other. With `waitMs`, once it has another state than `after`, or
 * by default than now, if that happens in time.
 */
export async function stateOf(
  caller: Caller,
  id: string,
  behind: Behind,
  how: { waitMs?: number; after?: string | undefined; signal?: AbortSignal } = {},
): Promise<ProposalState | undefined> {
  const until = performance.now() + (how.waitMs ?? 0);
  let first = how.after;
  for (;;) {
    const proposal = await behind.proposals.get(id);
    if (!proposal || proposerName(proposal.record.by) !== proposerName(proposerOf(caller)))
      return undefined;
    const now = await described(proposal, behind);
    first ??= now.state;
    const isOver = performance.now() >= until || how.signal?.aborted === true;
    if (now.final || now.state !== first || isOver) return now;
    await sleep(lookEveryMs, undefined, { signal: how.signal }).catch(() => undefined);
  }
}

const lookEveryMs = 250;

async function described(proposal: StoredProposal, behind: Behind): Promise<ProposalState> {
  const { store, proposals } = behind;
  const { record, state, dismissal } = proposal;
  const told = {
    id: record.id,
    command: record.words,
    reason: record.reason,
    expiresAt: new Date(record.expiresAt).toISOString(),
  };
  const request = proposal.request
    ? await store.get(proposal.request)
    : state === "running" && (await store.madeBy(onceOfProposal(record.id)));
  if (request) return { ...told, ...ofRequest(request, behind) };
  if (dismissal) return { ...told, state, final: true, by: dismissal.name, why: dismissal.reason };
  if (hasExpired(proposal, await proposals.now()))
    return { ...told, state: "expired", final: true, why: "no one ran it in time" };
  return { ...told, state: "open", final: false };
}

function ofRequest(request: StoredRequest, { gatewayNow }: Behind) {
  const { record, state, final, progress } = request;
  const command = changeNamed(record.command, gatewayNow());
  const result = final && command ? plainWords(headline(request, command)) : undefined;
  return {
    ...{ state, final, request: record.id, by: record.requester.name },
    ...(progress.why ? { why: plain(progress.why, 500) } : {}),
    ...(result === undefined ? {} : { result }),
  };
}

const text = (most: number) =>
  z
    .string("must be text")
    .trim()
    .min(1, "must not be empty")
    .max(most, `must be at most ${most} characters`);
const wanted = z.object({ command: text(4_000), reason: text(300) });
const keyShape = /^[\x21-\x7e]{1,200}$/;

function wantedIn({ headers, body }: Call): Wanted {
  const read = wanted.safeParse(jsonOf(body), { reportInput: false });
  if (!read.success) {
    const [{ path, message } = { path: [], message: "" }] = read.error.issues;
    const field = String(path[0] ?? "");
    const title = field === "" ? "The body must be a JSON object." : `\`${field}\` ${message}.`;
    throw new Problem(422, title, "It has `command` and `reason`.", fieldOf(field));
  }
  const key = headers["idempotency-key"];
  if (key !== undefined && (typeof key !== "string" || !keyShape.test(key)))
    throw new Problem(
      422,
      "Idempotency-Key must be up to 200 characters without spaces.",
      undefined,
      fieldOf("Idempotency-Key"),
    );
  return { words: read.data.command, reason: read.data.reason, key };
}

/** The longest that a call waits for the next state. */
const longestWaitMs = 60_000;

/** For services; a person's agent comes in over MCP. */
export function proposalRoutes(behind: Behind): readonly Route[] {
  async function known(call: Call, named: Parameters<Route["handle"]>[1]) {
    const caller = serviceOf(call.headers, behind.gatewayNow().policy);
    if (!caller) throw unauthorized();
    await named(`services.${caller.service}`, caller.rule.limits.requestsPerMinute);
    return caller;
  }
  return [
    {
      name: "proposals",
      path: /^\/v1\/proposals$/,
      methods: ["POST"],
      async handle(call, named): Promise<Answered> {
        const caller = await known(call, named);
        const { record } = await propose(caller, wantedIn(call), behind);
        const url = `/v1/requests/${record.id}`;
        const state = await stateOf(caller, record.id, behind);
        return { status: 202, headers: { location: url }, body: { ...state, url } };
      },
    },
    {
      name: "proposals",
      path: /^\/v1\/requests\/[^/]+$/,
      methods: ["GET"],
      async handle(call, named): Promise<Answered> {
        const caller = await known(call, named);
        const id = call.path.split("/").at(-1) ?? "";
        const waitMs = Math.min(longestWaitMs, (Number(call.query.get("wait")) || 0) * 1000);
        const after = call.query.get("after") ?? undefined;
        const body = await stateOf(caller, id, behind, { waitMs, after, signal: call.signal });
        if (!body) throw new Problem(404, "There is no such request.");
        return { status: 200, body };
      },
    },
  ];
}
