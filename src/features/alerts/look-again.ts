import { emptyGroup, endAll, nextHeldAt, saysTheSame, settle } from "./alert-group.ts";
import type { AlertStore } from "./alert-store.ts";
import { auditOf, withGroup } from "./change-group.ts";
import type { AlertSource } from "./sources.ts";
import type { StoredAlert } from "./stored-alert.ts";

/**
 * When a group isn't heard of for `quietMs`, its message says so; after `unheardMs` it is taken as
 * over. Alertmanager and Grafana repeat firing alerts every 4 hours by default, and rarely less
 * than once a day. The other formats tell of an alert once (ms).
 */
const repeated = { quietMs: 12 * 3600_000, unheardMs: 48 * 3600_000 };
const toldOnce = { quietMs: 48 * 3600_000, unheardMs: 7 * 24 * 3600_000 };
const patience: Readonly<Record<AlertSource["format"], typeof repeated>> = {
  alertmanager: repeated,
  grafana: repeated,
  pagerduty: toldOnce,
  plain: toldOnce,
};

/** Looks at groups again when nobody has told anything of them. */
export function createLooks({
  now,
  get,
  move,
  readOpen,
}: Pick<AlertStore, "now" | "get" | "move" | "readOpen">) {
  return {
    /**
     * Marks firing groups that their source no longer mentions: their messages say so, and in the
     * end they are taken as over. Idempotent; any process may call it at any time. `sources` are
     * those of this process, whose gatehouse.yml may be older than that of the process that took a
     * delivery. So a source is removed only if `readInForce`, the sources of the policy in force,
     * lacks it too. A group of a source that only others know is theirs to judge.
     */
    async endUnheard(
      sources: Readonly<Record<string, Pick<AlertSource, "format">>>,
      readInForce: () => Promise<Readonly<Record<string, unknown>> | undefined>,
    ): Promise<void> {
      const at = await now();
      const open = await readOpen();
      const isOurs = ({ record }: StoredAlert) => Object.hasOwn(sources, record.source);
      // It is read after the groups: what took a delivery was in force before its group was stored.
      const inForce = open.every(isOurs) ? undefined : await readInForce();
      for (const before of open) {
        const { record, id } = before;
        const heardAt = record.group.told?.heardAt ?? before.changedAt;
        const source = isOurs(before) ? sources[record.source] : undefined;
        const isRemoved = !source && inForce && !Object.hasOwn(inForce, record.source);
        if (!source && !isRemoved) continue;
        const { quietMs, unheardMs } = source ? patience[source.format] : repeated;
        const isUnheard = at - heardAt > unheardMs;
        if (isRemoved || isUnheard) {
          const silence = isRemoved ? "source-removed" : "unheard";
          const after = withGroup(
            { ...record, silence },
            record.group,
            endAll(record.group, at),
            at,
          );
          await move(before, after, { ...auditOf(id, after), why: silence });
        } else if (at - heardAt > quietMs && record.silence === undefined)
          await move(before, { ...record, silence: "quiet" });
      }
    },

    /**
     * Merges a held delivery whose time has come. Resolves with the revision, and the time until
     * the next look (ms; 0: none).
     */
    async settle(id: string): Promise<{ revision: number; waitMs: number }> {
      const [before, at] = [await get(id), await now()];
      const group = before?.record.group ?? emptyGroup;
      const heldUntil = nextHeldAt(group);
      if (!before || heldUntil === undefined) return { revision: before?.revision ?? 0, waitMs: 0 };
      const { record, revision } = before;
      const settled = settle(group, at);
      if (settled === group) return { revision, waitMs: heldUntil - at };
      const after = withGroup({ ...record, silence: undefined }, group, settled, at);
      const audit = saysTheSame(group, settled) ? undefined : auditOf(id, after);
      const isMoved = await move(before, after, audit);
      if (!isMoved) return { revision, waitMs: 1 };
      const next = nextHeldAt(settled);
      return { revision: revision + 1, waitMs: next === undefined ? 0 : next - at };
    },
  };
}
