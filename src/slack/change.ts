import { UserError } from "../errors.ts";
import { buttons, message, type Message, readable, section } from "../messages/message.ts";
import { md, name } from "../messages/text.ts";
import { couldApprove } from "../policy/vote.ts";
import type { ChangeCommand, DialogFacts } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { gatherEvidence } from "../requests/evidence.ts";
import type { RequestRecord } from "../requests/record.ts";
import { submit, type Submission } from "../requests/submit.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { chosenSnapshot, gatherFacts, neededApprovals, needsDialog, openDialog } from "./dialog.ts";
import type { Reply } from "./reply.ts";
import { resolveTarget, targetOfVm } from "./resolve.ts";
import { withSnapshotId } from "./resolve-snapshot.ts";
import { proposeRoll } from "./roll-plan.ts";
import { severalTargets } from "./roll-targets.ts";
import { runButton, targetKey, withTarget } from "./run-button.ts";
import { isRefused, noteRefusal } from "./refuse.ts";
import type { Talk } from "./talk.ts";

/** Somebody asks for a change: resolved, allowed, confirmed where it must be, then written down. */
export async function change(
  command: ChangeCommand,
  input: Record<string, unknown>,
  args: unknown,
  person: Person,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const several = await severalTargets(command, args as Record<string, unknown>, talk);
  if (several) return proposeRoll(command, input, several, person, ask, reply, talk);
  const targets = await resolveAll(command, args as Record<string, unknown>, talk);
  const vmNames = await namesWithin(targets, talk);
  if (await isRefused({ command, targets, person, channelId: ask.channelId, vmNames }, reply, talk))
    return;
  const [target] = targets;
  if (!target) throw new UserError("That names nothing.", `Try \`${command.example}\`.`);
  // A message is no proof that a person asked: what changes something from there is pressed (decision 005)
  if (ask.kind === "mention") return reply.privately(pressToGoOn(command, input, target));
  if (needsDialog(command)) {
    const exact = await withSnapshotId(command, input, target, talk);
    if (await openDialog(command, target, exact, ask, reply, talk)) return;
    return reply.privately(pressToGoOn(command, input, target));
  }
  await submitAndTell(
    {
      command,
      input: withTarget(command, input, target),
      target,
      person,
      channelId: ask.channelId,
      via: viaOf(ask),
      askId: ask.id,
      ...(ask.threadTs ? { threadTs: ask.threadTs } : {}),
      ...(ask.responseUrl ? { sealedResponseUrl: talk.seal(ask.responseUrl) } : {}),
    },
    await gatherIfNeeded(command, target, input, talk),
    reply,
    talk,
  );
}

/** What runs at once reads nothing more before it is written down: it's 3 a.m., and the gate reads anyway. */
async function gatherIfNeeded(
  command: ChangeCommand,
  target: Target,
  input: Record<string, unknown>,
  talk: Talk,
) {
  const unread: DialogFacts = { target, seen: undefined, vms: [], snapshots: [], input };
  if (neededApprovals(command, target, unread, talk).required === 0) return unread;
  return gatherFacts(command, target, input, talk);
}

/** Adds the approvals that policy asks for, writes the request down, and says so when it was there already. */
export async function submitAndTell(
  submission: Submission,
  facts: DialogFacts,
  reply: Pick<Reply, "privately">,
  talk: Talk,
): Promise<void> {
  const { command, target, person } = submission;
  const needed = neededApprovals(command, target, facts, talk);
  if (needed.required > 0 && !submission.breakGlass) {
    const possible = couldApprove({
      policy: talk.policy,
      requesterId: person.id,
      required: needed.required,
      membersOf: await talk.membersOf(talk.policy.access.approve),
    });
    if (!possible.enough) {
      throw new UserError(
        `Nobody could approve this: it needs ${needed.required} other than you.`,
        "Whoever runs Gatehouse can add people to `access.approve` in gatehouse.yml.",
      );
    }
    const last = await talk.store.getMany(
      await talk.store.recentIds({ targetId: target.id || target.name }, 20),
    );
    const evidence = gatherEvidence({
      seen: facts.seen,
      vms: facts.vms,
      snapshot: chosenSnapshot(facts),
      last,
      command: command.name,
      now: talk.now(),
      raised: needed.raised,
      foreignSnapshotOf: facts.foreignSnapshotOf,
    });
    submission = {
      ...submission,
      channelId: channelForApproval(submission.channelId, talk),
      approval: {
        required: needed.required,
        expiresMs: needed.expiresMs,
        why: needed.why,
        evidence,
      },
    };
  }
  if (target.kind === "project" && facts.vms.length > 0 && command.class === "destroy") {
    submission = { ...submission, children: facts.vms.map((vm) => targetOfVm(vm, target.name)) };
  }
  await takeTurn(submission, talk);
  const submitted = await submit(submission, {
    store: talk.store,
    policyVersion: talk.policyVersion,
    staleAfterMs: talk.policy.timing.staleAfterMs,
    wake: talk.wake,
  });
  // A place that is kept too long is no harm, and the request is written down
  if (command.class === "destroy") {
    await talk.store.turnTaken(submission.askId, submitted.id).catch(() => undefined);
  }
  talk.nudge();
  if (!submitted.isNew) await reply.privately(await sameAgain(submitted.id, talk));
}

/** Throws UserError when this is more than policy lets somebody ask for, and leaves a record of it. */
async function takeTurn({ command, person, target, askId }: Submission, talk: Talk): Promise<void> {
  const { limits } = talk.policy;
  const destroys = command.class === "destroy";
  try {
    await talk.store.takeTurn({ personId: person.id, askId, destroys, limits });
  } catch (error) {
    if (error instanceof UserError) {
      const asked = { command, person, targets: [target], channelId: "" };
      await noteRefusal(asked, "limits", talk);
    }
    throw error;
  }
}

/** Approvals need a place where others see them: what is asked from the Home tab is shown where policy lets it be. */
function channelForApproval(askedIn: string, { policy }: Pick<Talk, "policy">): string {
  const channel = /^[CG]/.test(askedIn)
    ? askedIn
    : (policy.channels?.[0] ?? policy.alerts?.channel);
  if (channel !== undefined) return channel;
  throw new UserError(
    "This needs approval, and here nobody else would see it.",
    "Ask in a channel.",
  );
}

/** The same was asked a moment ago, or is still under way: that request stands for both. */
export async function sameAgain(id: string, talk: Pick<Talk, "store">): Promise<Message> {
  const request = await talk.store.get(id);
  const state = !request
    ? "on record"
    : request.final
      ? request.state
      : request.state === "unknown"
        ? "waiting for somebody to say how it ended"
        : "under way";
  return say(
    md`You asked for this already: ${name(id)} is ${state}. It was not done a second time.`,
  );
}

export async function resolveAll(
  command: ChangeCommand,
  args: Record<string, unknown>,
  talk: Talk,
): Promise<Target[]> {
  if (command.on === "new-project") {
    const newName = typeof args["name"] === "string" ? args["name"] : "";
    return [{ kind: "project", id: "", name: newName, projectId: "", status: "" }];
  }
  const words = [args[targetKey(command) ?? ""]].flat().filter((word) => typeof word === "string");
  const found: Target[] = [];
  for (const word of words) found.push(await resolveTarget(command.on, word, talk.inventory));
  return found;
}

/** Names of the VMs that go with a project: `protect` covers them too. */
export async function namesWithin(
  targets: readonly Target[],
  talk: Pick<Talk, "inventory">,
): Promise<string[]> {
  const lists = await Promise.all(
    targets
      .filter(({ kind, id }) => kind === "project" && id !== "")
      .map(({ id }) => talk.inventory.vms({ projectId: id })),
  );
  return lists.flat().map((vm) => vm.name);
}

function viaOf(ask: Ask): RequestRecord["via"] {
  return ask.kind === "button" ? "button" : ask.kind === "submission" ? "modal" : "command";
}

/** A button in place of a trigger that is too old, or was never there. */
function pressToGoOn(
  command: ChangeCommand,
  input: Record<string, unknown>,
  target: Target,
): Message {
  const what = target.name === "" ? md`a new project` : md`${name(target.name)}`;
  const text = md`${command.say.verb} ${what}? Please press the button: a message alone changes nothing.`;
  return message(readable(text), section(text), buttons([runButton(command, input, target)]));
}
