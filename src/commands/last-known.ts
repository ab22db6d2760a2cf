import { ComputeError, unreachableWords } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import { isTrouble } from "../core/facts/fact.ts";
import { targetOf } from "../core/submit/resolve-targets.ts";
import { countByStatus, statusSign } from "../fleet/inventory/status-order.ts";
import { type Message } from "../messages/blocks.ts";
import { pairsOf, small, waysRow } from "../messages/parts.ts";
import { sentence } from "../messages/card.ts";
import { counted, lines, md, name, plain } from "../messages/markdown.ts";
import { type Target, runButton } from "../registry/define.ts";
import type { ReadContext } from "./context.ts";
import { inventoryAge } from "./inventory-age.ts";
import { sizeWords } from "./specs-words.ts";

/**
 * Resolves with the error when the compute service is unreachable or takes no more calls, so that
 * the caller can show the last known state.
 */
export function unlessUnreachable<T>(read: Promise<T>): Promise<T | ComputeError> {
  return read.catch((error: unknown) => {
    const isAway = (kind: ComputeError["kind"]) => kind === "unreachable" || kind === "busy";
    if (error instanceof ComputeError && isAway(error.kind)) return error;
    throw error;
  });
}

const mostTroubles = 3;

/**
 * A VM or a project as it was last read, with what else is wrong with it, and without what only the
 * compute service knows. Throws UserError when it was never read.
 */
export async function lastKnown(
  { kind, id, name: called }: Target,
  why: ComputeError,
  reading: ReadContext,
): Promise<Message> {
  const { inventory, drift, now } = reading;
  const match =
    kind === "vm"
      ? await inventory.findVm(id, { onlyKnown: true })
      : await inventory.findProject(id, { onlyKnown: true });
  if (!("record" in match))
    throw new UserError(
      `The compute service ${unreachableWords(why)}, and Gatehouse has no record of ${called}.`,
    );
  const known = match.record;
  const isVm = "projectId" in known;
  const vms = isVm ? [] : await inventory.vms({ projectId: id });
  const [failing, facts] = await Promise.all([
    drift.failing(vms.map((vm) => vm.id)),
    reading.factsAbout([targetOf(known)], { reader: reading }),
  ]);
  // The VM may have another status by now.
  const troubles = facts.filter((fact) => isTrouble(fact) && fact.kind !== "status");
  const alarm = troubles.find(({ severity }) => severity === "alarm");
  const head = md`${alarm?.sign ?? statusSign(known.status)} *${plain(known.name)}* was *${plain(known.status)}* when it was last read`;
  return sentence(
    lines(head, ...troubles.slice(0, mostTroubles).map(({ sign, text }) => md`${sign} ${text}`)),
    pairsOf([
      isVm ? ["Project", md`${plain(known.projectName)}`] : ["Type", md`${plain(known.type)}`],
      ["Region", md`${plain(known.region ?? "not reported")}`],
      isVm
        ? ["Size", md`${sizeWords(known.specs)}`]
        : vms.length > 0
          ? [counted(vms.length, "VM"), md`${countByStatus(vms, failing)}`]
          : undefined,
    ]),
    small(
      md`⚠️ The compute service ${unreachableWords(why)}. ${inventoryAge(await inventory.state(), now(), { isKept: true })} ${name("/gatehouse status")} shows when it is available.`,
    ),
    small(md`ID ${name(known.id)}`),
    waysRow([runButton("Refresh", `${kind}.show`, { [kind]: known.id }, known.name)]),
  );
}
