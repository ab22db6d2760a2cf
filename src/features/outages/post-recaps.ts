import type { Config } from "../../config/config.ts";
import { batches } from "../../redis/batches.ts";
import { messageOf } from "../../errors.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import type { Message } from "../../messages/blocks.ts";
import type { RefusedInteraction } from "../../monitor/dependency-probe.ts";
import {
  channelOfTeam,
  policyPlaceOf,
  scopeOfChannel,
  seesUnder,
} from "../../core/permit/access.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import { topics } from "../../core/events/event.ts";
import type { Events } from "../../core/events/read-events.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import { boardOf } from "../../redis/board.ts";
import { type ChangeCommand, targetArgument } from "../../registry/define.ts";
import { type ChangeInvocation, targetWords } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { RequestRecord } from "../../core/request/record.ts";
import { hasNoCard, isDecidedElsewhere } from "../../core/cards/render-result.ts";
import { isGlob } from "../../text/glob.ts";
import type { OutageStore, Past } from "./outages.ts";
import { type Meanwhile, renderRecap } from "./render-recap.ts";
import type { State } from "../../core/request/stage.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";

/** Undelivered results delay the recap by at most this time. */
const drainMs = 3600_000;

/** The facts that decide what a channel may read in its recap. */
interface RecapView {
  config: Pick<Config, "policy">;
  /** The full inventory, not limited to a view. */
  inventory: Pick<Inventory, "findProject" | "seenIn">;
  commands: readonly ChangeCommand[];
}

interface RecapOptions extends RecapView {
  outages: OutageStore;
  store: Journal;
  events: Pick<Events, "recordsBetween" | "underTopic">;
  announce(notice: { id: string; channelId: string; message: Message }): Promise<boolean>;
  /** Shortest outage that counts (ms); the other times are derived from it. */
  outageMs: number;
  log: Log;
  at: ((point: "recap" | "recapped", outage: string) => Promise<void>) | undefined;
}

/**
 * Posts one recap per channel after an outage, once its requests have ended and their results are
 * posted. It is safe to stop anywhere: an outage stays on the list until every channel has its
 * recap, and posting is idempotent.
 */
export function recapWork(options: RecapOptions): PendingWork {
  const { outages, store, outageMs, log } = options;
  const lookAgainMs = 2 * reportEveryMs(outageMs);

  async function postRecap(outage: Past): Promise<void> {
    const { id } = outage;
    const ids = await touchedBy(outage, store);
    const places = await gather(outage, ids);
    const undelivered = await undeliveredAmong(ids);
    const ageMs = (await store.now()) - outage.until;
    let isWaiting = false;
    for (const [channelId, { requests, refused }] of places) {
      if (!isReady(requests, undelivered, ageMs)) {
        isWaiting = true;
        continue;
      }
      const meanwhile = await readMeanwhile(outage, channelId);
      const message = renderRecap(outage, requests, refused, options.commands, meanwhile);
      if (!message) continue;
      await options.at?.("recap", id);
      await options.announce({ id: `recap:${id}:${channelId}`, channelId, message });
      await options.at?.("recapped", id);
    }
    if (isWaiting) await outages.lookLater(outage, lookAgainMs);
    else await outages.forget(outage);
  }

  /** What the trail alone tells of the outage's time, as far as the channel may see it. */
  async function readMeanwhile({ since, until }: Past, channelId: string): Promise<Meanwhile> {
    if (isDirect(channelId)) return { events: [], unread: [] };
    const records = await options.events.recordsBetween(since, until);
    const scope = scopeOfChannel(options.config.policy, channelId);
    const read = await Promise.all(
      topics.map((topic) => options.events.underTopic(records, { topic, scope })),
    );
    return {
      events: read.flatMap(({ events }) => events).toSorted((a, b) => a.at - b.at),
      unread: read.flatMap(({ unread }) => unread),
    };
  }

  async function gather(outage: Past, ids: readonly string[]) {
    const places = new Map<string, { requests: StoredRequest[]; refused: RefusedInteraction[] }>();
    const at = (channelId: string) =>
      places.getOrInsertComputed(channelId, () => ({ requests: [], refused: [] }));
    for (const request of await store.getMany(ids)) {
      const channels = channelsOf(request).map((channel) =>
        recapChannel(request.record, channel, options),
      );
      for (const channelId of new Set(await Promise.all(channels)))
        at(channelId).requests.push(request);
    }
    const refused = outage.part === "redis" ? await outages.refused(outage.id) : [];
    for (const interaction of refused) {
      const words =
        interaction.words && (await shownWords(interaction.words, interaction.channelId, options));
      at(interaction.channelId).refused.push({ ...interaction, words });
    }
    return places;
  }

  /**
   * Finds the requests whose messages are still owed: their own ones, or the card that they share.
   */
  async function undeliveredAmong(ids: readonly string[]): Promise<Set<string>> {
    const undelivered = await store.outbox.among(ids);
    // Read the requests only now: a request leaves its own outbox only after its shared card is on
    // the outbox of shared cards.
    const requests = await store.getMany(ids);
    const shared = requests.map((request) => boardOf(request.delivered) ?? "");
    const pending = await store.sharedCards.outbox.among(shared);
    for (const [n, { record }] of requests.entries())
      if (pending.has(shared[n] ?? "")) undelivered.add(record.id);
    return undelivered;
  }

  /** Running requests get six times `outageMs` to end. Requests that need a person get none. */
  function isReady(
    requests: readonly StoredRequest[],
    undelivered: ReadonlySet<string>,
    ageMs: number,
  ): boolean {
    if (ageMs > drainMs) return true;
    const isEnded = ({ final, state }: StoredRequest) =>
      final || state === "unknown" || state === "draft";
    if (ageMs <= 6 * outageMs && !requests.every(isEnded)) return false;
    return !requests.some(({ record }) => undelivered.has(record.id));
  }

  return {
    pending: outages.pending,
    async handle(text) {
      const outage = outages.parseOutage(text);
      try {
        await postRecap(outage);
      } catch (error) {
        log.debug("outage.later", { reason: messageOf(error) });
        await outages.lookLater(outage, lookAgainMs);
      }
    },
  };
}

/** How often a process saves what it saw of its dependencies (ms). */
export const reportEveryMs = (outageMs: number): number => Math.min(2_000, outageMs / 10);

/** Requests made earlier ended before the outage, or have reminders. */
const lookBackMs = 24 * 3600_000;
const maxRequests = 5000;

/**
 * Finds the requests that an outage affected: created or moved during it, or in progress when it
 * began. The order is stable.
 */
export async function touchedBy(outage: Past, store: Journal): Promise<string[]> {
  const { since, until } = outage;
  const ids = await store.idsAskedBetween(since - lookBackMs, until, maxRequests);
  const touched: string[] = [];
  for (const batch of batches(ids)) {
    const requests = await store.getMany(batch);
    // Skip requests that ended before the outage: most did.
    const near = requests.filter(({ changedAt, final }) => !final || changedAt >= since);
    const histories = await Promise.all(near.map(({ record }) => store.history(record.id)));
    for (const [index, request] of near.entries())
      if (isTouched(request, histories[index] ?? [], outage)) touched.push(request.record.id);
  }
  return touched;
}

function isTouched(
  { record }: StoredRequest,
  history: readonly { at: number; state: string }[],
  { since, until }: Past,
): boolean {
  if (record.createdAt >= since) return true;
  if (history.some(({ at }) => at >= since && at <= until)) return true;
  const first: State = record.approval ? "draft" : "authorized";
  const state = history.findLast(({ at }) => at < since)?.state ?? first;
  return ["authorized", "sending", "accepted", "unclear"].includes(state);
}

/**
 * The channels that hear about a request: the one of its card, the one it was requested in, and its
 * team's.
 */
function channelsOf(request: StoredRequest): readonly string[] {
  const { record, delivered } = request;
  if (hasNoCard(request)) return [];
  const { requestMessage: asked, card, closedBy, isTeamClosed } = delivered;
  const isElsewhere = isDecidedElsewhere(request);
  const here = (isElsewhere ? asked : card)?.channelId ?? record.channelId;
  const team = isTeamClosed ? undefined : record.teamChannel;
  const all = [closedBy === undefined ? here : undefined, team];
  return [...new Set(all.filter((channel) => channel !== undefined))];
}

/** A direct message has only one reader, who made the request. */
const isDirect = (channelId: string) => channelId.startsWith("D");

/**
 * The channel whose recap names a request: the given one, or the team's if the given one may not
 * see the target.
 */
export async function recapChannel(
  { target }: Pick<RequestRecord, "target">,
  channelId: string,
  { config: { policy }, inventory }: RecapView,
): Promise<string> {
  const scope = scopeOfChannel(policy, channelId);
  if (!scope || isDirect(channelId)) return channelId;
  const { id, name } = ownerOf(target);
  const known = id === "" ? undefined : await inventory.findProject(id, { onlyKnown: true });
  const nameNow = known && "record" in known ? known.record.name : undefined;
  if (seesUnder(scope, id, [name, nameNow])) return channelId;
  return channelOfTeam(policy, policyPlaceOf(policy, { id, name: nameNow ?? name })) ?? channelId;
}

/**
 * The words of a refused command, as its channel may read them: unchanged if the channel may see
 * everything they name, otherwise without names. Slack shows a slash command to nobody else.
 */
export async function shownWords(
  words: string,
  channelId: string,
  view: RecapView,
): Promise<string> {
  const scope = scopeOfChannel(view.config.policy, channelId);
  if (!scope || isDirect(channelId)) return words;
  const [, sign = "", text = ""] = /^(\/|@gatehouse )?(.*)$/s.exec(words) ?? [];
  const parsed = parseCommand(text, view.commands);
  if ("refusal" in parsed) return `${sign}…`;
  const inventory = view.inventory.seenIn(async () => scope);
  const seesName = (name: string) => scope.sees({ id: "", name });
  const isTold = await namesOnly(parsed as ChangeInvocation, inventory, seesName).catch(
    () => false,
  );
  return isTold ? words : `${sign}${parsed.command.name} …`;
}

async function namesOnly(
  invocation: Pick<ChangeInvocation, "command" | "input">,
  inventory: Inventory,
  seesName: (projectName: string) => boolean,
): Promise<boolean> {
  const { command, input } = invocation;
  const { name } = input;
  // The name that a project gets, as a new one or by renaming.
  if (command.on !== "vm" && typeof name === "string" && !seesName(name)) return false;
  const kind = targetArgument(command)?.target;
  for (const word of targetWords(invocation).flatMap((list) => list.split(",").filter(Boolean))) {
    if (kind === "vm" && isGlob(word)) {
      if ((await inventory.matchVms(word)).length === 0) return false;
      continue;
    }
    const find = kind === "vm" ? inventory.findVm : inventory.findProject;
    if ("unknown" in (await find(word, { onlyKnown: true }))) return false;
  }
  return true;
}
