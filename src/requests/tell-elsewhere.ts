import { showRequest } from "../digests/line-buttons.ts";
import type { Follow, Followed, Line } from "../digests/subscriptions.ts";
import { type Markdown, md } from "../messages/text.ts";
import { ownerOf } from "../policy/judged.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { StoredRequest } from "./journal/record.ts";
import { headline, symbolOf } from "./render/render-result.ts";

interface Elsewhere {
  /** The name of a project now; undefined where it isn't known. */
  projectName(id: string): Promise<string | undefined>;
  /** The address of a message in Slack, where Slack says it. */
  linkTo(message: { channelId: string; ts: string } | undefined): Promise<string | undefined>;
  follow: Follow;
}

/** A change that was made, and not only in preparation of another. */
export function isToldElsewhere({ record, state, final, progress }: StoredRequest): boolean {
  const wasMade = final && (state === "done" || state === "failed") && !progress.already;
  return wasMade && record.via !== "safety";
}

/** What channels that are subscribed read of a change that was made, once its own has read it. Idempotent. */
export async function tellElsewhere(
  request: StoredRequest,
  command: ChangeCommand,
  to: Elsewhere,
): Promise<void> {
  const { record } = request;
  if (!isToldElsewhere(request)) return;
  const { projectNameNow, here, link } = await placed(request, to);
  const line = async (): Promise<Line> => ({
    text: madeLine(request, command).value,
    link: await link(),
    button: showRequest(record.id),
  });
  const about: Followed = { ...record.target, projectNameNow };
  await to.follow([{ event: "changes", key: record.id, about: [about], line, saidIn: here }]);
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
