import type { Unverifiable } from "../monitor/drift-records.ts";
import { type Failing, statusSign } from "../fleet/inventory/status-order.ts";
import { small } from "../messages/parts.ts";
import { type Fact, isTrouble, unreadIn } from "../core/facts/fact.ts";
import { unreadLine } from "../core/facts/facts-about.ts";
import { type Markdown, lines, md, name } from "../messages/markdown.ts";

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

function troublesOf(vms: readonly Row[], facts: readonly Fact[]): Markdown[] {
  const shown = new Set(vms.map(({ id }) => id));
  return facts
    .filter((fact) => isTrouble(fact) && !kindsInRows.includes(fact.kind))
    .filter(({ about }) => about && shown.has(about.id))
    .map(({ sign, text }) => md`${sign} ${text}`);
}

/** So many reasons are shown below a table. */
const mostReasons = 5;

/** Kinds of facts that the cells of a VM's row, and the reasons below the table, tell. */
const kindsInRows: readonly string[] = ["status", "attestation", "unverified"];

/**
 * Lists the troubles of the VMs of a table: why they fail attestation or can't be verified, and what
 * other facts say. In a cell, a long reason would push the others out of sight.
 */
export function whyNotGreen(
  vms: readonly Row[],
  { failing, unverifiable }: Attested,
  facts: readonly Fact[],
) {
  const reasonsIn = (reasonOf: ReadonlyMap<string, string>, sign: string, problem: string) =>
    vms.flatMap(({ id, name: called }) => {
      const why = reasonOf.get(id);
      return why === undefined ? [] : [md`${sign} ${name(called)} ${problem}: ${why}.`];
    });
  const reasons = [
    ...reasonsIn(failing, "🔴", "fails attestation"),
    ...reasonsIn(unverifiable, "❔", "can't be verified"),
    ...troublesOf(vms, facts),
  ];
  const unread = unreadLine(unreadIn(facts));
  if (reasons.length === 0 && !unread) return undefined;
  const more = reasons.length - mostReasons;
  const rest = more > 0 && md`… and ${more} more.`;
  return small(lines(...reasons.slice(0, mostReasons), rest, unread));
}
