import type { RequestRecord } from "./record.ts";

/** How long a request is kept after it has ended. */
export const keepFinalMs = 90 * 24 * 3600_000;

/** What the audit trail says about a step of a request. Ids, not names, for people; no parameters that could be secret. */
export function auditRecord(
  record: RequestRecord,
  entry: Record<string, unknown>,
  actor?: string,
): string {
  const { target, requester, approval } = record;
  return JSON.stringify({
    what: "request",
    request: record.id,
    command: record.command,
    target: { kind: target.kind, id: target.id, name: target.name },
    requester: requester.id,
    team: requester.teamId,
    ...(approval ? { digest: approval.digest } : {}),
    ...(record.roll ? { roll: record.roll } : {}),
    ...(actor ? { who: actor } : {}),
    ...entry,
  });
}
