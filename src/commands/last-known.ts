import { ComputeError, unreachableWords } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import { countByStatus, failsWords, statusSign } from "../fleet/inventory/known.ts";
import { type Message, context, fields } from "../messages/blocks.ts";
import { buttons } from "../messages/buttons.ts";
import { sentence } from "../messages/card.ts";
import { counted, md, name, plain } from "../messages/markdown.ts";
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

/**
 * A VM or a project as it was last read, without what only the compute service knows. Throws
 * UserError when it was never read.
 */
export async function lastKnown(
  { kind, id, name: called }: Target,
  why: ComputeError,
  { inventory, drift, now }: Pick<ReadContext, "inventory" | "drift" | "now">,
): Promise<Message> {
  const found =
    kind === "vm"
      ? await inventory.findVm(id, { onlyKnown: true })
      : await inventory.findProject(id, { onlyKnown: true });
  if (!("found" in found))
    throw new UserError(
      `The compute service ${unreachableWords(why)}, and Gatehouse has no record of ${called}.`,
    );
  const known = found.found;
  const isVm = "projectId" in known;
  const vms = isVm ? [] : await inventory.vms({ projectId: id });
  const failing = await drift.failing([known, ...vms].map((one) => one.id));
  const failure = failing.get(known.id);
  const sign = failure === undefined ? statusSign(known.status) : "🔴";
  const head = md`${sign} *${plain(known.name)}* was *${plain(known.status)}* when it was last read${failsWords(failure)}`;
  return sentence(
    head,
    fields([
      isVm ? ["Project", md`${plain(known.projectName)}`] : ["Type", md`${plain(known.type)}`],
      ["Region", md`${plain(known.region ?? "not reported")}`],
      isVm
        ? ["Size", md`${sizeWords(known.specs)}`]
        : vms.length > 0
          ? [counted(vms.length, "VM"), md`${countByStatus(vms, failing)}`]
          : undefined,
    ]),
    context(
      md`⚠️ The compute service ${unreachableWords(why)}. ${inventoryAge(await inventory.state(), now(), { isKept: true })} ${name("/gatehouse status")} shows when it is available.`,
    ),
    context(md`ID ${name(known.id)}`),
    buttons([runButton("Refresh", `${kind}.show`, { [kind]: known.id }, known.name)]),
  );
}
