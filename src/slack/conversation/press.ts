import { redisTrouble } from "../../redis/trouble.ts";
import { why } from "../../commands/gatehouse/why.ts";
import { restore } from "../../commands/vm/restore.ts";
import { UserError } from "../../errors.ts";
import { md } from "../../messages/text.ts";
import { type ChangeCommand, type Command, dottedName } from "../../registry/define.ts";
import { asksForChange, type Input, withTarget, type Person } from "../../registry/invocation.ts";
import { parseInvocation } from "../../registry/parse.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import { readTarget } from "../../requests/perform/gate.ts";
import { lookAt } from "../../requests/perform/reconcile.ts";
import { isChannel } from "../../requests/render/card-view.ts";
import { mayRetry, mayUndo, renderCard } from "../../requests/render/render-card.ts";
import { errorReply, say } from "../error-reply.ts";
import { parseJson, textAt } from "../web.ts";
import { isDirect, type Press, type Reply } from "../receive/interaction.ts";
import { share } from "./answer.ts";
import { authorize } from "./authorize.ts";
import { signReview } from "./break-glass.ts";
import { offerApproved, openConsole } from "./console.ts";
import { runNamed } from "./choose-target.ts";
import { openDialog, refreshDialog } from "./dialog.ts";
import { byDottedName, changeNamed, type GatewayContext } from "./gateway-context.ts";
import { pressOnRollout } from "./rollout-submit.ts";
import { run } from "./run.ts";
import { alreadyRequested } from "./submit-change.ts";
import { pressOnDigest } from "./snooze.ts";
import { alreadyResolved, askedFor, reasonModal, vote } from "./vote.ts";

/** A pressed button. Its value only names things; what is allowed is decided now. */
export async function press(
  interaction: Press,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  try {
    if (interaction.action.endsWith(":refresh"))
      return await refreshDialog(interaction, reply, gateway);
    const [kind = "", what = ""] = interaction.action.split(":");
    if (kind === "pick" || kind === "arg") return;
    const value = readValue(parseJson(interaction.value));
    if (interaction.action === "menu") {
      const { do: action, ...of } = value;
      if (typeof action !== "string" || action === "menu") throw outdated();
      return await press({ ...interaction, action, value: JSON.stringify(of) }, reply, gateway);
    }
    if (kind === "run") {
      const named = { command: commandNamed(what, gateway), input: value };
      return await runNamed(named, interaction, reply, gateway);
    }
    if (interaction.action === "vote:approve" || interaction.action === "vote:deny")
      return await vote(interaction, value, reply, gateway);
    if (interaction.action === "review:sign")
      return await signReview(interaction, value, reply, gateway);
    if (interaction.action === "console:open")
      return await openConsole(interaction, value, reply, gateway);
    if (kind === "digest") return await pressOnDigest(interaction, value, reply, gateway);
    if (interaction.action === "share") {
      const command = commandNamed(String(value["command"]), gateway);
      const invocation = parseInvocation(command, readValue(value["input"] ?? {}));
      if (asksForChange(invocation)) throw outdated();
      return await share(invocation, interaction, reply, gateway);
    }
    if (kind === "roll") return await pressOnRollout(interaction, value, reply, gateway);
    if (kind === "request") return await pressOnRequest(interaction, value, reply, gateway);
    throw outdated();
  } catch (error) {
    if (redisTrouble(error) !== undefined) throw error;
    await reply.privately(errorReply(error, gateway.log));
  }
}

async function pressOnRequest(
  interaction: Press,
  value: Input,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const request = await gateway.store.get(String(value["request"]));
  const command = changeNamed(request?.record.command, gateway);
  if (!request || !command) throw outdated();
  const { card, asked } = request.delivered;
  const isAlone = interaction.ephemeral || isDirect(interaction);
  const isElsewhere = card && interaction.channelId !== "" && !isAlone;
  const isTheirs = [card, asked].some((one) => one?.channelId === interaction.channelId);
  if (isElsewhere && !isTheirs) throw outdated();
  if (follows.has(interaction.action)) {
    const { action } = interaction;
    const id = `after:${request.record.id}:${action.split(":")[1]}${textAt(value, "next")}`;
    const first = await gateway.store.madeBy(id);
    if (first)
      return reply.privately(
        await alreadyRequested(first.record.id, gateway, "This button was already used."),
      );
    const isTold = isDirect(interaction) && interaction.userId === request.record.requester.id;
    const pressed = { ...interaction, ...(isTold ? whereAsked(request) : {}), id };
    return follow(request, command, pressed, value, reply, gateway);
  }
  const person = await gateway.person(interaction.userId, interaction.teamId);
  if (interaction.action === "request:show") {
    await authorize(
      { command: why, person, channelId: interaction.channelId, targets: [] },
      gateway,
    );
    return reply.privately(renderCard(request, command));
  }
  const isStop = stops.has(interaction.action);
  await authorize({ ...askedFor(request, command, person), isStop }, gateway);
  switch (interaction.action) {
    case "request:open":
      return offerApproved(request, person, interaction, reply, gateway);
    case "request:cancel":
      return cancel(request, person, gateway);
    case "request:look":
      return lookAgain(request, reply, gateway);
    case "request:happened":
    case "request:not-happened":
      if (request.state !== "unknown") throw alreadyResolved(request);
      if (!(await reply.open(reasonModal(request, interaction.action === "request:happened")))) {
        throw new UserError("That took too long to open.", "Press the button again.");
      }
      return;
    default:
      throw outdated();
  }
}

/** What was told in a direct message goes on where others see it, if it was requested there. */
function whereAsked({ record }: StoredRequest): Partial<Press> {
  const { channelId, threadTs } = record;
  return isChannel(channelId) ? { channelId, ...(threadTs ? { threadTs } : {}) } : {};
}
const stops = new Set(["request:cancel", "request:look"]);

/** What comes after a request. Each button makes one request, however often and by whomever it is pressed. */
const follows = new Set(["request:retry", "request:undo", "request:next"]);

async function follow(
  request: StoredRequest,
  command: ChangeCommand,
  interaction: Press,
  value: Input,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { input, target, undoes } = request.record;
  if (interaction.action === "request:undo") return undo(request, interaction, reply, gateway);
  if (interaction.action === "request:next") {
    const next = command.next?.find((one) => one.command === value["next"]);
    if (!next) throw outdated();
    const named = commandNamed(next.command, gateway);
    const other = parseInvocation(named, withTarget(named, {}, target));
    return run(other, interaction, reply, gateway);
  }
  if (!mayRetry(request)) throw outdated();
  const undone = undoes && (await gateway.store.get(undoes));
  if (undone) return undo(undone, interaction, reply, gateway);
  const typed = commandNamed(dottedName(command), gateway);
  return run(parseInvocation(typed, input), interaction, reply, gateway);
}

/** Restores the safety snapshot, with the dialog and approvals of any restore; who may approve one may request this. */
async function undo(
  request: StoredRequest,
  interaction: Press,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const snapshot = request.progress.safety?.snapshotId;
  if (snapshot === undefined || !mayUndo(request, await gateway.store.now())) {
    throw new UserError(
      "This can no longer be undone from here.",
      `\`/vm snapshots ${request.record.target.name}\` lists what can be restored.`,
    );
  }
  const { target, id } = request.record;
  const person = await gateway.person(interaction.userId, interaction.teamId);
  const { channelId } = interaction;
  const input = { vm: target.id, snapshot };
  const asked = { command: restore, input, targets: [target], person, channelId, isUndo: true };
  await authorize(asked, gateway);
  if (!(await openDialog(restore, target, input, interaction, reply, gateway, { undoes: id })))
    throw new UserError("That took too long to open.", "Press the button again.");
}

async function cancel(
  request: StoredRequest,
  { id, name }: Person,
  gateway: GatewayContext,
): Promise<void> {
  if (request.state !== "authorized" && request.state !== "draft") {
    throw new UserError(
      "It is too late to cancel: it was already sent.",
      "The result will appear in the thread.",
    );
  }
  const moved = await gateway.store.move(request, {
    state: "cancelled",
    progress: { ...request.progress, why: "nothing was sent", decidedBy: { id, name } },
    why: "cancelled",
    actor: id,
  });
  if (moved.is === "changed")
    throw new UserError("Its state just changed.", "Check the message again.");
}

/** Reads the target again and shows it; only a person resolves an unknown outcome. */
async function lookAgain(
  request: StoredRequest,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  if (request.state !== "unknown") throw alreadyResolved(request);
  const { seen } = await readTarget(request.record.target, gateway);
  const lastLook = lookAt(seen, await gateway.store.now());
  await gateway.store.move(request, {
    state: "unknown",
    progress: { ...request.progress, lastLook },
    why: `looked again: ${lastLook.status}`,
  });
  await reply.privately(
    say(
      md`${request.record.target.name} is ${lastLook.status} now. Only a person can tell whether this request did it.`,
    ),
  );
}

function commandNamed(dotted: string, gateway: GatewayContext): Command {
  const command = byDottedName(gateway.commands, dotted);
  if (!command) throw outdated();
  return command;
}

function readValue(value: unknown): Input {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw outdated();
  return { ...value };
}

function outdated(): UserError {
  return new UserError(
    "This button no longer works.",
    "Use a command instead; `/gatehouse help` lists them.",
  );
}
