import * as z from "zod";
import { sentence } from "../../messages/message.ts";
import { duration, hintOf, lines, md, name } from "../../messages/text.ts";
import { approvalRule, mayNeedApproval, type NeededApprovals } from "../../policy/approval-rule.ts";
import { calledIn, needsInWords } from "../../policy/need-words.ts";
import { refusal } from "../../policy/refusal.ts";
import { isUsual } from "../../policy/vote-needs.ts";
import { defineCommand } from "../../registry/define.ts";
import { parseCommand } from "../../registry/parse.ts";
import { asksForChange, type Invocation, targetWords } from "../../registry/invocation.ts";
import { targetArgument } from "../../registry/arguments.ts";
import { namesWithin, resolveSeveral } from "../../requests/submit/resolve.ts";
import type { ReadContext } from "../context.ts";

export const canI = defineCommand({
  kind: "read",
  name: "gatehouse can-i",
  summary:
    "Check whether you can run a command, which rule decides, and how many approvals it needs",
  example: "/gatehouse can-i vm restore db-1",
  class: "read",
  args: z.object({
    command: z.string().max(500).meta({ rest: true, description: "the words you would type" }),
  }),
  async answer({ command: words }, context: ReadContext) {
    const { policy, journal } = context;
    const parsed = parseCommand(words.replace(/^\//, ""), context.commands);
    if ("refusal" in parsed)
      return sentence(lines(md`${parsed.refusal.text}`, hintOf(parsed.refusal.hint)));
    const { command, input } = parsed;
    const several = asksForChange(parsed) ? await resolveSeveral(parsed, context) : undefined;
    const targets = several?.targets ?? (await oneTarget(parsed, context));
    const vmNames = await namesWithin(targets, context);
    const refused = refusal({ ...context, command, input, targets, vmNames });
    if (refused) {
      const rule = md`The rule is ${name(refused.toldAs ?? refused.rule)}.`;
      return sentence(lines(md`No: ${refused.text}`, hintOf(refused.hint), rule));
    }
    const asTyped = name(`/${command.name}`);
    if (!mayNeedApproval(command)) return sentence(md`Yes, you can run ${asTyped}.`);
    const needed = approvalRule(policy, { command, input, targets, vmNames });
    const { required, why, expiresMs } = needed;
    if (several && required > 0) return sentence(md`Not several at once: ${why}.`);
    const frozen = await journal.freezeState();
    return sentence(
      lines(
        required === 0
          ? md`Yes, you can run ${asTyped} without approval.`
          : md`Yes, you can request ${asTyped}; ${await whoMust(needed, context)} must approve it within ${duration(expiresMs)}.`,
        md`Why: ${why}.`,
        frozen && md`But all changes are frozen by ${frozen.by}.`,
      ),
    );
  },
});

/** `1 other person`, or whom the rule or the team names. */
async function whoMust(
  { required, votes }: Pick<NeededApprovals, "required" | "votes">,
  { policy, nameOf, learnNames }: ReadContext,
): Promise<string> {
  if (isUsual(policy, votes)) return `${required} other ${required === 1 ? "person" : "people"}`;
  await learnNames(votes.flatMap(({ from }) => from));
  const named = votes.map((need) => ({ ...need, called: calledIn(need, nameOf) }));
  return needsInWords(named);
}

async function oneTarget(asked: Invocation, { resolve }: Pick<ReadContext, "resolve">) {
  const kind = targetArgument(asked.command)?.target;
  const [word] = targetWords(asked);
  return kind && word !== undefined ? [await resolve(kind, word)] : [];
}
