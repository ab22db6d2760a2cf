import * as z from "zod";
import type { EvidenceWeatherName } from "../compute/evidence-weather.ts";
import type { SandboxCompute } from "../compute/start-sandbox-compute.ts";
import type { VmTruth } from "../compute/truth.ts";
import type { Weather } from "../compute/weather.ts";
import type { Killable } from "../killable.ts";
import { sendAlert } from "../programs.ts";
import type { SandboxSlack } from "../slack/sandbox-slack.ts";
import type { Forecast, StrangersDo } from "./around.ts";
import { evidenceLevers, type Lever } from "./evidence-levers.ts";

/** What can be turned on and off around Gatehouse while somebody plays with it. */
export interface PageWeather {
  now(): Forecast;
  /** Does what `parseTurn` understood; resolves when it is so. */
  turn(turn: Turn): Promise<void>;
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

export function createPageWeather(world: {
  compute: SandboxCompute;
  slack: SandboxSlack;
  redis: Killable;
  worker: Killable;
  endorse: (weather: EvidenceWeatherName) => Promise<void>;
  /** Where programs reach Gatehouse. */
  processes: readonly { apiPort: number | undefined }[];
}): PageWeather {
  const { compute, slack } = world;
  const levers: Lever[] = [
    {
      id: "slow",
      label: "Slow service: 2 s for an answer",
      text: "/vm restart web-2",
      holds: "Slack is answered at once; web-2 restarts once.",
      ...strike(compute, { match: "*", slowMs: 2000 }),
    },
    {
      id: "busy",
      label: "Busy service: 429 to everything",
      text: "/vm restart web-2",
      holds: "Gatehouse waits. Turn it off: it goes on by itself, once.",
      ...strike(compute, { match: "*", status: 429, retryAfter: 2 }),
    },
    {
      id: "broken",
      label: "Broken service: 500 to each change",
      text: "/vm start gpu-1",
      holds: "Not sent again blindly: Gatehouse says only what reads prove.",
      ...strike(compute, { match: "writes", status: 500 }),
    },
    {
      id: "lost",
      label: "Lost answers: done, but no answer comes",
      text: "/vm restart db-1",
      holds: "Gatehouse checks. The count goes up by one, not two.",
      ...strike(compute, { match: "writes", lost: "after" }),
    },
    {
      id: "slack",
      label: "Slack's API down",
      text: "/vm restart web-2",
      holds: "Turn it off: the result is posted, once.",
      ...storm(slack),
    },
    {
      id: "redis",
      label: "Redis killed (kill -9)",
      text: "/vm restart web-2",
      holds: "Refused, nothing done. Turn it off: nothing is missing.",
      ...killing(world.redis),
    },
    {
      id: "worker",
      label: "Worker killed (kill -9)",
      text: "/vm restart web-2",
      holds: "The request is kept. Turn it off: a new worker runs it, once.",
      ...killing(world.worker),
    },
    {
      id: "alert",
      label: "An alert fires: web-2's CPU is high",
      text: "/gatehouse digest now",
      holds: "#ops shows it, with buttons that act on web-2. Turn it off: it has ended.",
      ...firing(() => world.processes.find(({ apiPort }) => apiPort)?.apiPort ?? 0, "web-2"),
    },
    ...evidenceLevers(world),
  ];
  let last = Promise.resolve();

  const pull = async (turn: Turn) => {
    if ("vm" in turn) return actAsStranger(compute, turn.vm, turn.does);
    const lever = levers.find(({ id }) => id === turn.switch);
    if (!lever) throw new Error(`There is no switch ${turn.switch}`);
    if (lever.isOn() !== turn.on) await lever.turn(turn.on);
  };
  return {
    now: () => ({
      vms: vmsOf(compute),
      switches: levers.map(({ id, label, text, holds, isOn }) => ({
        id,
        label,
        text,
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

function strike(compute: SandboxCompute, weather: Weather): Moving {
  let id: number | undefined;
  return {
    isOn: () => id !== undefined,
    turn: (on) => {
      if (id !== undefined) compute.clear(id);
      id = on ? compute.weather(weather) : undefined;
    },
  };
}

function storm(slack: SandboxSlack): Moving {
  let end: (() => void) | undefined;
  return {
    isOn: () => end !== undefined,
    turn: (on) => {
      end?.();
      end = on ? slack.weather.add({ method: "*", kind: "server-error" }) : undefined;
    },
  };
}

function firing(apiPort: () => number, vm: string): Moving {
  let startsAt: string | undefined;
  return {
    isOn: () => startsAt !== undefined,
    async turn(on) {
      const now = new Date().toISOString();
      await sendAlert(
        apiPort(),
        on ? { vm, startsAt: now } : { vm, startsAt: startsAt ?? now, endsAt: now },
      );
      startsAt = on ? now : undefined;
    },
  };
}

function killing(it: Killable): Moving {
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
