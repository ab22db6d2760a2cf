import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import { type Owed, isSaid } from "../../core/deliver/post-once.ts";
import { type Alerts, type StoredAlert, detailsOf, isFiring } from "./alerts.ts";
import type { ChannelCalls } from "./channel-calls.ts";
import { type View, renderCall } from "./render-alert.ts";
import { highestRank } from "./severity-rank.ts";
import { calledFor, sourcesSection } from "./sources.ts";

/** The key of the message that called a person or a group for this firing of an alert group. */
const callFor = (who: string, firing: number) => `call:${who}${firing > 1 ? ` ${firing}` : ""}`;

/** Somebody whom no message has called yet. `key` is that of the message that will. */
interface Uncalled {
  who: string;
  key: string;
  rank: number;
  urgentAt: number;
}

/** Whom a message calls. */
interface Calls {
  whom: readonly string[];
  /** Their keys. */
  keys: readonly string[];
  /** Notes that the message was posted. */
  onSaid(): void;
}

/** Creates what decides whom the messages of alerts call: the people and groups of the source. */
export function createAlertCalls(options: {
  alerts: Pick<Alerts, "now" | "outbox">;
  calls: ChannelCalls;
  config: { readonly policy: Policy };
}) {
  const { alerts } = options;

  /** The people and groups whom the group's source calls for what fires now, each with the rank. */
  function calledBy({ record: { source, group } }: StoredAlert): ReadonlyMap<string, number> {
    const sources = sectionOf(options.config.policy, sourcesSection);
    const severities = detailsOf(group).flatMap((detail) =>
      isFiring(detail) ? detail.severity : [],
    );
    const rule = Object.hasOwn(sources, source) ? sources[source] : undefined;
    return rule ? calledFor(rule, severities) : new Map();
  }

  /**
   * Leaves out whom another group of the channel calls for this one, too, and notes that on the
   * subject. `isWaiting`: another group is about to call somebody.
   */
  async function claimed<T extends Uncalled>(
    id: string,
    uncalled: readonly T[],
    channelId: string,
    own: readonly string[],
  ) {
    const wishes = uncalled.map(async (call) => ({
      ...call,
      channelId,
      claim: await options.calls.claim({ ...call, channelId }, own),
    }));
    const all = await Promise.all(wishes);
    const made = all.filter(({ claim }) => claim === "made");
    const marks = Object.fromEntries(made.map(({ key }) => [`said:${key}`, "together"]));
    if (made.length > 0) await alerts.outbox.remember(id, marks);
    const calling = all.filter(({ claim }) => claim === "mine");
    return { calling, isWaiting: all.some(({ claim }) => claim === "waiting") };
  }

  function callsBy(id: string, calling: readonly (Uncalled & { channelId: string })[]): Calls {
    const note = async () => {
      const now = await alerts.now();
      await Promise.all(calling.map((call) => options.calls.note(call, id, now)));
    };
    return {
      whom: [...new Set(calling.map(({ who }) => who))],
      keys: [...new Set(calling.map(({ key }) => key))],
      // Without the note, the claim runs out, and another group calls once more.
      onSaid: () => void note().catch(() => undefined),
    };
  }

  /**
   * The message that calls those whom no message has called yet: for an alert that got more severe
   * after its card was posted, and for an overview.
   */
  function callsOwed(
    { whom, keys, onSaid }: Calls,
    marks: Readonly<Record<string, string>>,
    place: Owed["place"],
    views: () => Promise<readonly View[]>,
  ): Owed[] {
    const [first, ...others] = keys;
    if (first === undefined) return [];
    return [
      {
        key: first,
        mark: marks[first],
        place,
        render: async () => renderCall(whom, await views()),
        covers: others,
        onSaid,
        turn: "call",
        urgency: "result",
      },
    ];
  }

  /** Whom the card, as it is posted, mentions. One that is posted again elsewhere mentions nobody. */
  function calledOnCard(alert: StoredAlert): readonly string[] {
    const { card, marks } = alert.delivered;
    return [...calledBy(alert).keys()].filter((who) => marks[callFor(who, 1)] === card?.ts);
  }

  /** Whom no message of this group has called for this firing. */
  function uncalledOnCard(alert: StoredAlert): readonly Uncalled[] {
    const { firings, urgentAt } = alert.record;
    return [...calledBy(alert)]
      .map(([who, rank]) => ({ who, rank, urgentAt, key: callFor(who, firings) }))
      .filter(({ key }) => !isSaid(alert.delivered.marks[key]));
  }

  return { calledOnCard, uncalledOnCard, uncalledOnOverview, claimed, callsBy, callsOwed };

  /**
   * Whom the thread of an overview hasn't called for this group. One call is for all groups that
   * are as severe; a group that fires again is called for anew.
   */
  function uncalledOnOverview(
    alert: StoredAlert,
    marks: Readonly<Record<string, string>>,
  ): (Uncalled & { alert: string })[] {
    const { firings, urgentAt } = alert.record;
    const isFirst = firings === 1;
    return [...calledBy(alert)].flatMap(([who, rank]) => {
      const keyAt = (n: number) => `${callFor(who, 1)} rank ${n}`;
      const key = isFirst ? keyAt(rank) : `${callFor(who, firings)} ${alert.id}`;
      const keys = isFirst ? range(rank, highestRank).map(keyAt) : [key];
      const isCalled = keys.some((callKey) => isSaid(marks[callKey]));
      return isCalled ? [] : [{ alert: alert.id, who, rank, key, urgentAt }];
    });
  }
}

const range = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);
