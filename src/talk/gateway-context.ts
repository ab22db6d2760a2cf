import type { SeenTarget } from "../core/permit/sight.ts";
import type { AfterNote } from "../attestation/render-attestation.ts";
import type { Surroundings } from "../commands/context.ts";
import { UserError } from "../errors.ts";
import type { GatehouseFact } from "../core/facts/gatehouse-fact.ts";
import type { FactReader, FactsAfter } from "../core/facts/facts-about.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import { type ChangeCommand, type Command, dottedName, requestable } from "../registry/define.ts";
import type { Input, Person } from "../registry/invocation.ts";
import type { Journal } from "../core/request/journal.ts";
import type { ButtonOrigin } from "../core/request/origin.ts";
import type { Announce, AnswerNotices } from "../core/deliver/notices.ts";
import type {
  Actor,
  Interaction,
  Press,
  Reply,
  SubmissionResult,
  SuggestRequest,
  Suggestion,
  ViewSubmission,
} from "../slack/receive/interaction.ts";
import type { Web } from "../slack/web.ts";
import type { MadeRequest } from "./contributions.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";

/** Everything that commands, presses and forms answer from, as the acting person may see it. */
export interface GatewayContext extends Surroundings {
  policyVersion: string;
  /**
   * Says why this process may change nothing now (`operate/policy-keeper.ts`); undefined when it
   * may.
   */
  standstill(): string | undefined;
  store: Journal;
  web: Web;
  /** Address of Slack's API. Files are uploaded only to its hosts. */
  apiUrl: string;
  /** Rejects when Slack can't tell who the person is. */
  person(userId: string, teamId: string, options?: { fresh?: boolean }): Promise<Person>;
  /**
   * Reads the members of the groups among these entries. The result is undefined for a group that
   * can't be read.
   */
  membersOf(
    entries: readonly string[],
  ): Promise<(groupId: string) => readonly string[] | undefined>;
  /**
   * Whether the acting person may see all of these targets; false for an empty list when views are
   * limited.
   */
  sees(targets: readonly SeenTarget[]): Promise<boolean>;
  /** Whether the acting person sees every VM and project. */
  seesAll(): Promise<boolean>;
  /** Facts about Gatehouse itself that count the VMs of this inventory; all VMs by default. */
  status(inventory?: Inventory): Promise<readonly GatehouseFact[]>;
  announce: Announce;
  answerNotices: AnswerNotices;
  /**
   * What attestation says about the VM of a request that has ended, so that a result never hides
   * it.
   */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  /** Reads the facts that outlast the end of a request. */
  factsAfter: FactsAfter;
  /** What features add to conversations. */
  contributed: Contributions;
  log: Log;
}

/** An act of a person in Slack, the ways to answer it, and what this person may see. */
export interface Act<I = Interaction> {
  interaction: I;
  reply: Reply;
  gateway: GatewayContext;
  /**
   * The button that a request of this act belongs to: on a request, an alert or a proposal.
   * Undefined for everything else.
   */
  origin?: ButtonOrigin;
}

/** An act before its ack, when the only possible answer is a form with errors. */
export type BeforeAck<I = Interaction> = Omit<Act<I>, "reply">;

/**
 * Handles a press of a button. The button's value only names things; what is allowed is decided
 * now.
 */
export type PressHandler = (act: Act<Press>, value: Input) => Promise<unknown>;

/**
 * Handles a submitted form. `beforeAck` runs while errors can still be shown on the form, and keeps
 * it open by them; it may already carry the act out. `afterAck` has more time, and a channel for its
 * answer.
 */
export interface FormHandler {
  beforeAck?(act: BeforeAck<ViewSubmission>): Promise<SubmissionResult | undefined>;
  afterAck?(act: Act<ViewSubmission>): Promise<void>;
}

/**
 * Loads options of a select while a person types. It is called only for people who may see names.
 */
export type Picker = (
  request: SuggestRequest,
  gateway: GatewayContext,
) => Promise<readonly Suggestion[]>;

/** What features add to conversations. Code in this layer knows no feature by name. */
export interface Contributions {
  /** Keyed by action, or by the word before the colon to handle all actions that begin with it. */
  presses: Readonly<Record<string, PressHandler>>;
  /** Keyed by the form's callback ID. */
  forms: Readonly<Record<string, FormHandler>>;
  /** Keyed by the name that an argument's `picker` gives. */
  pickers: Readonly<Record<string, Picker>>;
  /** Actions of buttons that one person answers for all, wherever they stand. */
  answeredForAll: readonly string[];
  /**
   * Tells features about a request that was just made, because a message of theirs may have made
   * it. It may be called again for the same request.
   */
  requestMade(request: MadeRequest): Promise<void>;
}

/** What the acting person may know, for `factsAbout`. */
export const factReader = ({ store, sees, seesAll }: GatewayContext): FactReader => ({
  journal: store,
  sees,
  seesAll,
});

export function personOf(
  { interaction, gateway }: BeforeAck<Actor>,
  options?: { fresh?: boolean },
): Promise<Person> {
  return gateway.person(interaction.userId, interaction.teamId, options);
}

/**
 * Finds a command by its dotted name. Throws UserError when there is none: the button may be from
 * an older version.
 */
export function commandNamed(dotted: string, { commands }: GatewayContext): Command {
  const command = commands.find((candidate) => dottedName(candidate) === dotted);
  if (!command) throw outdated();
  return command;
}

export function changeNamed(
  name: string | undefined,
  { commands }: Pick<GatewayContext, "commands">,
): ChangeCommand | undefined {
  return requestable(commands).find((command) => command.name === name);
}

export function outdated(): UserError {
  return new UserError(
    "This button no longer works.",
    "Use a command instead; `/gatehouse help` lists them.",
  );
}
