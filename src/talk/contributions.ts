import type { RequestRecord } from "../core/request/record.ts";
import type { Markdown } from "../messages/markdown.ts";
import type { ChangeCommand, DialogFacts, Target } from "../registry/define.ts";
import type { Input } from "../registry/invocation.ts";

/** A request that was just made, as features are told of it. */
export type MadeRequest = Pick<
  RequestRecord,
  "id" | "origin" | "breakGlass" | "command" | "target" | "createdAt"
>;

/** A change that a person considers. Nothing is requested yet. */
export interface Considered {
  command: ChangeCommand;
  targets: readonly Target[];
  input: Input;
  /** What was just read of the one target. Undefined where nothing was. */
  facts?: DialogFacts | undefined;
}

/** What is known of a target and matters to a change of it. */
export interface Concern {
  target: Target;
  /** Follows the target's name, without full stop: `is locked: …`. */
  why: Markdown;
  /**
   * `fails`: the change would not be made. `halts`: the VM fails attestation, before the change or
   * because of it, so a rollout stops there, however many failures it allows. `note`: neither.
   */
  effect: "fails" | "halts" | "note";
}

export interface KnownConcerns {
  concerns: readonly Concern[];
  /** Names of what couldn't be read. */
  unread: readonly string[];
}
