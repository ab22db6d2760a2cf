import type { Policy } from "../config/policy-file.ts";
import { showRequest } from "../digests/line-buttons.ts";
import type { Follow, Followed, Line } from "../digests/subscriptions.ts";
import { buttons, type Message, message, news, section } from "../messages/message.ts";
import { lines, Markdown, md, name } from "../messages/text.ts";
import { ownerOf } from "../policy/judged.ts";
import { channelOfTeam, placeOf } from "../policy/scope.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { calledName } from "../registry/target.ts";
import type { StoredRequest } from "./journal/record.ts";
import { deedOf } from "./render/asking.ts";
import { headline, symbolOf } from "./render/render-result.ts";

interface Elsewhere {
  /** Read at each use: it may be another one by then. */
  readonly policy: Policy;
  /** The name of a project now; undefined where it isn't known. */
  projectName(id: string): Promise<string | undefined>;
  /** The address of a message in Slack, where Slack says it. */
  linkTo(message: { channelId: string; ts: string } | undefined): Promise<string | undefined>;
  /** Posted once per ID. */
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
  follow: Follow;
}

/**
 * What channels other than its own read of a request, once its own has read it: each reminder of an unknown outcome goes to
 * the team that has the target; a change that was made, to who is subscribed. Idempotent.
 */
export async function tellElsewhere(
  request: StoredRequest,
  command: ChangeCommand,
  to: Elsewhere,
): Promise<void> {
  const { record, state, final, progress } = request;
  if (state === "unknown") return tellTeam(request, command, to);
  const wasMade = final && (state === "done" || state === "failed") && !progress.already;
  if (!wasMade || record.via === "safety") return;
  const { projectNameNow, here, link } = await placed(request, to);
  const line = async (): Promise<Line> => ({
    text: madeLine(request, command).value,
    link: await link(),
    button: showRequest(record.id),
  });
  const about: Followed = { ...record.target, projectNameNow };
  await to.follow([{ event: "changes", key: record.id, about: [about], line, saidIn: here }]);
}

async function tellTeam(
  request: StoredRequest,
  command: ChangeCommand,
  to: Elsewhere,
): Promise<void> {
  const { record, progress } = request;
  // That it is unknown, the team reads from the request's own messages
  if ((progress.reminders ?? 0) === 0) return;
  const { projectNameNow, here, link } = await placed(request, to);
  const owner = ownerOf(record.target);
  const names = [owner.name, projectNameNow].filter((one) => one !== undefined);
  const places = new Set(names.map((one) => placeOf(to.policy, { id: owner.id, name: one })));
  const [place = ""] = places;
  const channelId = channelOfTeam(to.policy, place);
  if (places.size !== 1 || channelId === undefined || here.includes(channelId)) return;
  const id = `unknown-${record.id}-${progress.reminders ?? 0}`;
  await to.announce({
    id,
    channelId,
    message: stillUnknownElsewhere(request, command, await link()),
  });
}

/** The channels that know already, and where the rest of the story is. */
async function placed({ record, delivered }: StoredRequest, to: Elsewhere) {
  const { id } = ownerOf(record.target);
  const { card } = delivered;
  return {
    projectNameNow: id === "" ? undefined : await to.projectName(id),
    here: [record.channelId, card?.channelId],
    link: () => to.linkTo(card),
  };
}

/** `✅ Restarted web-2: RUNNING → RUNNING in 34 s. In payments, requested by olivia.` */
function madeLine(request: StoredRequest, command: ChangeCommand): Markdown {
  const { target, requester } = request.record;
  const where = target.kind === "vm" && target.projectName !== undefined;
  const by = md`equested by ${requester.name}.`;
  return md`${symbolOf(request, command)} ${headline(request, command)} ${where ? md`In ${target.projectName}, r` : "R"}${by}`;
}

/** For the team that has the target, where somebody requested it elsewhere. */
export function stillUnknownElsewhere(
  request: StoredRequest,
  command: ChangeCommand,
  link: string | undefined,
): Message {
  const { record, progress } = request;
  const text = lines(
    md`❓ *Still unknown*: did “${command.say.verb} ${name(calledName(record.target))}” happen? Requested by ${record.requester.name} in another channel${progress.why ? md` (${progress.why})` : ""}.`,
    md`Check the target, then record what happened on ${link === undefined ? "its message" : new Markdown(`<${link}|its message>`)}. Nothing is resent automatically.`,
  );
  const short = md`❓ Still unknown: did “${deedOf(record, command)}” happen? ${record.requester.name} requested it elsewhere.`;
  return message(news(short), section(text), buttons([showRequest(record.id)]));
}
