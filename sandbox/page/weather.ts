import * as z from "zod";
import type { SandboxCompute } from "../compute/start-sandbox-compute.ts";
import type { VmTruth } from "../compute/truth.ts";
import type { Storm } from "../compute/weather.ts";
import type { Killable } from "../killable.ts";
import type { SandboxSlack } from "../slack/sandbox-slack.ts";
import type { Attempt, Forecast, StrangersDo } from "./around.ts";

/** What can be turned on and off around the app while somebody plays with it. */
export interface PageWeather {
  now(): Forecast;
  /** Does what `parseTurn` understood; resolves when it is so. */
  turn(turn: Turn): Promise<void>;
}

/** A switch of the page: what it breaks, what to try, and what should hold. */
export interface Lever {
  id: string;
  label: string;
  tries: Attempt;
  as: string;
  channel: string;
  holds: string;
  isOn(): boolean;
  turn(on: boolean): Promise<void> | void;
}

const turns = z.union([
  z.strictObject({ switch: z.string(), on: z.boolean() }),
  z.strictObject({ vm: z.string(), does: z.enum(["stop", "reboot", "replace"]) }),
]);
export type Turn = z.infer<typeof turns>;

/** The turn, or what is wrong with it. */
export function parseTurn(json: unknown): Turn | string {
  const parsed = turns.safeParse(json);
  return parsed.success ? parsed.data : z.prettifyError(parsed.error);
}

/** The switches, and the VMs as they really are. `aboutStrangers`: what to try while someone else changes a VM. */
export function createPageWeather({
  compute,
  levers,
  aboutStrangers,
}: {
  compute: SandboxCompute;
  levers: readonly Lever[];
  aboutStrangers: string;
}): PageWeather {
  let last = Promise.resolve();

  const pull = async (turn: Turn) => {
    if ("vm" in turn) return actAsStranger(compute, turn.vm, turn.does);
    const lever = levers.find(({ id }) => id === turn.switch);
    if (!lever) throw new Error(`There is no switch ${turn.switch}`);
    if (lever.isOn() !== turn.on) await lever.turn(turn.on);
  };
  return {
    now: () => ({
      aboutStrangers,
      vms: vmsOf(compute),
      switches: levers.map(({ id, label, tries, as, channel, holds, isOn }) => ({
        id,
        label,
        tries,
        as,
        channel,
        holds,
        on: isOn(),
      })),
    }),
    // One after the other: a process can't be started while it is being killed
    turn: (turn) => {
      const turned = last.then(() => pull(turn));
      last = turned.catch(() => undefined);
      return turned;
    },
  };
}

type Moving = Pick<Lever, "isOn" | "turn">;

/** For a lever: the compute service's weather while it is on. */
export function strikeCompute(compute: SandboxCompute, storm: Storm): Moving {
  let id: number | undefined;
  return {
    isOn: () => id !== undefined,
    turn: (on) => {
      if (id !== undefined) compute.clear(id);
      id = on ? compute.weather(storm) : undefined;
    },
  };
}

/** For a lever: Slack's Web API answers nothing but 503 while it is on. */
export function stopSlack(slack: SandboxSlack): Moving {
  let end: (() => void) | undefined;
  return {
    isOn: () => end !== undefined,
    turn: (on) => {
      end?.();
      end = on ? slack.weather.add({ method: "*", kind: "server-error" }) : undefined;
    },
  };
}

/** For a lever: a process that is dead while it is on. */
export function killProcess(it: Killable): Moving {
  return { isOn: () => !it.isUp(), turn: (on) => (on ? it.kill() : it.start()) };
}

function actAsStranger({ edit }: SandboxCompute, vm: string, does: StrangersDo): void {
  if (does === "stop") edit.setStatus({ vm, status: "STOPPED" });
  else if (does === "reboot") edit.changeBehindTheBack({ vm, reboot: true });
  else edit.replaceVm({ vm });
}

function vmsOf(compute: SandboxCompute): Forecast["vms"] {
  const { vms, projects } = compute.truth();
  return Object.values(vms)
    .filter(({ gone }) => !gone)
    .map((vm) => ({
      id: vm.id,
      name: vm.name,
      project: projects[vm.projectId]?.name ?? vm.projectId,
      status: vm.status,
      done: effectsOf(vm),
    }))
    .toSorted((a, b) => `${a.project} ${a.name}`.localeCompare(`${b.project} ${b.name}`));
}

function effectsOf(vm: VmTruth): string {
  const kinds = ["start", "stop", "restart", "resize", "snapshot", "restore"] as const;
  return kinds
    .map((kind) => [kind, vm[`${kind}s`]] as const)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}${count === 1 ? "" : "s"}`)
    .join(", ");
}
