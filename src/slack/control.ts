import {
  context,
  message,
  type Message,
  readable,
  section,
  sentence,
} from "../messages/message.ts";
import { hintOf, duration, lines, type Markdown, md, name, when } from "../messages/text.ts";
import { UserError } from "../errors.ts";
import { lists } from "../policy/access.ts";
import { approvalRule } from "../policy/approval-rule.ts";
import { voteRefusal } from "../policy/vote.ts";
import type { Control } from "../registry/define.ts";
import { parseCommand } from "../registry/parse.ts";
import type { Person } from "../registry/person.ts";
import { shortDigest } from "../approvals/digest.ts";
import { say } from "./apology.ts";
import { namesWithin } from "./change.ts";
import { refusalOf } from "./refuse.ts";
import { resolveTarget } from "./resolve.ts";
import { severalTargets } from "./roll-targets.ts";
import { targetKey } from "./run-button.ts";
import { isChange, type Talk } from "./talk.ts";

/** What the commands about Gatehouse itself do, for one person in one channel. */
export function controlFor(person: Person, channelId: string, talk: Talk): Control {
  return {
    mustAdminister() {
      if (lists(talk.policy, person, talk.ourTeamId).includes("administer")) return;
      throw new UserError(
        "Only an administrator may insist.",
        "They are in `access.administer` of gatehouse.yml.",
      );
    },
    freeze: (reason) => talk.store.freeze({ by: person.name, id: person.id, reason }),
    async thaw() {
      const isOver = await talk.store.thaw(person.id);
      if (isOver) {
        const text = md`Changes are allowed again: ${person.name} ended the freeze.`;
        await talk.tell("audit", `thaw-${Date.now()}`, sentence(text));
      }
      return isOver;
    },
    canI: (words) => canI(words, person, channelId, talk),
    why: (id) => why(id, talk),
    approvals: () => waiting(person, talk),
    audit: (words) => talk.audit(words, person),
    digest: (action, words) => talk.digest.answer(action, words, person, channelId),
  };
}

async function canI(
  words: string,
  person: Person,
  channelId: string,
  talk: Talk,
): Promise<Message> {
  const parsed = parseCommand(words.replace(/^\//, ""), talk.commands);
  if ("refusal" in parsed) return say(md`${parsed.refusal.text}`, hintOf(parsed.refusal.hint));
  const { command, input } = parsed;
  const key = targetKey(command);
  const word = key === undefined ? undefined : [input[key]].flat()[0];
  const several = isChange(command) ? await severalTargets(command, input, talk) : undefined;
  const targets = several
    ? several.targets
    : typeof word === "string"
      ? [
          await resolveTarget(
            command.name.startsWith("vm") ? "vm" : "project",
            word,
            talk.inventory,
          ),
        ]
      : [];
  const vmNames = await namesWithin(targets, talk);
  const refused = refusalOf({ command, targets, person, channelId, vmNames }, talk);
  if (refused) {
    return say(
      md`No: ${refused.text}`,
      lines(hintOf(refused.hint), md`The rule is ${name(refused.rule)}.`),
    );
  }
  if (!isChange(command)) return say(md`Yes, you may run ${name(`/${command.name}`)}.`);
  const needed = approvalRule(talk.policy, command, targets);
  const frozen = await talk.store.freezeState();
  if (several && needed.required > 0) return say(md`Not together: ${needed.why}.`);
  return say(
    needed.required === 0
      ? md`Yes, you may run ${name(`/${command.name}`)}, and it needs nobody's approval.`
      : md`Yes, you may ask for ${name(`/${command.name}`)}; it then needs ${needed.required} other ${needed.required === 1 ? "person" : "people"} to approve within ${duration(needed.expiresMs)}.`,
    lines(md`Why: ${needed.why}.`, frozen && md`But all changes are frozen now by ${frozen.by}.`),
  );
}

async function why(id: string, talk: Talk): Promise<Message> {
  const request = await talk.store.get(id);
  if (!request) throw new UserError(`I know no request ${id}.`, "Requests are kept for 90 days.");
  const { record, votes, state, progress } = request;
  const steps = (await talk.store.history(id)).map(
    (step): Markdown => md`• ${when(step.at)} ${step.state}: ${step.why}`,
  );
  const cast = votes.map((vote) => md`• ${when(vote.at)} ${vote.name}: ${vote.vote}`);
  const head = md`*${record.command}* of ${name(record.target.name)} (${name(record.target.id)}), asked by ${record.requester.name} at ${when(record.createdAt)}. It is ${state}${progress.why ? md`: ${progress.why}` : ""}.`;
  return message(
    readable(head),
    section(head),
    ...(record.approval
      ? [context(md`${record.approval.why} · digest ${name(shortDigest(record.approval.digest))}`)]
      : []),
    ...(cast.length > 0 ? [section(lines(md`*Votes*`, ...cast))] : []),
    section(lines(md`*Steps*`, ...steps.slice(-25))),
  );
}

async function waiting(person: Person, talk: Talk): Promise<Message> {
  const { policy, ourTeamId } = talk;
  const open = await talk.store.getMany(await talk.store.openIds());
  const drafts = open.filter(({ state, record }) => state === "draft" && record.approval);
  if (drafts.length === 0) return sentence(md`Nothing waits for approval.`);
  const isMine = (request: (typeof drafts)[number]) =>
    !voteRefusal({ policy, voter: person, ourTeamId, requesterId: request.record.requester.id }) &&
    !request.votes.some(({ voterId }) => voterId === person.id);
  const sorted = drafts.toSorted((a, b) => Number(isMine(b)) - Number(isMine(a)));
  const rows = sorted.slice(0, 15).flatMap((request) => {
    const { record } = request;
    const yes = request.votes.filter(({ vote }) => vote === "approve").length;
    const text = md`${isMine(request) ? "👉 " : ""}*${record.command}* ${name(record.target.name)}, asked by ${record.requester.name}${record.reason ? md`: “${record.reason}”` : ""}. ${yes} of ${record.approval?.required ?? 1}, until ${when(record.approval?.expiresAt ?? 0, "{time}")}.`;
    return [section(text)];
  });
  const mine = sorted.filter(isMine).length;
  const title = md`${drafts.length} waiting for approval, ${mine} for you. The buttons are on each request's own message, with the facts.`;
  return message(readable(title), section(title), ...rows);
}
