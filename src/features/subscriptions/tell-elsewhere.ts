import type { AfterNote } from "../../attestation/render-attestation.ts";
import { Markdown, md } from "../../messages/markdown.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { tellAct } from "../../core/cards/tell-act.ts";
import { showRequest } from "../../registry/command-buttons.ts";
import type { Follow, NewsLine } from "../../monitor/news.ts";

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
  await to.follow([{ topic: "changes", key: record.id, about, line, saidIn }]);
}

/** The line, like `✅ olivia restarted web-2 in 34 s. In payments.` */
function madeLine(request: StoredRequest, command: ChangeCommand, note?: AfterNote): Markdown {
  const { target } = request.record;
  const isInProject = target.kind === "vm" && target.projectName !== undefined;
  const withEvidence = { ...request, delivered: { ...request.delivered, evidence: note } };
  return md`${tellAct(withEvidence, command)}${isInProject ? md` In ${target.projectName}.` : ""}`;
}
