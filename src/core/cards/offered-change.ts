import type { Policy } from "../../config/policy-file.ts";
import { commandsWithRole } from "../../registry/command-roles.ts";
import type { Command, Target, VmCommand } from "../../registry/define.ts";
import { isProtected } from "../permit/permit.ts";
import type { Journal } from "../request/journal.ts";
import { recentRequests } from "../request/lists.ts";
import { refusedInError } from "./render-result.ts";

/** The facts of a VM by which Gatehouse decides which changes are worth a button. */
export interface Situation {
  /** The VM, with the status that the reader is shown. */
  target: Target;
  /** Names of commands that the compute service refused for the VM's ERROR (`refusedInError`). */
  refused?: ReadonlySet<string> | undefined;
  isFrozen: boolean;
  policy: Pick<Policy, "protect">;
}

/** How many of a VM's newest requests are read for its buttons. */
export const readForButtons = 10;

/**
 * Reads the situation of one VM. What can't be read hides no button, because a press decides again.
 */
export async function situationOf(
  target: Target,
  { store, policy }: { store: Journal; policy: Pick<Policy, "protect"> },
): Promise<Situation> {
  const [freeze, last] = await Promise.all([
    store.freezeState().catch(() => undefined),
    recentRequests({ targetId: target.id, most: readForButtons }, store).catch(() => []),
  ]);
  const refused = refusedInError({ vm: target, last });
  return { target, refused, isFrozen: freeze !== undefined, policy };
}

/**
 * Returns why a press on a change of this VM would come to nothing now, whoever presses.
 * `undefined`: it is worth a button. The freeze comes last, because the others outlast it.
 */
export function obstacleTo(
  command: VmCommand,
  { target, refused, isFrozen, policy }: Situation,
): "status" | "protected" | "refused" | "frozen" | undefined {
  if (command.offeredIn?.includes(target.status) === false) return "status";
  if (isProtected({ command, targets: [target] }, policy)) return "protected";
  if (refused?.has(command.name)) return "refused";
  return isFrozen ? "frozen" : undefined;
}

/** The changes that a VM's own card has a button for in some status. */
export const onVmCard = (command: Command): command is VmCommand =>
  command.kind === "change" && command.on === "vm" && command.offeredIn !== undefined;

/**
 * The changes that help a VM with a problem and are worth a button now, as far as this person may
 * make them.
 */
export const changesThatHelp = (
  situation: Situation,
  commands: readonly Command[],
  mayRun: (command: VmCommand) => boolean,
): readonly VmCommand[] =>
  commandsWithRole(commands, "helps-in-trouble")
    .filter(onVmCard)
    .filter((command) => mayRun(command))
    .filter((command) => obstacleTo(command, situation) === undefined);
