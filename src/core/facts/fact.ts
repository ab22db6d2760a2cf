import type { Markdown } from "../../messages/markdown.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
import { type Severity, severities } from "../../messages/severity.ts";
import type { ChangeCommand, Command, DialogFacts, Target } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import type { SeenTarget } from "../permit/sight.ts";
import type { StoredRequest } from "../request/stored-request.ts";

/** Kinds of equal severity in the order in which people read them. Others follow. */
const kindOrder = [
  "change",
  "outcome",
  "status",
  "attestation",
  "unverified",
  "alert",
  "stopped",
  "freeze",
  "under way",
];

/** A thing that is known now about a target. */
export interface Fact {
  /** `status`; a feature names its own: `alert`. Readers choose facts and their order by it. */
  kind: string;
  /** Undefined for what is about all changes, like a freeze. */
  about?: Target | undefined;
  severity: Severity;
  sign: string;
  /** One sentence that names the target and stands alone. */
  text: Markdown;
  /** Further sentences, which follow `text`. */
  detail?: Markdown | undefined;
  /** Since when it has been so (ms). */
  since?: number | undefined;
  /** The request that it is about, or that explains it. */
  request?: string | undefined;
  /** Says how the fact affects such a change of the target. Without it, or if undefined, it doesn't matter to one. */
  blocks?(command: ChangeCommand): Blocking | undefined;
  /** The next step, where no button takes it. */
  next?: Markdown | undefined;
  /** Commands that end it, the most useful first. */
  ways?: readonly Way[];
  /**
   * The target as it was when this was learned, perhaps in other projects. Only who sees it in all of
   * them is told.
   */
  learnedOf?: readonly SeenTarget[] | undefined;
  /** The name of the source that couldn't be read: there may be more to know. */
  unread?: string;
}

/**
 * `fails`: the change would not be made. `halts`: the VM fails attestation, before the change or
 * because of it, so a rollout stops there, however many failures it allows. `note`: neither.
 */
export type Blocking = "fails" | "halts" | "note";

/** A button that a reader gets who may run `command`, a dotted name. */
export interface Way {
  command: string;
  button: ButtonSpec;
  /** It sends nothing, so it works during a freeze too. */
  isRecord?: boolean;
}

/** A change that a person considers. Nothing is requested yet. */
export interface Considered {
  command: ChangeCommand;
  input: Input;
  /** The one target as it was just read. Undefined where it wasn't. */
  facts?: DialogFacts | undefined;
}

/** A target with its status as it was read last. */
export interface KnownTarget extends Target {
  /** When the compute service last changed its record, where that was just read. */
  updatedAt?: string | undefined;
}

/** A question about targets. */
export interface FactQuery {
  /** Only targets that the reader sees. */
  targets: readonly KnownTarget[];
  /** The change that the reader considers. Some facts matter to it alone. */
  change: Considered | undefined;
  /** The reader waits some seconds for what is read anew. */
  isFresh: boolean;
  /** The reader also tells what was done to a target lately. */
  tellsRecent: boolean;
  /** The requests that the reader sees, newest first. Each list is read once for all sources. */
  requests: {
    /** Requests that haven't ended, or whose outcome is unknown. */
    open(): Promise<readonly StoredRequest[]>;
    /** The newest ones on a VM or a project. */
    on(targetId: string): Promise<readonly StoredRequest[]>;
  };
  commands: readonly Command[];
  /** Redis's time (ms). */
  now: number;
}

/** Knows facts of its own kinds. */
export interface FactSource {
  /** What isn't known when this can't be read: `open consoles`. */
  name: string;
  /** Reads only. Rejects when it can't say. */
  read(query: FactQuery): Promise<readonly Fact[]>;
  /** Facts that outlast the end of this request. Its result tells them, too. */
  readAfter?(request: StoredRequest, now: number): Promise<readonly Fact[]>;
}

/** A source reads the requests behind the troubles of this many targets at most. */
export const mostExplained = 20;

/** The most urgent first. */
export const mostUrgentFirst = (facts: readonly Fact[]): readonly Fact[] =>
  facts.toSorted(
    (a, b) =>
      severities.indexOf(a.severity) - severities.indexOf(b.severity) || placeOf(a) - placeOf(b),
  );

function placeOf({ kind }: Fact): number {
  const place = kindOrder.indexOf(kind);
  return place < 0 ? kindOrder.length : place;
}

/** Facts that say that something is wrong, and not merely different. */
export const isTrouble = ({ severity, unread }: Fact): boolean =>
  unread === undefined && (severity === "alarm" || severity === "warning");

export const isFrozenBy = (facts: readonly Fact[]): boolean =>
  facts.some(({ kind }) => kind === "freeze");

/** The names of the sources that couldn't be read. */
export const unreadIn = (facts: readonly Fact[]): readonly string[] =>
  facts.flatMap(({ unread }) => unread ?? []);

const blockingOrder = { fails: 0, halts: 1, note: 2 } as const;

/** What matters to this change of targets, and what it does to it; what stops it first. */
export const mattersTo = (
  command: ChangeCommand,
  facts: readonly Fact[],
): readonly MatteringFact[] =>
  facts
    .flatMap((fact): MatteringFact[] => {
      const blocking = fact.blocks?.(command);
      return blocking && fact.about ? [{ ...fact, about: fact.about, blocking }] : [];
    })
    .toSorted((a, b) => blockingOrder[a.blocking] - blockingOrder[b.blocking]);

export interface MatteringFact extends Fact {
  about: Target;
  blocking: Blocking;
}
