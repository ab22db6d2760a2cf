import { UserError } from "../errors.ts";
import { type Steering, steerRoll } from "../rolls/steer-roll.ts";
import { takeBackOpen } from "../rolls/take-back.ts";
import type { Ask } from "./ask.ts";
import { isRefused } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { openPlanned, rollRefusal } from "./roll-plan.ts";
import { isChange, type Talk } from "./talk.ts";

type Press = Extract<Ask, { kind: "button" }>;

const steerings: Readonly<Record<string, Steering>> = {
  "roll:pause": "pause",
  "roll:resume": "resume",
  "roll:stop": "stop",
};

/** A button of a roll. Whoever may run its command here may pause and stop it, not only who asked: it may be on fire. */
export async function pressOnRoll(
  ask: Press,
  value: Record<string, unknown>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const id = String(value["roll"]);
  if (ask.action === "roll:open") return openPlanned(id, ask, reply, talk);
  const steering = steerings[ask.action];
  const roll = await talk.rolls.get(id);
  const command = talk.commands.find(({ name }) => name === roll?.record.command);
  if (!steering || !roll || !command || !isChange(command))
    throw new UserError("This button no longer works.", "The roll it belongs to is gone.");
  const { channelId } = roll.record;
  const card = roll.delivered.card?.channelId ?? channelId;
  if (ask.channelId !== "" && ask.channelId !== card)
    throw new UserError("This button belongs to another channel.");
  const person = await talk.person(ask.userId, ask.teamId);
  if (await isRefused({ command, targets: [], person, channelId }, reply, talk)) return;
  if (steering === "resume") {
    const targets = await talk.rolls.targets(id);
    const refused = rollRefusal(command, targets, person, channelId, talk);
    if (refused !== undefined) throw new UserError(refused, "It stays paused.");
  }
  const steered = await steerRoll(id, steering, person, talk.policyVersion, talk.rolls);
  if (steering === "stop") await takeBackOpen(steered, talk.store);
}
