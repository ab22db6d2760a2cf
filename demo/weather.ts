import { messageOf } from "../src/errors.ts";
import type { EvidenceWeatherName, SandboxCompute } from "../sandbox/compute/index.ts";
import type { Killable } from "../sandbox/killable.ts";
import {
  createPageWeather,
  killProcess,
  type Lever,
  type PageWeather,
  stopSlack,
  strikeCompute,
} from "../sandbox/page/index.ts";
import type { SandboxSlack } from "../sandbox/slack/index.ts";
import { evidenceLevers } from "./evidence-levers.ts";
import {
  agentProposes,
  apiPortOf,
  deployProposes,
  propose,
  proposeAsAgent,
  sendAlert,
} from "./programs.ts";

/** What can be turned on and off around Gatehouse, each with what to try and what should hold. */
export function createDemoWeather(world: {
  compute: SandboxCompute;
  slack: SandboxSlack;
  redis: Killable;
  worker: Killable;
  endorse: (weather: EvidenceWeatherName) => Promise<void>;
  /** Where programs reach Gatehouse. */
  processes: Parameters<typeof apiPortOf>[0];
}): PageWeather {
  const { compute, slack } = world;
  const apiPort = () => apiPortOf(world.processes);
  const levers: readonly Omit<Lever, "as" | "channel">[] = [
    {
      id: "slow",
      label: "Slow service: 2 s for an answer",
      tries: { text: "/vm restart web-2" },
      holds: "Slack is answered at once; web-2 restarts once.",
      ...strikeCompute(compute, { match: "*", slowMs: 2000 }),
    },
    {
      id: "busy",
      label: "Busy service: 429 to everything",
      tries: { text: "/vm restart web-2" },
      holds: "Gatehouse waits. Turn it off: it goes on by itself, once.",
      ...strikeCompute(compute, { match: "*", status: 429, retryAfter: 2 }),
    },
    {
      id: "broken",
      label: "Broken service: 500 to each change",
      tries: { text: "/vm start gpu-1" },
      holds: "Not sent again blindly: Gatehouse says only what reads prove.",
      ...strikeCompute(compute, { match: "writes", status: 500 }),
    },
    {
      id: "lost",
      label: "Lost answers: done, but no answer comes",
      tries: { text: "/vm restart db-1" },
      holds: "Gatehouse checks. The count goes up by one, not two.",
      ...strikeCompute(compute, { match: "writes", lost: "after" }),
    },
    {
      id: "slack",
      label: "Slack's API down",
      tries: { text: "/vm restart web-2" },
      holds: "Turn it off: the result is posted, once.",
      ...stopSlack(slack),
    },
    {
      id: "redis",
      label: "Redis killed (kill -9)",
      tries: { text: "/vm restart web-2" },
      holds: "Refused, nothing done. Turn it off: nothing is missing.",
      ...killProcess(world.redis),
    },
    {
      id: "worker",
      label: "Worker killed (kill -9)",
      tries: { text: "/vm restart web-2" },
      holds: "The request is kept. Turn it off: a new worker runs it, once.",
      ...killProcess(world.worker),
    },
    {
      id: "alert",
      label: "An alert fires: web-2's CPU is high",
      tries: { button: "Restart…" },
      holds:
        "20 s after the restart the alert's thread says that it didn't help. Turn it off: it has ended.",
      ...firing(compute, apiPort, "web-2"),
    },
    {
      id: "deploy",
      label: "A deploy job proposes a snapshot of db-1",
      tries: { button: "Run" },
      holds: "Nothing is done before. Then it runs once, in the name of who pressed.",
      ...proposing(async () => void (await propose(apiPort(), ...deployProposes))),
    },
    {
      id: "agent",
      label: "An agent proposes a snapshot of web-2, over MCP",
      tries: { button: "Run" },
      holds: "The agent can read and propose, and run nothing.",
      ...proposing(() => proposeAsAgent(apiPort(), ...agentProposes)),
    },
    ...evidenceLevers(world),
  ];
  return createPageWeather({
    compute,
    levers: levers.map((lever) => ({ as: "olivia", channel: "ops", ...lever })),
    aboutStrangers:
      "⋯ changes a VM behind Gatehouse's back. Request a restore of db-1, put another VM under its name, approve: the restore is canceled, the other VM untouched.",
  });
}

/**
 * Proposes once when it is turned on. A program goes on trying while Gatehouse can't answer, so nobody waits for it here; if
 * it is refused, the switch is off again.
 */
function proposing(run: () => Promise<void>): Pick<Lever, "isOn" | "turn"> {
  let on = false;
  return {
    isOn: () => on,
    turn(wanted) {
      on = wanted;
      if (!on) return;
      run().catch((error: unknown) => {
        on = false;
        process.stderr.write(`${messageOf(error)}\n`);
      });
    },
  };
}

/** How long its CPU was high before an alert fires: the alert says 5 min. */
const beforeAlertMs = 6 * 60_000;

function firing(
  { edit }: SandboxCompute,
  apiPort: () => number,
  vm: string,
): Pick<Lever, "isOn" | "turn"> {
  let startsAt: string | undefined;
  return {
    isOn: () => startsAt !== undefined,
    async turn(on) {
      const now = new Date().toISOString();
      // Whoever reads the alert finds in the metrics what it says
      edit.setBusySince({ vm, ...(on ? { since: Date.now() - beforeAlertMs } : {}) });
      await sendAlert(
        apiPort(),
        on ? { vm, startsAt: now } : { vm, startsAt: startsAt ?? now, endsAt: now },
      );
      startsAt = on ? now : undefined;
    },
  };
}
