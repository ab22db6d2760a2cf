import type { Unverifiable } from "../monitor/drift-records.ts";
import { type Failing, statusSign } from "../fleet/inventory/status-order.ts";
import { context } from "../messages/blocks.ts";
import { lines, md, name } from "../messages/markdown.ts";

/** The state of attestation of VMs. */
interface Attested {
  failing: Failing;
  unverifiable: Unverifiable;
}

interface Row {
  id: string;
  name: string;
  status: string;
}

/** The first cells of a VM's row, the sign first: people look for it, and long names hide what follows. */
export function vmCells(
  { id, status }: Row,
  called: string,
  { failing, unverifiable }: Attested,
): string[] {
  if (failing.has(id)) return [`🔴 ${called}`, `${status}, fails attestation`];
  const isGreen = statusSign(status) === statusSign("RUNNING");
  return isGreen && unverifiable.has(id)
    ? [`❔ ${called}`, `${status}, can't be verified`]
    : [`${statusSign(status)} ${called}`, status];
}

/** So many reasons are shown below a table. */
const mostReasons = 5;

/** Why VMs of a table fail attestation, or can't be verified: in a cell, a long reason would push the others out of sight. */
export function whyNotGreen(vms: readonly Row[], { failing, unverifiable }: Attested) {
  const reasonsIn = (reasonOf: ReadonlyMap<string, string>, sign: string, problem: string) =>
    vms.flatMap(({ id, name: called }) => {
      const why = reasonOf.get(id);
      return why === undefined ? [] : [md`${sign} ${name(called)} ${problem}: ${why}.`];
    });
  const reasons = [
    ...reasonsIn(failing, "🔴", "fails attestation"),
    ...reasonsIn(unverifiable, "❔", "can't be verified"),
  ];
  if (reasons.length === 0) return undefined;
  const more = reasons.length - mostReasons;
  return context(lines(...reasons.slice(0, mostReasons), more > 0 && md`… and ${more} more.`));
}
