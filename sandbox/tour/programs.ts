import { propose, sendAlert, stateOfProposal } from "../programs.ts";
import type { Tour } from "./tour.ts";

const doorOf = ({ world }: Tour) => world.processes.find((one) => one.doorPort)?.doorPort ?? 0;

/** An alert and its button; a deploy job that asks, and goes on once a person has run it. */
export const programSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    const startsAt = new Date().toISOString();
    tour.scene("Alertmanager speaks first: web-2's CPU is high. Its message has the buttons.");
    await sendAlert(doorOf(tour), { vm: "web-2", startsAt });
    await tour.sees(olivia, "ops", /HighCpu[\s\S]*web-2[\s\S]*Restart/);
    await tour.presses(olivia, "Restart…");
    await tour.sees(olivia, "ops", /olivia is on it: Restart web-2/);
    await tour.sees(olivia, "ops", /✅ (@olivia )?Restarted web-2 in/);
    await sendAlert(doorOf(tour), { vm: "web-2", startsAt, endsAt: new Date().toISOString() });
    await tour.sees(olivia, "ops", /Ended: HighCpu on web-2|HighCpu on web-2[\s\S]*Ended/);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene("A deploy job proposes a snapshot first. It can't run it: Olivia can.");
    const door = doorOf(tour);
    const { id } = await propose(door, "vm snapshot db-1 before-deploy", "release 42");
    await tour.sees(olivia, "ops", /deploy[\s\S]*before-deploy[\s\S]*release 42[\s\S]*Run/);
    await tour.presses(olivia, "Run");
    await tour.sees(olivia, "ops", /✅ (@olivia )?.*before-deploy/);
    for (let tries = 0; tries < 100 && (await stateOfProposal(door, id)) !== "done"; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    tour.holds("the job is told that it is done", (await stateOfProposal(door, id)) === "done");
  },
];
