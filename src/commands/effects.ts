import {
  type Specs,
  type WantedSpecs,
  type Vm,
  type Project,
  isKnownStatus,
  isSettledProjectStatus,
  isSettledVmStatus,
  isTransitional,
  statusFacts,
  unreadable,
} from "../fleet/compute/compute.ts";
import { type Markdown, md } from "../messages/markdown.ts";
import type { Refusal } from "../registry/define.ts";

/** Says what a restart or a stop does to a VM, for the people who confirm or approve it. */
export function interrupts({ name, status }: Pick<Vm, "name" | "status">): Markdown {
  return statusFacts(status).isStopped
    ? md`${name} is stopped: nothing on it is interrupted.`
    : md`⚠️ This interrupts what runs on ${name}.`;
}

/**
 * Whether it has another status than before, which can be read. A newer `updatedAt` proves nothing: labels, heartbeats, and other
 * people's changes move it as well, and one that stays proves nothing either.
 */
export function leftStatus(now: Vm | undefined, before: Vm | undefined): boolean {
  if (now === undefined || before === undefined || now.status === unreadable) return false;
  return before.status !== unreadable && now.status !== before.status;
}

/** Refuses a status that only a later version of the compute service has. */
export function unknownStatus(vm: Vm): Refusal | undefined {
  const isPassing = isKnownStatus(vm.status) && isTransitional(vm.status);
  return isPassing || isSettledVmStatus(vm.status) ? undefined : notKnown(vm);
}

function notKnown({ name, status }: Vm | Project): Refusal {
  if (status === unreadable)
    return {
      text: `The compute service gives no status of ${name} that can be read.`,
      hint: "Nothing was sent. Check it in the compute service's own console.",
    };
  return {
    text: `${name} is ${status}, a status that Gatehouse doesn't know.`,
    hint: "Nothing was sent. Check it in the compute service's own console.",
  };
}

/**
 * Refuses all statuses except these. CREATING and REBOOTING pass, because the gate waits until they
 * end.
 */
export function onlyIn(
  vm: Vm,
  statuses: readonly string[],
  otherwise: Refusal,
): Refusal | undefined {
  const odd = unknownStatus(vm);
  if (odd) return odd;
  if (vm.status === "DELETING") return { text: `${vm.name} is being deleted.` };
  return isSettledVmStatus(vm.status) && !statuses.includes(vm.status) ? otherwise : undefined;
}

const changeable = ["cpu", "memory"] as const;

/** Whether a VM or project has these specs. */
export function hasSpecs({ specs }: { specs?: Specs }, wanted: WantedSpecs): boolean {
  return changeable.every((key) => wanted[key] === undefined || specs?.[key] === wanted[key]);
}

/** `CPU 2 → 4, memory 8 → 16`: the specs that differ between the reads before and after. */
export function specsChanged(before: Specs = {}, after: Specs = {}): string {
  const differ = changeable.filter((key) => (after[key] ?? before[key]) !== before[key]);
  const called = (key: string) => (key === "cpu" ? "CPU" : key);
  return differ.map((key) => `${called(key)} ${before[key] ?? "?"} → ${after[key]}`).join(", ");
}

/** Refuses DELETING and unknown statuses. CREATING passes, because the gate waits until it ends. */
export function notChangeable(project: Project): Refusal | undefined {
  if (project.status === "DELETING") return { text: `${project.name} is already being deleted.` };
  const { status } = project;
  return isSettledProjectStatus(status) || status === "CREATING" ? undefined : notKnown(project);
}

/**
 * Whether the specs to change are returned and unchanged. A value that isn't returned proves
 * nothing.
 */
export function keepsSpecs(
  now: Specs | undefined,
  before: Specs | undefined,
  wanted: WantedSpecs,
): boolean {
  return changeable.every(
    (key) => wanted[key] === undefined || (now?.[key] !== undefined && now[key] === before?.[key]),
  );
}
