import { hash } from "node:crypto";
import { workOnRequests } from "../../log/traces.ts";
import { type Board, boardOf, parseBoard } from "../../redis/board.ts";
import type { Fields } from "../../redis/redis.ts";
import type { Failpoints } from "../failpoints.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { type Member, renderSharedCard, renderSharedResult } from "../cards/render-card.ts";
import type { Owes, Source } from "./deliver.ts";
import { type Owed, type Relocation, insideMark, isSaid, paced } from "./post-once.ts";
import type { requestSource } from "./requests.ts";

/** A card that is posted. */
type Shown = NonNullable<Board["delivered"]["card"]>;

/**
 * Creates the source of the messages of shared cards: a card that is edited, and in its thread one
 * result for each requester, once all of that person's requests have ended. A card with one
 * request, or in a closed place, dissolves, and its requests get messages of their own.
 */
export function sharedCardSource(
  options: Pick<
    Parameters<typeof requestSource>[0],
    "store" | "commands" | "offered" | "attestationNote" | "factsAfter" | "onTold"
  > & { editMs?: number; at?: Failpoints<"shared-posting" | "shared-posted"> },
): Source {
  const { store } = options;
  const { sharedCards } = store;

  async function prepareSharedCard(id: string, fields: Fields): Promise<Owes | undefined> {
    const shared = parseBoard(id, fields);
    if (!shared) return undefined;
    const { createdAt, revision, delivered } = shared;
    const members = (await store.getMany(shared.memberIds)).flatMap(memberOf);
    const staying = members.filter(({ request }) => boardOf(request.delivered) === id);
    if (shared.isClosed) {
      const postedResults = resultsOf(staying, delivered.marks).filter(({ key }) =>
        isSaid(delivered.marks[key]),
      );
      const stays = new Set(postedResults.flatMap(({ members: group }) => group));
      for (const member of staying)
        if (!stays.has(member)) await sharedCards.leave(idOf(member), id, store.outbox);
      return { createdAt, revision, messages: [] };
    }
    const mark = delivered.marks["card"] ?? "";
    if (mark === "" && shared.memberIds.length === 1 && (await sharedCards.close(id, 1)))
      return prepareSharedCard(id, await sharedCards.outbox.get(id));
    if (delivered.card) await linkMembersTo(delivered.card, staying);
    const work = workOnRequests(staying.map(({ request }) => request.record));
    return {
      createdAt,
      revision,
      work,
      ...messagesOfSharedCard(shared, members, staying, await store.now()),
    };
  }

  /** Stores the shared card as the card of its requests, so that links to them lead to it. */
  async function linkMembersTo(
    { channelId, ts }: Shown,
    staying: readonly Member[],
  ): Promise<void> {
    for (const { request } of staying)
      if (request.delivered.card === undefined)
        await store.outbox.remember(request.record.id, { card: `${channelId} ${ts}` });
  }

  /**
   * Returns `addFacts`, and the function that reports that Slack has accepted these results, with
   * the notes that were added last.
   */
  function createTelling(members: readonly Member[]) {
    let toldMembers = members;
    return {
      async addFacts(groups: readonly (readonly Member[])[]): Promise<Member[][]> {
        const noted = await Promise.all(groups.map(addFacts));
        toldMembers = noted.flat();
        return noted;
      },
      onSaid: (channelId: string) => options.onTold(toldMembers, channelId),
    };
  }

  const memberOf = (request: StoredRequest): Member[] => {
    const command = options.commands.find(({ name }) => name === request.record.command);
    return command ? [{ request, command }] : [];
  };

  function messagesOfSharedCard(
    shared: Board,
    members: readonly Member[],
    staying: readonly Member[],
    now: number,
  ): Pick<Owes, "messages" | "waitMs"> {
    const { place, delivered } = shared;
    const { card: standsAt, marks } = delivered;
    const results = resultsOf(staying, marks);
    const haveAllEnded = staying.length > 0 && staying.every(({ request }) => request.final);
    const onClosed = async (): Promise<Relocation> =>
      (await sharedCards.close(shared.id)) ? "moved" : "nowhere";
    const shown = renderSharedCard(members);
    const print = hash("sha256", JSON.stringify(shown)).slice(0, 16);
    const looks = {
      version: print,
      look: haveAllEnded ? "whole" : "running",
      isLast: haveAllEnded,
    };
    const { shows, waitMs } = paced(delivered, looks, now, options.editMs);
    const threadTs = place.threadTs ?? standsAt?.ts;
    const isUnbegun = ({ key }: Result) => ["", insideMark("card")].includes(marks[key] ?? "");
    const marksOf = (some: readonly Result[]) =>
      Object.fromEntries(some.map(({ key }) => [key, marks[key] ?? ""]));
    const whole = createTelling(results.flatMap(({ members: group }) => group));
    const card: Owed = {
      key: "card",
      mark: marks["card"],
      place,
      render: async () =>
        haveAllEnded && !isSaid(marks["card"])
          ? renderSharedCard(
              members,
              await whole.addFacts(results.map(({ members: group }) => group)),
            )
          : shown,
      shows: { ...shows, tellsEnd: haveAllEnded && delivered.formerCard === undefined },
      // The card replaces many cards, so it goes before single ones.
      urgency: "result",
      covers: haveAllEnded ? results.map(({ key }) => key) : [],
      takesIn: haveAllEnded ? marksOf(results.filter(isUnbegun)) : {},
      resultsOf: haveAllEnded ? results.flatMap(({ members: group }) => group.map(idOf)) : [],
      onSaid: haveAllEnded ? whole.onSaid : undefined,
      onClosed,
      isFragile: true,
    };
    const replies = groupIntoReplies(results, marks).map(([first, ...others]): Owed => {
      const all = [first, ...others].map(({ members: group }) => group);
      const telling = createTelling(all.flat());
      return {
        key: first.key,
        mark: marks[first.key],
        place: { channelId: standsAt?.channelId ?? place.channelId, threadTs },
        render: async (at) =>
          renderSharedResult(await telling.addFacts(all), {
            isBelowCard: at?.threadTs !== undefined,
            commands: options.offered,
          }),
        covers: others.map(({ key }) => key),
        takesIn: marksOf(others),
        // Who joins meanwhile belongs to the result of its requester, which then has another key.
        dependsOn: { size: String(shared.memberIds.length) },
        resultsOf: all.flat().map(idOf),
        onSaid: telling.onSaid,
        onClosed,
      };
    });
    return { messages: [card, ...replies], waitMs };
  }

  /** Adds what else is known once requests have ended. */
  async function addFacts(members: readonly Member[]): Promise<Member[]> {
    const all = members.map(async (member) => ({
      ...member,
      note: await options.attestationNote(member.request, member.command),
      goesOn: await options.factsAfter(member.request),
    }));
    return Promise.all(all);
  }

  return {
    outbox: sharedCards.outbox,
    owedSince: "createdAt",
    prepareMessages: prepareSharedCard,
    at: async (point, id) => options.at?.(`shared-${point}`, id),
  };
}

const idOf = ({ request }: Member) => request.record.id;

/** A result for one requester: its key, and the requests that it tells. */
interface Result {
  key: string;
  members: Member[];
}

/**
 * Groups results into replies. The results that several people wait for at the same time are one
 * reply, because a channel takes one message a second. A result of a single request has its own
 * reply, because it has its own buttons. A reply whose post was begun keeps its results, and a
 * result in a card whose post was begun has no reply.
 */
function groupIntoReplies(
  results: readonly Result[],
  marks: Readonly<Record<string, string>>,
): [Result, ...Result[]][] {
  const isBegun = (key: string) => (marks[key] ?? "") !== "" && !isSaid(marks[key]);
  const begun = ["card", ...results.map(({ key }) => key)].filter(isBegun);
  const inside = (key: string) => results.filter((result) => marks[result.key] === insideMark(key));
  const taken = new Set(begun.flatMap(inside));
  const isWaiting = ({ key, members: group }: Result) =>
    (marks[key] ?? "") === "" && group.length > 1;
  const waiting = results.filter(isWaiting);
  return results.flatMap((result): [Result, ...Result[]][] => {
    if (taken.has(result)) return [];
    if (!isWaiting(result)) return [[result, ...inside(result.key)]];
    return result === waiting[0] ? [[result, ...waiting.slice(1)]] : [];
  });
}

/**
 * Returns the results for the requesters: those whose post was begun, and one of the remaining
 * requests for each requester whose requests have all ended. The key of a result holds the number
 * of its last request, so that all processes find the same key.
 */
function resultsOf(staying: readonly Member[], marks: Readonly<Record<string, string>>): Result[] {
  const byRequester = Map.groupBy(staying, ({ request }) => request.record.requester.id);
  return [...byRequester].flatMap(([requesterId, all]) => {
    const results: Result[] = [];
    let group: Member[] = [];
    for (const [n, member] of all.entries()) {
      group.push(member);
      const key = `ended:${requesterId}:${n + 1}`;
      const isBegun = (marks[key] ?? "") !== "";
      const isLast = n === all.length - 1;
      if (isBegun || (isLast && all.every(({ request }) => request.final))) {
        results.push({ key, members: group });
        group = [];
      }
    }
    return results;
  });
}
