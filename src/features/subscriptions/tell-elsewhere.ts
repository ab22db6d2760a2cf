import type { AfterNote } from "../../attestation/render-attestation.ts";
import { Markdown, md } from "../../messages/markdown.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { outcomeOf } from "../../core/cards/render-result.ts";
import { showRequest } from "../../registry/command-buttons.ts";
import type { Follow } from "../../monitor/news.ts";
import type { NewsLine } from "../../monitor/news.ts";

/** Tells subscribed channels about a change, after its own channel was told. Idempotent. */
export async function tellElsewhere(
  request: StoredRequest,
  command: ChangeCommand,
  to: {
    /** Resolves the project's present name; undefined when it isn't known. */
    projectName(id: string): Promise<string | undefined>;
    /** Resolves the link to a message; undefined when Slack doesn't tell it. */
    linkTo(message: { channelId: string; ts: string } | undefined): Promise<string | undefined>;
    follow: Follow;
    attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  },
): Promise<void> {
  const { record, delivered } = request;
  const { id } = ownerOf(record.target);
  const line = async (): Promise<NewsLine> => ({
    text: madeLine(request, command, await to.attestationNote(request, command)).value,
    link: await to.linkTo(delivered.card),
    button: showRequest(record.id, `${record.command} ${record.target.name}`),
  });
  const projectNameNow = id === "" ? undefined : await to.projectName(id);
  const about = [{ ...record.target, projectNameNow }];
  const saidIn = [record.channelId, delivered.card?.channelId];
  await to.follow([{ event: "changes", key: record.id, about, line, saidIn }]);
}

/** The line, like `✅ Restarted web-2 in 34 s. In payments, requested by olivia.` */
function madeLine(request: StoredRequest, command: ChangeCommand, note?: AfterNote): Markdown {
  const { target, requester } = request.record;
  const isInProject = target.kind === "vm" && target.projectName !== undefined;
  const asked = isInProject ? md`In ${target.projectName}, requested` : md`Requested`;
  const { sign, text } = outcomeOf(request, command, note);
  return md`${sign} ${text} ${asked} by ${requester.name}.`;
}
