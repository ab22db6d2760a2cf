import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { StatusLine, Surroundings } from "../../commands/context.ts";
import type { Alerts } from "../../alerts/alerts.ts";
import type { Proposals } from "../../proposals/proposals.ts";
import { UserError } from "../../errors.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import {
  type ChangeCommand,
  type Command,
  dottedName,
  requestable,
} from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { ButtonOrigin } from "../../requests/journal/origin.ts";
import type { StoredRequest } from "../../requests/journal/stored-request.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import type { Announce, AnswerNotices } from "../deliver/deliver.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import type { Web } from "../web.ts";

/** What a read command answers from, for whoever asks, and what changes need besides. */
export interface GatewayContext extends Surroundings {
  policyVersion: string;
  /** Why this process may change nothing now, in words (`start/policy-keeper.ts`). */
  standstill(): string | undefined;
  store: Journal;
  rollouts: Rollouts;
  alerts: Alerts;
  proposals: Proposals;
  web: Web;
  /** Uploads go only to its hosts. */
  apiUrl: string;
  /** Rejects when Slack can't tell who the person is. */
  person(userId: string, teamId: string, options?: { fresh?: boolean }): Promise<Person>;
  /** Reads the members of these groups; undefined for a group that can't be read. */
  membersOf(
    entries: readonly string[],
  ): Promise<(groupId: string) => readonly string[] | undefined>;
  /** Counting the VMs of this inventory, or all. */
  status(inventory?: Inventory): Promise<readonly StatusLine[]>;
  announce: Announce;
  answerNotices: AnswerNotices;
  /** What is known of an ended request's VM since: a result never hides it. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
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
