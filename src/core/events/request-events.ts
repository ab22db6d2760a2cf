import { recordedText } from "../../audit/render.ts";
import type { AuditEntry } from "../../audit/read-audit.ts";
import { md, when } from "../../messages/markdown.ts";
import { showRequest } from "../../registry/command-buttons.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { clockWords } from "../../text/time-words.ts";
import { aboutRequest } from "../cards/asking.ts";
import { outcomeOf, proofOf, signs } from "../cards/render-result.ts";
import { actIdOf, tellAct, tellGone, tellRollout, wasDone } from "../cards/tell-act.ts";
import { approvalsIn } from "../permit/votes.ts";
import { lowerFirst } from "../../text/letter-case.ts";
import type { Journal } from "../request/journal.ts";
import { requestsOf } from "../request/lists.ts";
import { callOf, deciderOf, isAlready } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import type { Deed, Event, EventKind, EventSource } from "./event.ts";

/** Records about a request, all with its ID. */
const recordKinds = ["request", "review-signed", "alarm", "late-effect"];

/** The kinds of requests. Each request is of the first that fits. */
const kinds = {
  emergency: { words: ["break-glass use", "break-glass uses"], weight: "decision" },
  recorded: {
    words: ["outcome recorded by a person", "outcomes recorded by a person"],
    weight: "decision",
  },
  turnedAway: { words: ["request not approved", "requests not approved"], weight: "decision" },
  guarded: {
    words: ["restore, deletion, or approved change", "restores, deletions, and approved changes"],
    weight: "decision",
  },
  failed: { words: ["failed change", "failed changes"], weight: "decision" },
  unconfirmed: { words: ["unconfirmed change", "unconfirmed changes"], weight: "decision" },
  change: { words: ["change", "changes"], weight: "routine" },
  unmade: {
    words: ["request that changed nothing", "requests that changed nothing"],
    weight: "detail",
  },
} as const satisfies Record<string, EventKind>;

export const rolloutKind: EventKind = { words: ["rollout", "rollouts"], weight: "decision" };

function kindOf(request: StoredRequest, command: ChangeCommand | undefined): EventKind {
  const { record, state, stage, votes } = request;
  if (record.breakGlass === true) return kinds.emergency;
  if (deciderOf(stage) !== undefined && state !== "cancelled") return kinds.recorded;
  if (state === "denied" || (state === "expired" && record.approval)) return kinds.turnedAway;
  if (state === "failed") return kinds.failed;
  if (state !== "done") return kinds.unmade;
  if (command?.class === "destroy" || approvalsIn(votes).length > 0) return kinds.guarded;
  if (!wasDone(request, command)) return kinds.unconfirmed;
  // A red sign must not disappear among green ones.
  return outcomeOf(request, command).sign === signs.done ? kinds.change : kinds.failed;
}

/** `✅ *olivia* restarted `, of a change that went well. */
const deedOf = ({ record }: StoredRequest, { say }: ChangeCommand): Deed => ({
  begin: md`${signs.done} *${record.requester.name}* ${lowerFirst(say.done)}`,
  target: record.target.name,
});

/** An event for each request, with its safety snapshot, or for each rollout. */
export function requestEvents(on: {
  store: Pick<Journal, "getMany">;
  changes: readonly ChangeCommand[];
  /** The records of these kinds from a time on (ms), oldest first. */
  recordsSince(at: number, recordKinds: readonly string[]): Promise<readonly AuditEntry[]>;
}): EventSource {
  const { store, changes, recordsSince } = on;

  const commandOf = ({ record }: StoredRequest) =>
    changes.find((command) => command.name === record.command);

  function eventOf(request: StoredRequest): Omit<Event, "id" | "records"> {
    const { record, final, changedAt } = request;
    const command = commandOf(request);
    const kind = kindOf(request, command);
    return {
      kind,
      at: happenedAt(request),
      endedAt: final ? changedAt : undefined,
      text: tellAct(request, command),
      ...(kind === kinds.change && command ? { deed: deedOf(request, command) } : {}),
      proof: md`${proofOf(request)}${final ? md` Ended ${when(changedAt)}.` : ""}`,
      button: showRequest(record.id, `${aboutRequest(record)}, ${timeOf(record.createdAt)}`),
    };
  }

  /** A rollout by its requests alone. What it has not begun is told by its feature. */
  function rolloutEvent(
    first: StoredRequest,
    requests: readonly StoredRequest[],
  ): Omit<Event, "id" | "records"> {
    const last = Math.max(...requests.map(({ changedAt }) => changedAt));
    const { requester, command } = first.record;
    const isOver = requests.every(({ final }) => final);
    return {
      kind: rolloutKind,
      at: Math.min(...requests.map(happenedAt)),
      endedAt: isOver ? last : undefined,
      text: tellRollout({ requester, command, requests, isOver }, commandOf(first)),
      proof: isOver ? md`Ended ${when(last)}.` : undefined,
    };
  }

  return {
    name: "requests",
    recordKinds,
    async read(entries, sight) {
      const all = await sight.only(
        requestsOf(entries.map(requestIdOf), store),
        ({ record }) => record.target,
      );
      const oldest = Math.min(...all.map(({ record }) => record.createdAt));
      // A request that was made earlier has earlier records, too.
      const isWhole = sight.isExcerpt === true || oldest >= (entries[0]?.at ?? oldest);
      const read = isWhole ? entries : await recordsSince(oldest, recordKinds);
      const parents = new Map(all.map((request) => [request.record.id, actIdOf(request)]));
      const recordsOf = Map.groupBy(read, (entry) => parents.get(requestIdOf(entry)));
      const shown = all.filter(
        ({ record, stage }) => record.origin.kind !== "safety" && !isAlready(stage),
      );
      const events = [...Map.groupBy(shown, actIdOf)].flatMap(([id, some]) => {
        const [first] = some;
        if (!first) return [];
        const isOne = first.record.origin.kind !== "rollout";
        const event = isOne ? eventOf(first) : rolloutEvent(first, some);
        return { ...event, id, records: idsOf(recordsOf.get(id) ?? []) };
      });
      return sight.seesAll ? [...events, ...goneEvents(entries, parents)] : events;
    },
  };
}

/**
 * When a request happened (ms): when its call was sent, or without one when it ended. One that is
 * open happened when it was made.
 */
function happenedAt({ record, stage, final, changedAt }: StoredRequest): number {
  return callOf(stage)?.sentAt ?? (final ? changedAt : record.createdAt);
}

/** Requests of which the trail knows, and which are no longer kept. */
function goneEvents(
  entries: readonly AuditEntry[],
  kept: ReadonlyMap<string, string>,
): readonly Event[] {
  const gone = entries.filter((entry) => !kept.has(requestIdOf(entry)));
  return [...Map.groupBy(gone, requestIdOf)].flatMap(([id, some]) => {
    const [first] = some;
    if (!first) return [];
    const text = tellGone(id, some);
    return [
      {
        id,
        kind: kinds.unmade,
        at: first.at,
        endedAt: some.at(-1)?.at,
        text,
        records: idsOf(some),
      },
    ];
  });
}

/** Tells apart by ear two requests of the same person on one VM. */
const timeOf = (at: number) => `${clockWords(at, "UTC", { hasSeconds: true })} UTC`;

const requestIdOf = ({ record }: AuditEntry): string => recordedText(record["request"]);
const idsOf = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id);
