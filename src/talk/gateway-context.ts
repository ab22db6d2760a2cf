import type { AfterNote } from "../attestation/render-attestation.ts";
import type { StatusLine, Surroundings } from "../commands/context.ts";
import { UserError } from "../errors.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  dottedName,
  requestable,
} from "../registry/define.ts";
import type { ChangeInvocation, Input, Person } from "../registry/invocation.ts";
import type { Several } from "../core/submit/resolve-targets.ts";
import type { Journal } from "../core/request/journal.ts";
import type { ButtonOrigin, Origin } from "../core/request/origin.ts";
import type { Announce, AnswerNotices } from "../core/deliver/deliver.ts";
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
import type { Asking, Permit } from "../core/permit/permit.ts";
import type { Message } from "../messages/message.ts";

/** What a read command answers from, for whoever asks, and what changes need besides. */
export interface GatewayContext extends Surroundings {
  policyVersion: string;
  /** Why this process may change nothing now, in words (`operate/policy-keeper.ts`). */
  standstill(): string | undefined;
  store: Journal;
  web: Web;
  /** Uploads go only to its hosts. */
  apiUrl: string;
  /** Rejects when Slack can't tell who the person is. */
  person(userId: string, teamId: string, options?: { fresh?: boolean }): Promise<Person>;
  /** Reads the members of these groups; undefined for a group that can't be read. */
  membersOf(
    entries: readonly string[],
  ): Promise<(groupId: string) => readonly string[] | undefined>;
  /** Whether whoever acts may see all of these. */
  sees(targets: readonly Target[]): Promise<boolean>;
  /** Counting the VMs of this inventory, or all. */
  status(inventory?: Inventory): Promise<readonly StatusLine[]>;
  announce: Announce;
  answerNotices: AnswerNotices;
  /** What is known of an ended request's VM since: a result never hides it. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  /** What features add to conversations. */
  contributed: Contributions;
  log: Log;
}

/** An act of a person in Slack, the ways to answer it, and what they may see of everything. */
export interface Act<I = Interaction> {
  interaction: I;
  reply: Reply;
  gateway: GatewayContext;
  /** What a request is of that this act makes: a button of a request, an alert, or a proposal; undefined for everything else. */
  origin?: ButtonOrigin;
}

/** Before the ack only the errors of a form answer it. */
export type BeforeAck<I = Interaction> = Omit<Act<I>, "reply">;

/** What a press of a button does. Its value only names things; what is allowed is decided now. */
export type PressHandler = (act: Act<Press>, value: Input) => Promise<unknown>;

/** What a submitted form does before the ack, where what is wrong with it can be shown on it, and after it. */
export interface FormHandler {
  check?(act: BeforeAck<ViewSubmission>): Promise<SubmissionResult | undefined>;
  submit?(act: Act<ViewSubmission>): Promise<void>;
}

/** Options of a select that loads while someone types; asked by those alone who may see names. */
export type Picker = (
  request: SuggestRequest,
  gateway: GatewayContext,
) => Promise<readonly Suggestion[]>;

/** What becomes of a command that names several VMs, where its asker may ask for it: nobody is permitted to run it on them yet. */
export type SeveralHandler = (
  invocation: ChangeInvocation,
  several: Several,
  asking: Asking<ChangeCommand>,
  act: Act,
) => Promise<void>;

/** The Home tab: what a person sees who opens Gatehouse in Slack. */
export interface HomeTab {
  /** Publishes it; `said` stands above the rest. False when Slack doesn't show it. */
  show(act: BeforeAck<Pick<Interaction, "userId" | "teamId">>, said?: Message): Promise<boolean>;
  /** Answers a press of a button there. Never rejects for what the person did. */
  pressed(act: Act<Press>): Promise<void>;
}

/** What features add to conversations: none of them is known here by name. */
export interface Contributions {
  /** By action, or by the word before its colon for all actions that begin so. */
  presses: Readonly<Record<string, PressHandler>>;
  /** By callback. */
  forms: Readonly<Record<string, FormHandler>>;
  /** By the name that arguments call them by (`picker`). */
  pickers: Readonly<Record<string, Picker>>;
  /** Actions of buttons that one person answers for all, wherever they stand. */
  answeredForAll: readonly string[];
  /** Without one, a command takes one VM. */
  several?: SeveralHandler | undefined;
  /** Without one, the Home tab stays empty. */
  homeTab?: HomeTab | undefined;
  /**
   * Right before a request is made: what it is made of can't be taken back from then on. Throws UserError where it may no longer be
   * made.
   */
  beforeRequest(permit: Permit, origin: Origin, gateway: GatewayContext): Promise<void>;
  /** Tells the features of a request that was just made: one of their messages may have made it. */
  requestMade(request: MadeRequest): Promise<void>;
}

export function personOf(
  { interaction, gateway }: BeforeAck<Pick<Interaction, "userId" | "teamId">>,
  options?: { fresh?: boolean },
): Promise<Person> {
  return gateway.person(interaction.userId, interaction.teamId, options);
}

/** Throws UserError where there is none any more. */
export function commandNamed(dotted: string, { commands }: GatewayContext): Command {
  const command = commands.find((one) => dottedName(one) === dotted);
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
