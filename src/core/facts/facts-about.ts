import type { Appraiser } from "../../attestation/appraiser.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Markdown, md } from "../../messages/markdown.ts";
import type { SeenStatuses } from "../../monitor/status-records.ts";
import type { Command, Target } from "../../registry/define.ts";
import { upperFirst } from "../../text/letter-case.ts";
import type { SeenTarget } from "../permit/sight.ts";
import { ownerOf } from "../permit/refusal.ts";
import type { Journal } from "../request/journal.ts";
import { recentRequests } from "../request/lists.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { changeFacts, pinFacts } from "./change-facts.ts";
import {
  type Considered,
  type Fact,
  type FactQuery,
  type FactSource,
  type KnownTarget,
  mostUrgentFirst,
} from "./fact.ts";
import { freezeFacts } from "./freeze-facts.ts";
import { lastChangeFacts } from "./last-change-facts.ts";
import { requestFacts } from "./request-facts.ts";
import { statusFactsFrom } from "./status-facts.ts";

/** The newest open requests that are read. */
const mostOpen = 500;
const mostOnTarget = 20;

/** Who asks, and what they may know. */
export interface FactReader {
  /** Shows only requests that the reader sees. */
  journal: Pick<Journal, "recentIds" | "getMany" | "freezeState">;
  /** Whether the reader sees all of these targets, as they were and as they are called now. */
  sees(targets: readonly SeenTarget[]): Promise<boolean>;
  seesAll(): Promise<boolean>;
}

interface Asked {
  reader: FactReader;
  change?: Considered | undefined;
  isFresh?: boolean;
  tellsRecent?: boolean;
}

/** What is known of these targets, as far as the reader may know it, the most urgent first. */
export type FactsAbout = (
  targets: readonly KnownTarget[],
  query: Asked,
) => Promise<readonly Fact[]>;

/**
 * Reads the facts that outlast the end of a request, as far as the readers of its result see them: a
 * sentence each.
 */
export type FactsAfter = (
  request: StoredRequest,
  sees: FactReader["sees"],
) => Promise<readonly Markdown[]>;

/** Creates that function. A source that can't be read is left out, because no result waits for it. */
export const createFactsAfter =
  (on: { sources(): readonly FactSource[]; log: Log; now(): number }): FactsAfter =>
  async (request, sees) => {
    const read = on.sources().map(async ({ name, readAfter }): Promise<readonly Fact[]> => {
      try {
        const facts = (await readAfter?.(request, on.now())) ?? [];
        return await keepSeen(facts, ({ learnedOf }) => learnedOf, sees);
      } catch (error) {
        on.log.info("facts.unread", { source: name, why: messageOf(error) });
        return [];
      }
    });
    return mostUrgentFirst((await Promise.all(read)).flat()).map(({ text }) => text);
  };

/**
 * Creates the one function that says what is known now. It asks all sources at once. A source that
 * can't be read becomes a fact that says so.
 */
export function createFactsAbout(on: {
  appraiser: Pick<Appraiser, "pinsOf">;
  statuses: { readRecords(ids: readonly string[]): Promise<ReadonlyMap<string, SeenStatuses>> };
  commands: readonly Command[];
  /** The sources of features. */
  sources(): readonly FactSource[];
  log: Log;
  now(): number;
}): FactsAbout {
  const { commands, log, now } = on;
  const own = [
    requestFacts,
    statusFactsFrom(on.statuses),
    lastChangeFacts,
    changeFacts,
    pinFacts(on.appraiser),
  ];

  return async (targets, { reader, change, isFresh = false, tellsRecent = false }) => {
    const sees = await sightOfReader(reader);
    const seen = await keepSeen(targets, (target) => [target], sees);
    const query: FactQuery = {
      targets: seen,
      change,
      isFresh,
      tellsRecent,
      requests: requestsOf(reader),
      commands,
      now: now(),
    };
    const sources = [...own, freezeFacts(reader.journal), ...on.sources()];
    const read = sources.map(async ({ name, read: readSource }): Promise<readonly Fact[]> => {
      try {
        const facts = await keepSeen(
          await readSource(query),
          ({ about }) => about && [about],
          sees,
        );
        return await keepSeen(facts, ({ learnedOf }) => learnedOf, sees);
      } catch (error) {
        log.info("facts.unread", { source: name, why: messageOf(error) });
        return [unreadFact(name)];
      }
    });
    return mostUrgentFirst((await Promise.all(read)).flat());
  };
}

type Sees = FactReader["sees"];

/**
 * Whether the reader sees a target; undefined for a reader who sees everything. A project is looked
 * up once, however many VMs it has.
 */
async function sightOfReader(reader: FactReader): Promise<Sees | undefined> {
  if (await reader.seesAll()) return undefined;
  const known = new Map<string, Promise<boolean>>();
  const seesOne = async (target: SeenTarget) => {
    const { id, name } = ownerOf(target);
    // A project that is to be made is nobody's yet.
    if (target.id === "") return true;
    return known.getOrInsertComputed(`${id} ${name}`, () => reader.sees([target]));
  };
  return async (targets) => (await Promise.all(targets.map(seesOne))).every(Boolean);
}

async function keepSeen<T>(
  all: readonly T[],
  targetsOf: (entry: T) => readonly SeenTarget[] | undefined,
  sees: Sees | undefined,
): Promise<readonly T[]> {
  if (!sees) return all;
  const isSeen = await Promise.all(
    all.map(async (entry) => {
      const targets = targetsOf(entry);
      return targets === undefined || sees(targets);
    }),
  );
  return all.filter((_, index) => isSeen[index]);
}

function requestsOf({ journal }: FactReader): FactQuery["requests"] {
  let open: ReturnType<FactQuery["requests"]["open"]> | undefined;
  const known = new Map<string, ReturnType<FactQuery["requests"]["on"]>>();
  return {
    open: () => (open ??= recentRequests({ open: true, most: mostOpen }, journal)),
    on: (targetId) =>
      known.getOrInsertComputed(targetId, () =>
        recentRequests({ targetId, most: mostOnTarget }, journal),
      ),
  };
}

const unreadFact = (name: string): Fact => ({
  kind: "unread",
  severity: "warning",
  sign: "❔",
  text: md`${upperFirst(name)} can't be read now, so there may be more to know.`,
  unread: name,
});

/** One line for all sources that couldn't be read. Undefined when all could. */
export const unreadLine = (names: readonly string[]): Markdown | undefined =>
  names.length === 0
    ? undefined
    : md`❔ Not known, because it can't be read now: ${[...new Set(names)].join(", ")}.`;

/** The facts by the target that they are about, in the order of the first of each. */
export function factsByTarget(facts: readonly Fact[]): ReadonlyMap<Target, readonly Fact[]> {
  const about = facts.flatMap((fact) => (fact.about ? [{ fact, target: fact.about }] : []));
  const byId = Map.groupBy(about, ({ target }) => target.id);
  return new Map(
    [...byId.values()].flatMap((all) => {
      const [first] = all;
      return first ? [[first.target, all.map(({ fact }) => fact)] as const] : [];
    }),
  );
}
