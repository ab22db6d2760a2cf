import { snoozeAction } from "../digests/line-buttons.ts";
import { UserError } from "../errors.ts";
import { context, message } from "../messages/message.ts";
import { Markdown, md } from "../messages/text.ts";
import { parseInput } from "../registry/parse.ts";
import { readTarget } from "../requests/gate.ts";
import { lookAt } from "../requests/judge.ts";
import { mayRetry, mayUndo } from "../requests/render-card.ts";
import type { StoredRequest } from "../requests/record.ts";
import { apologise, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import type { Reply } from "./reply.ts";
import { signReview } from "./break-glass.ts";
import { snooze } from "./digest.ts";
import { openConsole } from "./console.ts";
import { refreshDialog } from "./dialog-submit.ts";
import { pressOnRoll } from "./roll-press.ts";
import { isRefused } from "./refuse.ts";
import { readContext, run } from "./run.ts";
import { showAnswer } from "./show-answer.ts";
import { askedFor, vote } from "./vote.ts";
import { byDottedName, isChange, type Talk } from "./talk.ts";
import { reasonModal } from "./verdict-modal.ts";

type Press = Extract<Ask, { kind: "button" }>;

/** A pressed button. Its value names things; what may be done with them is decided anew. */
export async function press(ask: Press, reply: Reply, talk: Talk): Promise<void> {
  try {
    if (ask.action === "dialog:refresh") return await refreshDialog(ask, reply, talk);
    if (ask.action.startsWith("pick:") || ask.action.startsWith("arg:")) return;
    const value = readValue(ask.value);
    if (ask.action.startsWith("run:")) {
      const command = byDottedName(talk.commands, ask.action.split(":")[1] ?? "");
      if (!command) throw outdated();
      await run(command, value, ask, reply, talk);
      return;
    }
    if (ask.action === "vote:approve" || ask.action === "vote:deny") {
      return await vote(ask, value, reply, talk);
    }
    if (ask.action === "review:sign") return await signReview(ask, value, reply, talk);
    if (ask.action === "console:open") return await openConsole(ask, value, reply, talk);
    if (ask.action === snoozeAction) return await snooze(ask, value, reply, talk);
    if (ask.action === "share") return await share(value, ask, reply, talk);
    if (ask.action.startsWith("roll:")) return await pressOnRoll(ask, value, reply, talk);
    if (ask.action.startsWith("request:")) return await pressOnRequest(ask, value, reply, talk);
    throw outdated();
  } catch (error) {
    await reply.privately(apologise(error, talk.log));
  }
}

async function pressOnRequest(
  ask: Press,
  value: Record<string, unknown>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const request = await talk.store.get(String(value["request"]));
  const command = talk.commands.find(({ name }) => name === request?.record.command);
  if (!request || !command || !isChange(command)) throw outdated();
  const { card } = request.delivered;
  if (card && ask.channelId !== "" && card.channelId !== ask.channelId) throw outdated();
  const person = await talk.person(ask.userId, ask.teamId);
  if (await isRefused(askedFor(request, command, person), reply, talk)) return;
  switch (ask.action) {
    case "request:cancel":
      return cancel(request, person.id, talk);
    case "request:retry":
      if (!mayRetry(request)) throw outdated();
      return run(command, request.record.input, ask, reply, talk);
    case "request:undo":
      return undo(request, ask, reply, talk);
    case "request:look":
      return lookAgain(request, reply, talk);
    case "request:happened":
    case "request:not-happened":
      if (request.state !== "unknown")
        throw new UserError(`This was settled meanwhile: ${request.state}.`);
      if (!(await reply.open(reasonModal(request, ask.action === "request:happened")))) {
        throw new UserError("That took too long to open.", "Please press again.");
      }
      return;
    default:
      throw outdated();
  }
}

/** Puts back the safety snapshot: a restore like any other, with its dialog and approvals. */
async function undo(request: StoredRequest, ask: Press, reply: Reply, talk: Talk): Promise<void> {
  const snapshot = request.progress.safety?.snapshotId;
  const command = talk.commands.find(({ name }) => name === "vm restore");
  if (!command || snapshot === undefined || !mayUndo(request, await talk.store.now())) {
    throw new UserError(
      "This can't be undone from here any more.",
      `\`/vm snapshots ${request.record.target.name}\` lists what can be restored.`,
    );
  }
  await run(command, { vm: request.record.target.id, snapshot }, ask, reply, talk);
}

async function cancel(request: StoredRequest, by: string, talk: Talk): Promise<void> {
  if (request.state !== "authorized" && request.state !== "draft") {
    throw new UserError(
      "It is too late to cancel: it has been sent.",
      "The thread will tell how it ends.",
    );
  }
  const moved = await talk.store.move(request, {
    state: "cancelled",
    progress: { ...request.progress, why: "taken back before it was sent", decidedBy: { id: by } },
    why: "cancelled",
    actor: by,
  });
  if (moved.is === "changed")
    throw new UserError("It moved on just now.", "Look at the message again.");
  talk.nudge();
}

/** Reads the target once more and shows it; an unknown outcome is never resolved by itself. */
async function lookAgain(request: StoredRequest, reply: Reply, talk: Talk): Promise<void> {
  if (request.state !== "unknown")
    throw new UserError(`This was settled meanwhile: ${request.state}.`);
  const { seen } = await readTarget(request.record.target, talk);
  const lastLook = lookAt(seen, await talk.store.now());
  await talk.store.move(request, {
    state: "unknown",
    progress: { ...request.progress, lastLook },
    why: `looked again: ${lastLook.status}`,
  });
  talk.nudge();
  await reply.privately(
    say(
      md`${request.record.target.name} is ${lastLook.status} now. Whether this request did it, only a person can say.`,
    ),
  );
}

/** Runs a read command again and shows its answer to the whole channel. */
async function share(
  value: Record<string, unknown>,
  ask: Press,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const command = byDottedName(talk.commands, String(value["command"]));
  if (!command || isChange(command)) throw outdated();
  const person = await talk.person(ask.userId, ask.teamId);
  if (await isRefused({ command, targets: [], person, channelId: ask.channelId }, reply, talk))
    return;
  const input = readValue(JSON.stringify(value["input"] ?? {}));
  const args: unknown = parseInput(command, input);
  const answered = await command.answer(args as never, readContext(person, ask, talk));
  const answer = "message" in answered ? answered : { message: answered };
  const { text, blocks } = answer.message;
  const shared = message(new Markdown(text), blocks, context(md`Shared by ${person.name}`));
  await showAnswer(
    { ...answer, message: shared },
    { command, input, toChannel: true },
    ask,
    reply,
    talk,
  );
}

function readValue(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Falls through: a value that isn't ours
  }
  throw outdated();
}

function outdated(): UserError {
  return new UserError(
    "This button no longer works.",
    "Ask again with a command; `/gatehouse help` lists them.",
  );
}
