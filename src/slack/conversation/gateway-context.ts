import type { ModalView } from "@slack/types";
import { UserError } from "../../errors.ts";
import {
  buttons,
  type ButtonSpec,
  message,
  type Message,
  readable,
  section,
} from "../../messages/message.ts";
import { type Markdown, md } from "../../messages/text.ts";
import { redisTrouble } from "../../redis/trouble.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import type { StatusLine, Surroundings } from "../../commands/context.ts";
import {
  type ChangeCommand,
  type Command,
  dottedName,
  requestable,
} from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import { errorReply } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import type { Web } from "../web.ts";

/** What a read command answers from, for whoever asks, and what changes need besides. */
export interface GatewayContext extends Surroundings {
  policyVersion: string;
  /** Why this process may change nothing now, in words (`start/policy-keeper.ts`). */
  standstill(): string | undefined;
  store: Journal;
  rollouts: Rollouts;
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
  wake(id: string): Promise<void>;
  seal(responseUrl: string): string;
  log: Log;
}

/** An act of a person in Slack, the ways to answer it, and what they may see of everything. */
export interface Act<I = Interaction> {
  interaction: I;
  reply: Reply;
  gateway: GatewayContext;
}

/** Before the ack only the errors of a form answer it. */
export type BeforeAck<I = Interaction> = Omit<Act<I>, "reply">;

export function personOf(
  { interaction, gateway }: BeforeAck<Pick<Interaction, "userId" | "teamId">>,
  options?: { fresh?: boolean },
): Promise<Person> {
  return gateway.person(interaction.userId, interaction.teamId, options);
}

/** A question or an answer with buttons below it. */
export function sayWith(text: Markdown, specs: readonly ButtonSpec[]): Message {
  return message(readable(text), section(text), buttons(specs));
}

/** Says to the person what went wrong; without Redis the interaction isn't handled yet, and comes again. */
export async function orSayWhy<A extends Act>(
  act: A,
  handle: (act: A) => Promise<unknown>,
): Promise<void> {
  try {
    await handle(act);
  } catch (error) {
    if (redisTrouble(error) !== undefined) throw error;
    await act.reply.privately(errorReply(error, act.gateway.log));
  }
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

/** Throws UserError where the trigger was too old. */
export async function openOr({ reply }: Pick<Act, "reply">, view: ModalView): Promise<void> {
  if (await reply.open(view)) return;
  throw tooSlow();
}

export function tooSlow(): UserError {
  return new UserError("That took too long to open.", "Press the button again.");
}

/** Stands first in a form that is opened during a freeze. */
export async function frozenLine({
  store,
}: Pick<GatewayContext, "store">): Promise<Markdown | undefined> {
  const frozen = await store.freezeState();
  if (!frozen) return undefined;
  const why = frozen.reason ? `: ${frozen.reason}` : "";
  return md`🧊 *All changes are frozen* by ${frozen.by}${why}. Nothing runs until the freeze ends.`;
}
