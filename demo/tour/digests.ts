import type { Tour } from "./tour.ts";

/** A digest of the night. */
export const digestSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "It is morning. A digest reports the night in the channel: every day at a set time, or now.",
    );
    await tour.types(olivia, "ops", "/gatehouse digest on 09:00 Europe/Paris mon-fri");
    await tour.sees(olivia, "ops", /at 9:00 AM \(Paris\), mon-fri\. Next:/);
    await tour.types(olivia, "ops", "/gatehouse digest now");
    const digest = await tour.sees(olivia, "ops", /Digest[\s\S]*web-2/);
    tour.holds("it mentions nobody", !JSON.stringify(digest).includes("<@"));
  },
];
