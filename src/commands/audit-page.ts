import type { Inventory } from "../fleet/inventory/inventory.ts";
import { recordedText } from "../audit/render.ts";
import { type AuditEntry, type AuditFilter, actIdIn, readAudit } from "../audit/read-audit.ts";
import { compareIds } from "../audit/seal.ts";
import { aboutRequest } from "../core/cards/asking.ts";
import { actIdOf, tellAct } from "../core/cards/tell-act.ts";
import { type Called, tellRecord, tellStep } from "../core/cards/tell-record.ts";
import type { Event } from "../core/events/event.ts";
import { eventsOf } from "../core/events/read-events.ts";
import { requestsOf } from "../core/request/lists.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { type Message } from "../messages/blocks.ts";
import { paragraph, waysRow } from "../messages/parts.ts";
import { List, lineList, sentence, card } from "../messages/card.ts";
import { type Markdown, counted, dayAndTime, md, name, when } from "../messages/markdown.ts";
import { type Command, requestable, runButton } from "../registry/define.ts";
import type { ReadContext } from "./context.ts";

/** What a page is about: the filter, in words, and as it was typed. */
export interface AuditPageOf {
  filter: AuditFilter;
  about: string;
  input: string;
  /** The ID of a record: only acts that began before it are shown. */
  before?: string | undefined;
}

/** One act of the trail: a request, a rollout, or something that was done at once. */
interface Act extends FoundAct {
  /** The requests in it that are still kept. */
  requests: readonly StoredRequest[];
}

interface FoundAct {
  /** Undefined for what is one record. */
  id: string | undefined;
  /** Oldest first. */
  entries: readonly [AuditEntry, ...AuditEntry[]];
  /** The IDs of the requests in it that are still kept. */
  requestIds: readonly string[];
}

/** Whether an act has this ID, as people type it: a request or a rollout. */
export const isActId = (words: string) => /^(?:r|roll)-[a-z0-9]{4,}$/.test(words);

/** More rows don't fit into a message, and a phone. */
const perPage = 20;
/** The records of many pages, read in a fraction of a second. */
const mostRecords = 5_000;
const mostSteps = 60;

/** Shows acts, newest first, or, for one act, each of its steps. */
export async function auditPage(of: AuditPageOf, context: ReadContext): Promise<Message> {
  const { filter, about, before } = of;
  const page = await readAudit({
    ...context.trail,
    ...filter,
    most: mostRecords,
    ...(before === undefined ? {} : { before }),
  });
  const matching = await actsIn(page.entries, context);
  const acts = await withRequests(
    matching,
    filter.act === undefined ? perPage : matching.length,
    context,
  );
  await context.learnNames(acts.flatMap(({ entries }) => entries.flatMap(peopleIn)));
  const called = await callersIn(context);
  const events = await eventsOf(context).of(entriesIn(acts));
  const words = (act: Act) => wordsOf(act, { events, called, commands: context.commands });
  const on = about === "" ? md`` : md` about ${name(about)}`;
  const [first] = acts;
  if (first === undefined) {
    const none = page.isMore
      ? md`Nothing${on} in the last 50,000 audit records.`
      : md`The audit trail has no ${before === undefined ? "" : "older "}records${on}.`;
    return sentence(none);
  }
  if (filter.act !== undefined && acts.length === 1) return stepsOf(first, words, called);
  const rows = acts.map((act) => {
    const text = md`${dayAndTime(act.entries[0].at)} ${words(act)}`;
    return paragraph(text, detailsOf(act));
  });
  const isOlder = (shown: number) => shown < matching.length || page.isMore === true;
  const older = (shown: number) =>
    runButton("Older", "gatehouse.audit:older", {
      ...(of.input === "" ? {} : { target: of.input }),
      before: acts[shown - 1]?.entries[0].id ?? before,
    });
  const title = (shown: number) => md`*Audit trail*${on}: ${counted(shown, "act")}, newest first.`;
  return card({
    push: title(rows.length),
    body: [
      new List(rows.length, (shown) => [
        paragraph(title(shown)),
        ...rows.slice(0, shown),
        isOlder(shown) ? waysRow([older(shown)]) : undefined,
      ]),
    ],
  });
}

function peopleIn({ record: { who, requester } }: AuditEntry): string[] {
  return [who, requester].filter((id) => typeof id === "string");
}

/** The acts of these records, which are newest first. An act stands where it began. */
async function actsIn(
  entries: readonly AuditEntry[],
  { journal }: Pick<ReadContext, "journal">,
): Promise<readonly FoundAct[]> {
  const oldestFirst = entries.toReversed();
  const ids = oldestFirst.map(({ record }) => recordedText(record["request"]));
  // What a safety snapshot saves is told even if only the snapshot's records are read.
  const wanted = [...ids, ...oldestFirst.map(({ record }) => actIdIn(record) ?? "")];
  const parents = new Map<string, string>();
  const kept = wanted.filter((id) => id.startsWith("r-"));
  for (const request of await requestsOf(kept, journal))
    parents.set(request.record.id, actIdOf(request));
  const byAct = Map.groupBy(parents.keys(), (id) => parents.get(id));
  const actOf = ({ id, record }: AuditEntry) =>
    parents.get(recordedText(record["request"])) ?? actIdIn(record) ?? id;
  return [...Map.groupBy(oldestFirst, actOf)]
    .flatMap(([key, [first, ...more]]): FoundAct[] => {
      if (first === undefined) return [];
      const id = actIdIn(first.record) === undefined ? undefined : key;
      return [{ id, entries: [first, ...more], requestIds: byAct.get(key) ?? [] }];
    })
    .toReversed();
}

/** The first acts with their requests. Those of all acts together would be large. */
async function withRequests(
  acts: readonly FoundAct[],
  most: number,
  { journal }: Pick<ReadContext, "journal">,
): Promise<readonly Act[]> {
  const shown: Act[] = [];
  for (const act of acts.slice(0, most))
    shown.push({ ...act, requests: await journal.getMany(act.requestIds) });
  return shown;
}

/** How people and VMs are called now; what is gone keeps its ID. */
async function callersIn({
  inventory,
  nameOf,
}: {
  inventory: Inventory;
  nameOf(id: string): string | undefined;
}): Promise<Called> {
  const [vms, projects] = await Promise.all([inventory.vms(), inventory.projects()]);
  const names = new Map([...vms, ...projects].map(({ id, name: called }) => [id, called]));
  return { person: (id) => nameOf(id) ?? id, vm: (id) => names.get(id) ?? id };
}

/** The records of these acts, oldest first. */
const entriesIn = (acts: readonly Act[]): readonly AuditEntry[] =>
  acts.flatMap(({ entries }) => entries).toSorted((a, b) => compareIds(a.id, b.id));

/** An act as its event tells it, or by itself where nobody else tells such acts. */
function wordsOf(
  { id, entries, requests: [request] }: Act,
  known: { events: readonly Event[]; called: Called; commands: readonly Command[] },
): Markdown {
  const recordIds = new Set(entries.map((entry) => entry.id));
  const event =
    known.events.find((candidate) => candidate.id === id) ??
    known.events.findLast(({ records }) => records.some((record) => recordIds.has(record)));
  if (event) return event.text;
  if (!request) return tellRecord((entries.at(-1) ?? entries[0]).record, known.called);
  const command = requestable(known.commands).find(
    (candidate) => candidate.name === request.record.command,
  );
  return tellAct(request, command);
}

/** Opens the steps of an act that has several. */
function detailsOf({ id, entries: [{ record }], requests: [request] }: Act) {
  if (id === undefined || !isActId(id)) return undefined;
  const about = request
    ? aboutRequest(request.record)
    : `${recordedText(record["command"])} ${id}`.trim();
  return runButton("Details", "gatehouse.audit", { target: id }, about);
}

/** An act with each record as a line. */
function stepsOf(act: Act, words: (act: Act) => Markdown, called: Called): Message {
  const { id, entries, requests } = act;
  const isOne = new Set(entries.map(({ record }) => record["request"])).size < 2;
  const rows = entries.map(({ at, record }) => {
    const { target } = record;
    const isNamed = typeof target === "object" && target !== null && "name" in target;
    const on = isOne || !isNamed ? md`` : md` ${name(recordedText(target.name))}:`;
    return md`• ${when(at)}${on} ${tellStep(record, called)}`;
  });
  const [first] = requests;
  return card({
    title: md`${dayAndTime(entries[0].at)} ${words(act)} (${name(id ?? first?.record.id)})`,
    body: [
      paragraph(md`*Steps*`),
      lineList(rows.slice(0, mostSteps), { beyond: Math.max(0, rows.length - mostSteps) }),
    ],
  });
}
