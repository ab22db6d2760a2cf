import { type Failing, statusSign } from "../fleet/inventory/known.ts";
import { context } from "../messages/blocks.ts";
import { lines, md, name } from "../messages/markdown.ts";

interface Row {
  id: string;
  name: string;
  status: string;
}

/** The first cells of a VM's row, the sign first: people look for it, and long names hide what follows. */
export function vmCells({ id, status }: Row, called: string, failing: Failing): string[] {
  return failing.has(id)
    ? [`🔴 ${called}`, `${status}, fails attestation`]
    : [`${statusSign(status)} ${called}`, status];
}

/** So many reasons are shown below a table. */
const mostReasons = 5;

/** Why VMs of a table fail attestation: in a cell, a long reason would push the others out of sight. */
export function whyRed(vms: readonly Row[], failing: Failing) {
  const red = vms.flatMap(({ id, name: called }) => {
    const why = failing.get(id);
    return why === undefined ? [] : [md`🔴 ${name(called)} fails attestation: ${why}.`];
  });
  if (red.length === 0) return undefined;
  const more = red.length - mostReasons;
  return context(lines(...red.slice(0, mostReasons), more > 0 && md`… and ${more} more.`));
}
