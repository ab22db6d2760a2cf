import { statusFacts } from "../../fleet/compute/compute.ts";
import type { Scope } from "../../fleet/inventory/inventory.ts";
import { refusedInError } from "../../core/cards/render-result.ts";
import { seesUnder } from "../../core/permit/access.ts";
import type { Journal } from "../../core/request/journal.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { type Command, requestable, type Target } from "../../registry/define.ts";
import type { Advice, RemedyPart } from "../alert-part.ts";
import { detailsOf, isFiring, type StoredAlert } from "./alerts.ts";
import { type LastChange, lastChangeIn } from "./last-change.ts";

/** The newest requests of a VM that are read for its alerts. */
const readOfEach = 10;

interface RecentFacts {
  lastChange: LastChange | undefined;
  advice: readonly Advice[];
  /** Names of commands that the compute service refused for the VM's ERROR. */
  refused: ReadonlySet<string>;
}

/**
 * What the journal and other features know about a VM with an alert. `scope`: what the readers may
 * see. What can't be read is left out, because an alert must not wait for it.
 */
export async function readRecentFacts(
  target: Target,
  alert: StoredAlert,
  on: {
    store: Pick<Journal, "getMany" | "recentIds">;
    commands: readonly Command[];
    remedies: RemedyPart | undefined;
    scope: Scope | undefined;
    now: number;
  },
): Promise<RecentFacts> {
  const { store, commands, remedies, scope, now } = on;
  const asked = { targetId: target.id, most: readOfEach };
  const last = await recentRequests(asked, store).catch(() => []);
  const seen = last.filter(({ record: { target: then } }) =>
    seesUnder(scope, then.projectId, [then.projectName, target.projectName]),
  );
  const names = namesFiringOn(target.id, alert);
  const advice =
    names.length > 0
      ? remedies?.advise(target.id, names, { scope, projectName: target.projectName })
      : undefined;
  return {
    lastChange: lastChangeIn(seen, { commands: requestable(commands), now }),
    advice: (await advice?.catch(() => [])) ?? [],
    refused: statusFacts(target.status).isAlarming
      ? refusedInError({ vm: target, last })
      : new Set(),
  };
}

function namesFiringOn(vmId: string, { record: { group, vms } }: StoredAlert): readonly string[] {
  const labels = new Set(vms.flatMap(({ label, id }) => (id === vmId ? [label] : [])));
  const firing = detailsOf(group).filter((detail) => isFiring(detail) && labels.has(detail.vm));
  return [...new Set(firing.map(({ name }) => name))];
}
