import type { Scope } from "../fleet/inventory/inventory.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { SeenTarget } from "../core/permit/sight.ts";
import { defineService } from "../registry/service-key.ts";
import { type ChangeCommand, canChangeStatus } from "../registry/define.ts";

/** Whether the command changes the VM itself, so that it may end the VM's alerts. */
export const isRemedy = (command: ChangeCommand): boolean =>
  command.on === "vm" && canChangeStatus(command);

/**
 * The alerts of one VM in one group, as their source told them last. A group that fires anew long
 * after its end has a new message; its alerts are then those of all its messages.
 */
export interface AlertsOnVm {
  /** How the group's message calls the VM. */
  vm: string;
  alerts: readonly AlertOnVm[];
  /** Where the group's newest message stands; undefined while no channel shows it. */
  place: { channelId: string; ts: string } | undefined;
  /** The name of their source in gatehouse.yml. */
  source: string;
  /** When something was last learned of their group, also that its source is silent (ms by Redis). */
  changedAt: number;
  /** Buttons for the web pages of these alerts. */
  links: readonly ButtonSpec[];
}

export interface AlertOnVm {
  name: string;
  /** `unheard`: nobody tells any more whether it fires. */
  state: "firing" | "ended" | "unheard";
  /** The VM's project when the alert arrived, whose people alone heard of it. */
  project?: { id: string; name: string } | undefined;
  /** When it began to fire (ms by the clock of its source). */
  since: number;
  /** When it ended (ms by the clock of its source); undefined while it fires, and where its source doesn't say. */
  endedAt: number | undefined;
  /** When its source last told of it (ms by Redis), and whether it has told of others since. */
  heardAt: number;
  isLeftOut: boolean;
}

/** What other features learn of alerts, and tell them. */
export interface AlertPart {
  /**
   * IDs of the groups that name this VM and fired by a time (ms by Redis), if they still do; the
   * oldest first. Of a VM that was moved to another team since, only those who heard of an alert
   * know it, so what the VM's new people do is no attempt to end it.
   */
  firingOn(vm: SeenTarget, at: number): Promise<readonly string[]>;
  /** Undefined when the group is gone or never named this VM. */
  find(alertId: string, vmId: string): Promise<AlertsOnVm | undefined>;
  /** Draws the group's messages again, because a feature now says something else on them. */
  redraw(alertId: string): Promise<unknown>;
}

export const alertPartOf = defineService<AlertPart>("what others learn of alerts");

/** What an earlier attempt to end an alert showed. It is shown, and decides nothing. */
export interface Advice {
  /** Name of the command that was tried: its confirmation says so, too. */
  command: string;
  /** A sentence without its period: `A restart didn't help the last 2 times`. */
  text: string;
  /** When that was, if the sentence is about one time (ms by Redis). */
  at?: number;
}

/** What a feature adds to the messages of alerts about what helped before. */
export interface RemedyPart {
  /**
   * The advice for alerts of these names on a VM that the message's readers may see. What happened
   * while the VM belonged to a project outside their scope stays with those who saw it.
   */
  advise(
    vmId: string,
    alertNames: readonly string[],
    readers: { scope: Scope | undefined; projectName: string | undefined },
  ): Promise<readonly Advice[]>;
  /**
   * Judges these requests again, if something was learned of their alerts since (`at`, ms by Redis).
   * `firingOn` tells which of the group's alerts fire on a VM now. Idempotent.
   */
  learned(
    requests: readonly string[],
    at: number,
    firingOn: (vmId: string) => readonly Pick<AlertOnVm, "name" | "state" | "since">[],
  ): Promise<void>;
}

export const remedyPartOf = defineService<RemedyPart>("what helped before");
