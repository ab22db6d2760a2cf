import type { SeenTarget } from "../core/permit/sight.ts";
import type { AfterNote } from "../attestation/render-attestation.ts";
import type { Rehearsed, StatusLine, Surroundings } from "../commands/context.ts";
import { UserError } from "../errors.ts";
import type { FactReader } from "../core/facts/facts-about.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import { type ChangeCommand, type Command, dottedName, requestable } from "../registry/define.ts";
import type { ChangeInvocation, Input, Person } from "../registry/invocation.ts";
import type { Several } from "../core/submit/resolve-targets.ts";
import type { Journal } from "../core/request/journal.ts";
import type { ButtonOrigin, Origin } from "../core/request/origin.ts";
import type { Announce, AnswerNotices } from "../core/deliver/notices.ts";
import type {
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
import type { Asking, LackedRight, Permit } from "../core/permit/permit.ts";
import type { Message } from "../messages/blocks.ts";
import type { ButtonSpec } from "../messages/buttons.ts";

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
  /** Status lines that count the VMs of this inventory; all VMs by default. */
  status(inventory?: Inventory): Promise<readonly StatusLine[]>;
  announce: Announce;
  answerNotices: AnswerNotices;
  /**
   * What attestation says about the VM of a request that has ended, so that a result never hides
   * it.
   */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
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

/**
 * Handles a command that names several VMs. Its person may ask for the command; whether it may run
 * on each VM isn't decided yet.
 */
export type SeveralHandler = (
  invocation: ChangeInvocation,
  several: Several,
  asking: Asking<ChangeCommand>,
  act: Act,
) => Promise<void>;

/** Tells what would happen to a change. It permits, requests, sends, and counts nothing. */
export interface Rehearsal {
  rehearse(asked: Rehearsing, gateway: GatewayContext): Promise<Rehearsed>;
}

/** A change to rehearse, and what would make its request, if that is known. */
export interface Rehearsing {
  permit: Permit;
  origin?: Origin | undefined;
  /** How many of several targets would be changed at a time. */
  atOnce?: number;
}

/** The Home tab: the page that a person sees who opens Gatehouse in Slack. */
export interface HomeTab {
  /** Publishes the tab, with `above` before everything else. False when Slack doesn't show it. */
  show(act: BeforeAck<Pick<Interaction, "userId" | "teamId">>, above?: Message): Promise<boolean>;
  /**
   * Handles a press of a button on the tab. Errors that the person caused are shown there; they
   * never reject.
   */
  pressed(act: Act<Press>): Promise<void>;
}

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
  /** Without one, a command takes one VM. */
  several?: SeveralHandler | undefined;
  /** What answers “What would happen?” in forms and `can-i`. Undefined when nothing does. */
  rehearsal?: Rehearsal | undefined;
  /** Undefined when the Home tab stays empty. */
  homeTab?: HomeTab | undefined;
  /**
   * Runs right before a request is made, and marks what it is made of as used. Throws UserError if
   * the request may no longer be made.
   */
  beforeRequest(permit: Permit, origin: Origin, gateway: GatewayContext): Promise<void>;
  /**
   * Tells features about a request that was just made, because a message of theirs may have made
   * it. It may be called again for the same request.
   */
  requestMade(request: MadeRequest): Promise<void>;
  /**
   * Buttons beside a refusal for nothing but the lack of this right: what the person who was
   * refused can do instead. What a press may do is decided at the press.
   */
  offersAtRefusal(lacked: LackedRight, gateway: GatewayContext): readonly ButtonSpec[];
}

/** What the acting person may know, for `factsAbout`. */
export const factReader = ({ store, sees, seesAll }: GatewayContext): FactReader => ({
  journal: store,
  sees,
  seesAll,
});

export function personOf(
  { interaction, gateway }: BeforeAck<Pick<Interaction, "userId" | "teamId">>,
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
