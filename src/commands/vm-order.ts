import type { KnownVm } from "../inventory/inventory.ts";
import { byTrouble } from "./status-words.ts";

type Order = (a: KnownVm, b: KnownVm) => number;

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** Names decide between equals, so that pages never overlap. */
const then =
  (first: Order): Order =>
  (a, b) =>
    first(a, b) || compare(a.name, b.name) || compare(a.id, b.id);

/** In which order VMs can be listed. Sizes: the largest first; ages: the newest first; what isn't known comes last. */
export const vmOrders = {
  trouble: then(byTrouble),
  name: then(() => 0),
  project: then((a, b) => compare(a.projectName, b.projectName)),
  cpu: then((a, b) => compare(b.specs?.cpu ?? 0, a.specs?.cpu ?? 0)),
  memory: then((a, b) => compare(b.specs?.memory ?? 0, a.specs?.memory ?? 0)),
  newest: then((a, b) => compare(b.createdAt ?? "", a.createdAt ?? "")),
} satisfies Record<string, Order>;

export type VmOrder = keyof typeof vmOrders;
