import { hintOf, md } from "../messages/text.ts";
import { lists } from "../policy/access.ts";
import { type PolicyRefusal, refusal } from "../policy/refusal.ts";
import type { Command } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { say } from "./apology.ts";
import type { Reply } from "./reply.ts";
import type { Talk } from "./talk.ts";

export interface AskedFor {
  command: Command;
  targets: readonly Target[];
  person: Person;
  channelId: string;
  vmNames?: readonly string[];
}

/** The rule that says no to this person, if one does. */
export function refusalOf(
  asked: AskedFor,
  talk: Pick<Talk, "policy" | "ourTeamId" | "nameOf">,
): PolicyRefusal | undefined {
  return refusal({ ...asked, policy: talk.policy, ourTeamId: talk.ourTeamId, nameOf: talk.nameOf });
}

/** Whether names of VMs and projects may be shown to this person: lists, pickers and the Home tab show nobody else any. */
export function maySeeNames(person: Person, talk: Pick<Talk, "policy" | "ourTeamId">): boolean {
  const isIn = lists(talk.policy, person, talk.ourTeamId);
  return isIn.some((list) => list === "view" || list === "operate" || list === "administer");
}

/** Says no where a rule does, in words that tell who can help, and leaves an audit record of it. */
export async function isRefused(
  asked: AskedFor,
  reply: Pick<Reply, "privately">,
  talk: Talk,
): Promise<boolean> {
  const refused = refusalOf(asked, talk);
  if (!refused) return false;
  await noteRefusal(asked, refused.rule, talk);
  await reply.privately(say(md`${refused.text}`, hintOf(refused.hint)));
  return true;
}

export async function noteRefusal(
  asked: AskedFor,
  rule: string,
  talk: Pick<Talk, "store">,
): Promise<void> {
  await talk.store.note({
    what: "refusal",
    who: asked.person.id,
    team: asked.person.teamId,
    command: asked.command.name,
    targets: asked.targets.map(({ id }) => id),
    rule,
  });
}
