import type { Policy } from "../../config/policy-file.ts";
import * as z from "zod";
import { type Message } from "../../messages/blocks.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { sentence } from "../../messages/card.ts";
import {
  type Markdown,
  duration,
  firstFew,
  hintOf,
  lines,
  md,
  name,
} from "../../messages/markdown.ts";
import {
  type NeededApprovals,
  calledIn,
  isUsual,
  mayNeedApproval,
  needsInWords,
} from "../../core/permit/approval-rule.ts";
import {
  askAndPermit,
  breakGlassBasis,
  lackedBy,
  mayAsk,
  needingApproval,
  permitEach,
  permitOfChange,
} from "../../core/permit/permit.ts";
import type { PolicyRefusal } from "../../core/permit/refusal.ts";
import { withNames } from "../../core/permit/with-names.ts";
import {
  calledName,
  defineCommand,
  rest,
  takesBreakGlass,
  targetArgument,
} from "../../registry/define.ts";
import { type Invocation, asksForChange, targetWords } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import {
  vmsWithin,
  resolveOne,
  resolveSeveral,
  takesOne,
} from "../../core/submit/resolve-targets.ts";
import { sayNo } from "../../slack/error-reply.ts";
import type { PeopleNames, ReadContext } from "../context.ts";
import { emergencyWordsOf, noEmergency } from "../../registry/emergency.ts";

export const canI = defineCommand({
  name: "gatehouse can-i",
  summary:
    "Check whether you can run a command, which rule decides, who must approve, and what would happen",
  example: "/gatehouse can-i vm stop db-1",
  class: "read",
  args: z.object({
    command: rest(500, "the words you would type"),
  }),
  async answer({ command: words }, context: ReadContext) {
    const { asking, person, channelId, journal } = context;
    const parsed = parseCommand(words.replace(/^\//, ""), context.commands);
    if ("refusal" in parsed)
      return sentence(lines(md`${parsed.refusal.text}`, hintOf(parsed.refusal.hint)));
    const { command, input } = parsed;
    const several = asksForChange(parsed)
      ? await resolveSeveral(asking, parsed, context)
      : undefined;
    if (several && !context.takesSeveral) throw takesOne(command, several.targets);
    const breakGlass = "breakGlass" in parsed && parsed.breakGlass !== undefined;
    if (breakGlass && !emergencyWordsOf.ifAny(context)) throw noEmergency();
    const asked = { person, command, input, channelId };
    const emergency = { ...asked, basis: breakGlassBasis };
    // As a rollout does: each is judged alone, and those that are refused are skipped
    const rolling = several && mayAsk(asked, context).asking;
    const each = rolling && permitEach(rolling, several.targets);
    const [never] = each?.permits.length === 0 ? each.refused : [];
    if (never) {
      const first = { targets: [never.target] };
      const { refused } = await withNames(() => askAndPermit(asked, first, context), context);
      return refusedAs(refused ?? never.refusal);
    }
    const needing = each && needingApproval(each.permits);
    if (needing) return sentence(md`Not as a rollout: ${needing.why}. Request them one by one.`);
    const targets =
      each?.permits.map(({ target }) => target) ??
      several?.targets.slice(0, 1) ??
      (await oneTarget(parsed, context));
    const about = { targets, vms: await vmsWithin(targets, context) };
    const question = breakGlass ? emergency : asked;
    const { refused, permit } = await withNames(
      () => askAndPermit(question, about, context),
      context,
    );
    const inEmergency =
      takesBreakGlass(command) &&
      !breakGlass &&
      !several &&
      askAndPermit(emergency, about, context).permit !== undefined &&
      emergencyWordsOf.ifAny(context)?.instead;
    // Others who read a shared answer may have the right.
    const lacked =
      refused && !several && !context.isShared ? lackedBy(asked, targets, refused) : undefined;
    if (refused)
      return refusedAs(refused, {
        inEmergency,
        offers: lacked ? context.offersAtRefusal(lacked) : [],
      });
    const asTyped = name(`/${command.name}`);
    if (!mayNeedApproval(command)) return sentence(md`Yes, you can run ${asTyped}.`);
    const { approvals } = permit;
    const { required, why, expiresMs } = approvals;
    const skipped = each?.refused.map(({ target }) => calledName(target)) ?? [];
    const frozen = await journal.freezeState();
    const change = permitOfChange(permit);
    const rehearsal = change && targets.length > 0 ? await context.rehearse?.(change) : undefined;
    return sentence(
      lines(
        required === 0
          ? md`Yes, you can run ${asTyped} without approval.`
          : md`Yes, you can request ${asTyped}; ${await whoMust(approvals, context)} must approve it within ${duration(expiresMs)}.`,
        md`Why: ${why}.`,
        required > 0 && inEmergency,
        skipped.length > 0 &&
          md`It would skip ${firstFew(skipped, maxNamed)}: you can't change ${skipped.length === 1 ? "it" : "those"}.`,
        frozen && md`But all changes are frozen by ${frozen.by}.`,
        required > 0 && rehearsal?.approval,
        ...(rehearsal?.lines ?? []),
      ),
    );
  },
});

/** Says who can, or what forbids it, and offers what the person can press instead. */
function refusedAs(
  { text, hint, smallPrint }: PolicyRefusal,
  how: { inEmergency?: Markdown | false | undefined; offers?: readonly ButtonSpec[] } = {},
): Message {
  const { inEmergency, offers = [] } = how;
  return sayNo(lines(md`No. ${text}`, hintOf(hint), inEmergency), { smallPrint, offers });
}

const maxNamed = 5;

/** `1 other person`, or the people whom the rule or the team names. */
async function whoMust(
  { required, votes }: Pick<NeededApprovals, "required" | "votes">,
  { policy, nameOf, learnNames }: { policy: Policy } & PeopleNames,
): Promise<string> {
  if (isUsual(policy, votes)) return `${required} other ${required === 1 ? "person" : "people"}`;
  await learnNames(votes.flatMap(({ from }) => from));
  const named = votes.map((need) => ({ ...need, called: calledIn(need, nameOf) }));
  return needsInWords(named);
}

/**
 * The target, if there is one. Empty when none is named or the command has none; then only the
 * person is judged.
 */
async function oneTarget(
  asked: Invocation,
  context: Pick<ReadContext, "asking" | "resolve" | "inventory">,
) {
  const kind = targetArgument(asked.command)?.target;
  const [word] = targetWords(asked);
  if (kind && word !== undefined) return [await context.resolve(kind, word)];
  const isNew = asksForChange(asked) && asked.command.on === "new-project";
  return isNew ? [await resolveOne(context.asking, asked, context)] : [];
}
