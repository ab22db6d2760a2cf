import type { Journal } from "../../core/request/journal.ts";
import * as z from "zod";
import { openAnchors } from "../../audit/anchors.ts";
import { exportAudit } from "../../audit/export.ts";
import { renderVerdict } from "../../audit/render.ts";
import { findSigningKey } from "../../audit/signing-key.ts";
import { type AuditFilter, peopleInTrail } from "../../audit/read-audit.ts";
import { isStreamId } from "../../audit/seal.ts";
import { verifyAudit } from "../../audit/verify.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { counted, md, name } from "../../messages/markdown.ts";
import { waysRow } from "../../messages/parts.ts";
import { batches } from "../../redis/batches.ts";
import { type Answer, defineCommand, rest, runButton } from "../../registry/define.ts";
import { fold, plainForm } from "../../text/fold.ts";
import { type PeopleNames, type TrailPlace, type ReadContext, targetMeant } from "../context.ts";
import { auditPage, isActId } from "../audit-page.ts";

export const audit = defineCommand({
  name: "gatehouse audit",
  summary: "Show the audit trail, or check and export it (verify, export)",
  example: "/gatehouse audit verify",
  class: "administer",
  args: z.object({
    target: rest(
      300,
      "a VM, a project, a request, a rollout, or a person by name, @mention, or ID; `verify` checks the chain, `export` sends it as a file",
    ).optional(),
    before: z
      .string()
      .refine(isStreamId, { error: "must be the ID of an audit record: `1764165600000-0`" })
      .optional()
      .meta({ isFlag: true, description: "the ID of a record: only what began before it" }),
  }),
  async answer({ target = "", before }, context: ReadContext) {
    const { journal, person, trail } = context;
    const wanted = target.trim();
    // Reads of the trail are recorded in it.
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
    const meant = wanted === "" ? [{ filter: {}, about: "" }] : await meantBy(wanted, context);
    const [match] = meant;
    if (!match || meant.length > 1) return whichOne(wanted, meant);
    const { filter, about, input = wanted } = match;
    return auditPage({ filter, about, input, before }, context);
  },
});

/** A file that is sent through Slack is in memory as a whole. A record takes about 900 bytes of it. */
const mostFileBytes = 8 * 1024 * 1024;

async function exported(trail: ReadContext["trail"]): Promise<Answer> {
  const file = await exportAudit({ ...trail, signingKey: findSigningKey(trail.dataDir) });
  const parts: string[] = [];
  let bytes = 0;
  for await (const part of file.text) {
    bytes += Buffer.byteLength(part);
    if (bytes > mostFileBytes) return { message: sentence(tooLarge(file.to - file.from + 1)) };
    parts.push(part);
  }
  const text = md`The file in your direct messages contains ${counted(file.written, "record")}. It explains how to verify it; ${"node gatehouse.mjs audit verify FILE"} does so too.`;
  const fileName = `gatehouse-audit-${new Date().toISOString().slice(0, 10)}.json`;
  return {
    message: sentence(text),
    file: { name: fileName, title: "The audit trail", content: parts.join("") },
  };
}

const tooLarge = (records: number) =>
  md`The audit trail is too large for a file in Slack: ${counted(records, "record")}. Nothing was sent. Ask an operator to run ${"node gatehouse.mjs audit export FILE"} beside a gateway, or name a person, a VM, or a request after ${"/gatehouse audit"}.`;

/**
 * One meaning of a word: the filter for the trail, its name in the answer, and an input that can
 * mean nothing else.
 */
interface Meant {
  filter: AuditFilter;
  about: string;
  input?: string;
}

/**
 * Lists the meanings of a word: a request by ID; a person by mention, ID, or name; a VM or a
 * project by name; or, for something that no longer exists, by the name or ID that was recorded.
 * There are several when people, or a person and a target, have the same name.
 */
async function meantBy(wanted: string, context: ReadContext): Promise<readonly Meant[]> {
  const act = plainForm(wanted);
  if (isActId(act)) return [{ filter: { act }, about: act }];
  const [, mentioned] = /^<@([UW][A-Z0-9]{2,})(?:\|[^>]*)?>$/.exec(wanted) ?? [];
  if (mentioned !== undefined) return [await meaningPerson(mentioned, context)];
  const isPerson = wanted.startsWith("@");
  const word = isPerson ? wanted.slice(1).trim() : wanted;
  const target = isPerson ? undefined : await targetMeant(word, context);
  const ids = /^[UW][A-Z0-9]{5,}$/.test(word) ? [word] : await peopleCalled(word, context);
  const people = await Promise.all(ids.map((id) => meaningPerson(id, context)));
  if (target) {
    const how = people.length > 0 ? target.kind : word === target.id ? target.id : "";
    const about = how === "" ? word : `${target.name} (${how})`;
    return [{ filter: { targetId: target.id }, about, input: target.id }, ...people];
  }
  if (people.length > 0 || isPerson) return people;
  return [{ filter: { targetId: word, targetName: word }, about: word }];
}

async function meaningPerson(id: string, { learnNames, nameOf }: PeopleNames): Promise<Meant> {
  await learnNames([id]);
  const called = nameOf(id);
  return { filter: { who: id }, about: called === undefined ? id : `${called} (${id})`, input: id };
}

/** People are looked up in Slack one by one, and Slack limits such calls per minute. */
const mostLookedUp = 100;
const mostRequests = 1_000;

/**
 * The IDs of people in the trail who have this name now, or had it when they requested something.
 */
async function peopleCalled(
  word: string,
  { trail, journal, learnNames, nameOf }: { trail: TrailPlace; journal: Journal } & PeopleNames,
): Promise<readonly string[]> {
  const ids = await peopleInTrail(trail);
  await learnNames(ids.slice(0, mostLookedUp));
  const isCalled = (called: string | undefined) =>
    called !== undefined && fold(called) === fold(word);
  const requesterIds = ids.filter((id) => isCalled(nameOf(id)));
  for (const batch of batches(await journal.recentIds({}, mostRequests)))
    for (const { record } of await journal.getMany(batch))
      if (isCalled(record.requester.name)) requesterIds.push(record.requester.id);
  return [...new Set(requesterIds)];
}

const mostOffered = 10;

/** The answer when several have the name, or nobody. */
function whichOne(wanted: string, meant: readonly Meant[]): Message {
  if (meant.length === 0)
    return sentence(
      md`Gatehouse found nobody called ${name(wanted)} in the audit trail. It looks up the names of ${mostLookedUp} people at most, so name others by @mention or by their ID.`,
    );
  const choices = meant
    .slice(0, mostOffered)
    .map(({ about, input = about }, n) =>
      runButton(about, `gatehouse.audit:${n}`, { target: input }),
    );
  return sentence(
    md`${name(wanted)} can be ${meant.length} things in the audit trail. Which one?`,
    waysRow(choices),
  );
}
