import { UserError } from "../errors.ts";
import { buttons, context, message, section } from "../messages/message.ts";
import { hintOf, md, mention, name } from "../messages/text.ts";
import { lists } from "../policy/access.ts";
import { breakGlassRefusal } from "../policy/refusal.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { parseInput } from "../registry/parse.ts";
import { submit } from "../requests/submit.ts";
import { apologise, say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { namesWithin, resolveAll, sameAgain } from "./change.ts";
import { gatherFacts } from "./dialog.ts";
import { noteRefusal } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { PickOne, targetOfVm } from "./resolve.ts";
import { withSnapshotId } from "./resolve-snapshot.ts";
import { withTarget } from "./run-button.ts";
import type { Talk } from "./talk.ts";

/**
 * Runs without waiting for anybody, for those whom policy lists: loudly, and with a review that stays open until another
 * administrator signs it. Protection and the freeze hold even now.
 */
export async function runInEmergency(
  command: ChangeCommand,
  input: Record<string, unknown>,
  reason: string,
  ask: Ask,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  try {
    if (ask.kind !== "command") {
      throw new UserError(
        "--break-glass works in a slash command only: a message is no proof of who wrote it.",
      );
    }
    const args = parseInput(command, input) as Record<string, unknown>;
    const person = await talk.person(ask.userId, ask.teamId, { fresh: true });
    const targets = await resolveAll(command, args, talk);
    const [target] = targets;
    if (!target || targets.length > 1)
      throw new UserError("--break-glass takes exactly one target.");
    const vmNames = await namesWithin(targets, talk);
    const asked = { command, targets, person, channelId: ask.channelId, vmNames };
    const refused = breakGlassRefusal({ ...asked, policy: talk.policy, ourTeamId: talk.ourTeamId });
    if (refused) {
      await noteRefusal(asked, `break-glass: ${refused.rule}`, talk);
      return reply.privately(say(md`${refused.text}`, hintOf(refused.hint)));
    }
    const { vms } = await gatherFacts(command, target, input, talk);
    const submitted = await submit(
      {
        command,
        input: withTarget(command, await withSnapshotId(command, input, target, talk), target),
        target,
        person,
        channelId: ask.channelId,
        via: "command",
        reason,
        askId: ask.id,
        breakGlass: true,
        ...(ask.threadTs ? { threadTs: ask.threadTs } : {}),
        ...(ask.responseUrl ? { sealedResponseUrl: talk.seal(ask.responseUrl) } : {}),
        ...(vms.length > 0 ? { children: vms.map((vm) => targetOfVm(vm, target.name)) } : {}),
      },
      { ...talk, staleAfterMs: talk.policy.timing.staleAfterMs },
    );
    const review = {
      request: submitted.id,
      command: command.name,
      target: target.name,
      by: person.id,
      reason,
      at: talk.now(),
    };
    await talk.store.openReview(review);
    await talk.tell("audit", `break-glass-${submitted.id}`, reviewNotice(review, person.name));
    talk.nudge();
    if (!submitted.isNew) await reply.privately(await sameAgain(submitted.id, talk));
  } catch (error) {
    if (error instanceof PickOne) {
      return reply.privately(
        say(md`${error.message} --break-glass wants it exact: use the id or project/name.`),
      );
    }
    await reply.privately(apologise(error, talk.log));
  }
}

function reviewNotice(
  review: { request: string; command: string; target: string; reason: string },
  who: string,
) {
  const text = md`🚨 *Break-glass:* ${who} ran ${name(review.command)} on ${name(review.target)} without waiting for approval: “${review.reason}”.`;
  return message(
    `Break-glass: ${who} ran ${review.command} on ${review.target}`,
    section(text),
    context(
      md`${name(review.request)} · another administrator signs the review; until then every digest repeats it.`,
    ),
    buttons([
      {
        label: "Sign review",
        action: "review:sign",
        value: JSON.stringify({ request: review.request }),
      },
    ]),
  );
}

/** Another administrator has looked. Whoever broke the glass can't sign for themselves. */
export async function signReview(
  ask: Ask,
  value: Record<string, unknown>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const person = await talk.person(ask.userId, ask.teamId, { fresh: true });
  const review = await talk.store.review(String(value["request"]));
  if (!review) throw new UserError("This review is signed already.");
  if (!lists(talk.policy, person, talk.ourTeamId).includes("administer")) {
    throw new UserError("Only an administrator can sign a review.");
  }
  if (review.by === person.id)
    throw new UserError("You broke the glass yourself: somebody else has to sign.");
  await talk.store.note({
    what: "review-signed",
    who: person.id,
    team: person.teamId,
    request: review.request,
  });
  if (!(await talk.store.closeReview(review.request)))
    throw new UserError("This review is signed already.");
  const done = say(
    md`Review of ${name(review.request)} signed by ${person.name}. ${mention(review.by)}`,
  );
  await talk.tell("audit", `review-signed-${review.request}`, done);
  await reply.privately(say(md`Signed. It stands in the audit trail.`));
}
