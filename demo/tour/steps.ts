import { askedSteps } from "./asked.ts";
import { burstSteps, rolloutSteps } from "./rollout.ts";
import { attestationSteps } from "./attestation.ts";
import { digestSteps } from "./digests.ts";
import { guardedSteps, secretStep } from "./guarded.ts";
import { programSteps } from "./programs.ts";
import { leadSteps, otherTeamSteps } from "./teams.ts";
import type { Tour } from "./tour.ts";

const restarts = (tour: Tour) =>
  tour.world.compute.writes().filter(({ path }) => path.endsWith("/restart")).length;

/** The story, in order. Each step leaves the world as the next one expects it. */
export const steps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene("It is 3 a.m. Olivia is on call and looks around.");
    await tour.types(olivia, "ops", "/vm list");
    await tour.sees(olivia, "ops", /train-7/);
    await tour.types(olivia, "ops", "/vm show web-2");
    await tour.sees(olivia, "ops", /web-2[\s\S]*Restart/);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene("web-2 is stuck. She restarts it; the result appears once it runs again.");
    await tour.types(olivia, "ops", "/vm restart web-2");
    await tour.sees(olivia, "ops", /✅ (@olivia )?Restarted web-2 in/);
    await tour.sees(olivia, "ops", /✅ @olivia [\s\S]*Sent .* read/);
    tour.holds("the service was asked to restart exactly once", restarts(tour) === 1);
    tour.holds("Olivia was mentioned exactly once", olivia.mentions().length === 1);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene("gpu-1 is already stopped: Gatehouse says so, and sends nothing.");
    await tour.types(olivia, "ops", "/vm stop gpu-1");
    await tour.sees(olivia, "ops", /gpu-1 is already STOPPED; nothing was sent/);
    tour.holds(
      "no stop was sent",
      tour.world.compute.writes().every(({ path }) => !path.endsWith("/stop")),
    );
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene("A typo gets a suggestion.");
    await tour.types(olivia, "ops", "/vm restart wbe-2");
    await tour.sees(olivia, "ops", /no VM called wbe-2[\s\S]*Did you mean/);
    tour.holds("nothing was sent", restarts(tour) === 1);
  },
  async (tour) => {
    const vera = tour.world.slack.person("vera");
    tour.scene("Vera can view, not change.");
    await tour.types(vera, "ops", "/vm restart web-2");
    await tour.sees(vera, "ops", /Only @\S*oncall can restart web-2/);
    tour.holds("nothing was sent", restarts(tour) === 1);
    const amir = tour.world.slack.person("amir");
    const heard = amir
      .seesChannel("ops")
      .messages.some((message) => /can restart web-2/.test(message.text));
    tour.holds("no one else sees the refusal", !heard);
  },
  ...otherTeamSteps,
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "The service restarts the VM, but its answer is lost. Gatehouse reads the VM and confirms the restart.",
    );
    tour.world.compute.weather({ match: "POST /v1/vms/:id/restart", times: 1, lost: "after" });
    await tour.types(olivia, "ops", "/vm restart db-1");
    await tour.sees(olivia, "ops", /✅ (@olivia )?Restarted db-1/);
    tour.holds("it was sent once, and not again", restarts(tour) === 2);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "The answer to a snapshot is lost, and a snapshot leaves no trace to read. Gatehouse will look for a while; the night goes on.",
    );
    tour.world.compute.weather({ match: "POST /v1/vms/:id/snapshots", times: 1, lost: "before" });
    await tour.types(olivia, "ops", "/vm snapshot web-2 before-the-patch");
  },
  ...burstSteps,
  ...leadSteps,
  ...rolloutSteps,
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "What became of that snapshot can't be known: Gatehouse says so, sends nothing again, and asks a person.",
    );
    await tour.sees(olivia, "ops", /Outcome unknown[\s\S]*It did not happen/);
    await tour.presses(olivia, "It did not happen");
    await tour.dialog(olivia, /will be recorded as not done/);
    await tour.submits(olivia, { reason: "the console of the service lists no snapshot" });
    await tour.sees(olivia, "ops", /❌ (@olivia )?Snapshot of web-2.* did not happen, says olivia/);
  },
  ...attestationSteps,
  ...guardedSteps,
  ...digestSteps,
  ...programSteps,
  ...askedSteps,
  secretStep,
];
