import { randomUUID } from "node:crypto";
import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { renderRoll } from "../rolls/render-roll.ts";
import { renderRollEnd, rollEndFile } from "../rolls/render-roll-end.ts";
import type { StoredRoll } from "../rolls/roll.ts";
import type { RollStore } from "../rolls/store.ts";
import { startRounds } from "../rounds.ts";
import type { Pace } from "./pace.ts";
import { createPostOnce, isSaid, type Place, unsureMs } from "./post-once.ts";
import { uploadFile } from "./upload.ts";
import type { Web } from "./web.ts";

/**
 * Brings the one message of each roll up to date, and tells in its thread how it ended. Each target's request stays quiet:
 * a roll of 200 VMs is one message, edited every few seconds.
 */
export interface RollDelivery {
  close(): Promise<void>;
}

const hiddenMs = 30_000;
const atOnce = 4;
/** Edits that only show progress come no closer together than this: the workspace has 50 a minute for everybody. */
const usualEditMs = 4000;

export function startRollDelivery(options: {
  rolls: RollStore;
  commands: readonly ChangeCommand[];
  web: Web;
  apiUrl: string;
  pace: Pace;
  log: Log;
  /** How often it is looked whether something is to be told. */
  everyMs: number;
  editMs?: number;
}): RollDelivery {
  const { rolls, web, pace, log, everyMs } = options;
  const editMs = options.editMs ?? usualEditMs;
  const me = randomUUID();
  const postOnce = createPostOnce({ ...options, remember: rolls.setDelivered, now: rolls.now });

  async function deliver(id: string): Promise<void> {
    if (!(await rolls.lease("telling", id, me, hiddenMs))) return rolls.tellLater(id, 200);
    try {
      const roll = await rolls.get(id);
      if (!roll) return await rolls.forgetToTell(id);
      const command = options.commands.find(({ name }) => name === roll.record.command);
      const waitMs = command ? await bringUpToDate(roll, command) : hiddenMs;
      if (waitMs > 0) await rolls.tellLater(id, waitMs);
      else await rolls.told(roll, editMs);
    } finally {
      await rolls.release("telling", id, me).catch(() => undefined);
    }
  }

  /** 0 when everything due has been said, else when to come back (ms). */
  async function bringUpToDate(roll: StoredRoll, command: ChangeCommand): Promise<number> {
    const waitMs = await showCard(roll, command);
    return waitMs === 0 && roll.final ? tellEnd(roll, command) : waitMs;
  }

  async function showCard(roll: StoredRoll, command: ChangeCommand): Promise<number> {
    const { record, delivered, state, revision } = roll;
    const now = Date.now();
    const shown = async () => {
      await rolls.setDelivered(record.id, { shown: `${revision} ${state} ${now}` });
      return 0;
    };
    const card = renderRoll(roll, command);
    if (!delivered.card) {
      const waitMs = await post(roll, "card", card, placeOf(roll));
      return waitMs === 0 ? shown() : waitMs;
    }
    const [at, was, since] = (delivered.shown ?? "").split(" ");
    if (at === String(revision)) return 0;
    if (was === state && now - Number(since) < editMs) return Number(since) + editMs - now;
    const waitMs = await pace.edit(roll.final || was !== state);
    if (waitMs > 0) return waitMs;
    const { channelId: channel, ts } = delivered.card;
    const answer = await web.call("chat.update", { channel, ts, ...card });
    if (answer.ok) return shown();
    if (answer.kind === "limited") {
      await pace.pause("edit", answer.retryAfterMs);
      return answer.retryAfterMs;
    }
    if (answer.kind !== "refused") return unsureMs;
    log.warn("slack.refused-edit", { roll: record.id, error: answer.error });
    return shown();
  }

  async function tellEnd(roll: StoredRoll, command: ChangeCommand): Promise<number> {
    const { id } = roll.record;
    const { said } = (await rolls.get(id))?.delivered ?? roll.delivered;
    const [targets, outcomes] = await Promise.all([rolls.targets(id), rolls.outcomes(id)]);
    const place = threadOf(roll);
    if (!isSaid(said["end"])) {
      const end = renderRollEnd(roll, targets, outcomes, command);
      const waitMs = await post(
        { ...roll, delivered: { ...roll.delivered, said } },
        "end",
        end,
        place,
      );
      if (waitMs > 0) return waitMs;
    }
    const content = rollEndFile(roll, targets, outcomes, command);
    if (content === undefined || said["file"] !== undefined) return 0;
    // Marked before: a list that is missing is better than one that comes again and again
    await rolls.setDelivered(id, { "said:file": "1" });
    const title = `${command.say.verb} of ${targets.length} VMs`;
    const to = { channelId: place.channelId, threadTs: place.threadTs };
    const sent = await uploadFile({ ...options, to, name: `${id}.csv`, title, content });
    if (sent.is !== "posted") log.warn("roll.list-not-sent", { roll: id, why: sent.why });
    return 0;
  }

  async function post(
    roll: StoredRoll,
    what: string,
    said: Message,
    place: Place,
  ): Promise<number> {
    const { id, createdAt } = roll.record;
    const subject = { id, createdAt, said: roll.delivered.said };
    const posted = await postOnce(subject, what, said, place);
    // A card that was found shows what was true when it was posted: come back and edit it
    if (posted.is === "said") return posted.found && what === "card" ? 1 : 0;
    if (posted.is === "later") return posted.ms;
    if (roll.delivered.isElsewhere) {
      log.error("slack.nowhere-to-say", { roll: id, what, error: posted.error });
      await rolls.setDelivered(id, { [`said:${what}`]: "nowhere" });
      return 0;
    }
    await rolls.setDelivered(id, { elsewhere: "1" });
    return 1;
  }

  async function round(): Promise<void> {
    try {
      const ids = await rolls.takeDue(atOnce, hiddenMs);
      const all = ids.map((id) =>
        deliver(id).catch((error: unknown) => log.error("roll.not-told", { roll: id, error })),
      );
      await Promise.all(all);
    } catch (error) {
      log.debug("roll.told-later", { error });
    }
  }

  return startRounds("rolls-told", everyMs, round, log);
}

/** Where the channel doesn't take our messages, the asker's direct messages do. */
function placeOf({ record, delivered }: StoredRoll): Place {
  if (delivered.isElsewhere) return { channelId: record.requester.id };
  return {
    channelId: record.channelId,
    ...(record.threadTs ? { threadTs: record.threadTs } : {}),
  };
}

function threadOf(roll: StoredRoll): Place {
  const { card } = roll.delivered;
  const threadTs = roll.delivered.isElsewhere ? card?.ts : (roll.record.threadTs ?? card?.ts);
  return {
    channelId: card?.channelId ?? placeOf(roll).channelId,
    ...(threadTs ? { threadTs } : {}),
  };
}
