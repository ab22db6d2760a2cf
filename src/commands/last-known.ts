import { ComputeError } from "../compute/errors.ts";
import type { InventoryState, KnownProject, KnownVm } from "../inventory/inventory.ts";
import {
  buttons,
  context,
  fields,
  message,
  type Message,
  readable,
  section,
} from "../messages/message.ts";
import { md, name, plain } from "../messages/text.ts";
import { inventoryAge } from "./inventory-age.ts";
import { countByStatus, statusSign } from "./status-words.ts";

/** Undefined instead of an error when the service is away: what was read last is shown then. Other errors are answers. */
export function unlessAway<T>(read: Promise<T>): Promise<T | undefined> {
  return read.catch((error: unknown) => {
    if (error instanceof ComputeError && error.kind === "unreachable") return undefined;
    throw error;
  });
}

/** A VM or a project as the inventory remembers it. What only the service can tell is left out, never made up. */
export function lastKnown(
  known: KnownVm | (KnownProject & { vms: readonly KnownVm[] }),
  state: InventoryState,
  now: number,
): Message {
  const head = md`${statusSign(known.status)} *${plain(known.name)}* was *${plain(known.status)}* when it was last read`;
  const isVm = "projectId" in known;
  const show = isVm ? { vm: known.id } : { project: known.id };
  return message(
    readable(head),
    section(head),
    fields([
      isVm ? ["Project", md`${plain(known.projectName)}`] : ["Type", md`${plain(known.type)}`],
      ["Region", md`${plain(known.region ?? "not told")}`],
      isVm
        ? [
            "CPU · memory · disk",
            md`${[known.specs?.cpu, known.specs?.memory, known.specs?.disk].map((n) => n ?? "?").join(" · ")}`,
          ]
        : undefined,
      !isVm && known.vms.length > 0
        ? [
            `${known.vms.length} ${known.vms.length === 1 ? "VM" : "VMs"}`,
            md`${countByStatus(known.vms)}`,
          ]
        : undefined,
    ]),
    context(
      md`⚠️ The service can't be reached right now. ${inventoryAge(state, now)} ${name("/gatehouse status")} shows when it is back.`,
    ),
    context(md`Id ${name(known.id)}`),
    buttons([
      {
        label: "Refresh",
        action: isVm ? "run:vm.show" : "run:project.show",
        value: JSON.stringify(show),
      },
    ]),
  );
}
