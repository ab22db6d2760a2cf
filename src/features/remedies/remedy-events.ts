import { recordedText } from "../../audit/render.ts";
import type { AuditEntry } from "../../audit/read-audit.ts";
import type { Sight } from "../../core/permit/sight.ts";
import { type EventKind, type EventSource, namesIn, ofSeenVms } from "../../core/events/event.ts";
import { tellRecord } from "../../core/cards/tell-record.ts";
import { alertProjects } from "./remedies.ts";

const kind: EventKind = {
  words: ["change judged by its alert", "changes judged by their alerts"],
  weight: "decision",
};

type JudgedVm = Awaited<ReturnType<typeof ofSeenVms>>[number];

/** Keeps the judgments of alerts that the reader heard of: each arrived for a project that they see. */
async function heardOf(judged: readonly JudgedVm[], { only }: Sight): Promise<readonly JudgedVm[]> {
  const alerts = judged.flatMap((entry) =>
    projectsIn(entry.record).map((project) => ({ entry, vm: { ...entry.vm, ...project } })),
  );
  const heard = new Set(await only(Promise.resolve(alerts), ({ vm }) => vm));
  const unheard = new Set(alerts.filter((alert) => !heard.has(alert)).map(({ entry }) => entry));
  return judged.filter((entry) => !unheard.has(entry));
}

function projectsIn(record: AuditEntry["record"]) {
  const { data = [] } = alertProjects.safeParse(record["alertProjects"]);
  return data.map(({ id, name }) => ({ projectId: id, projectName: name }));
}

/** Whether changes ended the alerts that they were to end: the newest judgment of each. */
export const remedyEvents = (personName: (id: string) => Promise<string>): EventSource => ({
  name: "what helped",
  recordKinds: ["remedy"],
  async read(entries, about) {
    const seen = await heardOf(await ofSeenVms(entries, about), about);
    const person = await namesIn(
      seen.map(({ record }) => recordedText(record["who"])),
      personName,
    );
    const byRequest = Map.groupBy(seen, ({ record }) => recordedText(record["request"]));
    return [...byRequest].flatMap(([request, same]) => {
      const last = same.at(-1);
      if (last === undefined) return [];
      const { at, record, vm } = last;
      const text = tellRecord({ ...record, target: vm }, { person, vm: (id) => id });
      const records = same.map(({ id }) => id);
      return { id: `remedy ${request}`, kind, at, endedAt: at, text, records };
    });
  },
});
