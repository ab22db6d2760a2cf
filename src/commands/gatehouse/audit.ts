import * as z from "zod";
import { findSigningKey, openAnchors } from "../../audit/sealer.ts";
import { exportAudit, exportText } from "../../audit/export.ts";
import { type AuditFilter, readAudit } from "../../audit/trail.ts";
import { renderAudit, renderVerdict } from "../../audit/render.ts";
import { verifyAudit } from "../../audit/verify.ts";
import { md, sentence } from "../../messages/message.ts";
import { type Answer, defineCommand } from "../../registry/define.ts";
import { type ReadContext, targetMeant } from "../context.ts";
import { withNames } from "../last-known.ts";

const most = 30;

export const audit = defineCommand({
  name: "gatehouse audit",
  summary: "Show the audit trail, or check and export it (verify, export)",
  example: "/gatehouse audit verify",
  class: "administer",
  args: z.object({
    target: z.string().max(300).optional().meta({
      description:
        "a VM, project, or request; `verify` checks the chain, `export` sends it as a file",
    }),
  }),
  async answer({ target = "" }, context: ReadContext) {
    const { journal, person, trail } = context;
    const wanted = target.trim();
    // Reads of the trail are recorded in it
    await journal.note({
      what: wanted === "export" ? "audit-export" : "audit-read",
      who: person.id,
      team: person.teamId,
      about: wanted.slice(0, 100),
    });
    if (wanted === "verify") {
      const anchors = openAnchors(trail.dataDir, trail.key.namespace).all;
      return renderVerdict(await verifyAudit({ ...trail, anchors }));
    }
    if (wanted === "export") return exported(trail);
    const filter = wanted === "" ? {} : await filterOf(wanted, context);
    const page = await readAudit({ ...trail, most, ...filter });
    await context.learnNames(page.entries.flatMap(({ record }) => peopleIn(record)));
    return renderAudit(page, wanted, (text) => withNames(text, context.nameOf));
  },
});

function peopleIn({ who, requester }: Readonly<Record<string, unknown>>): string[] {
  return [who, requester].filter((id) => typeof id === "string");
}

async function exported(trail: ReadContext["trail"]): Promise<Answer> {
  const file = await exportAudit({ ...trail, signingKey: findSigningKey(trail.dataDir) });
  const text = md`The file in your direct messages contains ${file.records.length} records. It explains how to verify it; ${"node gatehouse.mjs audit verify FILE"} does so too.`;
  const name = `gatehouse-audit-${new Date().toISOString().slice(0, 10)}.json`;
  return {
    message: sentence(text),
    file: { name, title: "The audit trail", content: exportText(file) },
  };
}

/** A request by ID, a person by mention, a VM or a project by name, or by ID when it no longer exists. */
async function filterOf(wanted: string, context: ReadContext): Promise<AuditFilter> {
  if (/^r-[a-z0-9]{4,}$/.test(wanted)) return { requestId: wanted };
  const who = /^<?@?([UW][A-Z0-9]{2,})/.exec(wanted)?.[1];
  if (who) return { who };
  return { targetId: (await targetMeant(wanted, context))?.id ?? wanted };
}
