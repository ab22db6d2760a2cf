import type { Tour } from "./tour.ts";

const restarts = ({ world }: Tour) =>
  world.compute.writes().filter(({ path }) => path === "/v1/vms/vm-payments-web-1/restart").length;

/** Someone without the right asks those who have it, and the night is read as one page. */
export const askedSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    const vera = tour.world.slack.person("vera");
    const before = restarts(tour);
    tour.scene(
      "Vera sees that web-1 answers nobody, and may not restart it. The refusal has a button that asks those who may.",
    );
    await tour.types(vera, "ops", "/vm restart payments/web-1");
    const refusal = /Only @\S*oncall can restart \S*web-1[\s\S]*Ask @oncall to do it/;
    const refused = await tour.sees(vera, "ops", refusal);
    await tour.presses(vera, "Ask @oncall to do it", refused.ts);
    await tour.dialog(vera, /Restart[\s\S]*web-1/);
    await tour.submits(vera, { Reason: "it answers nobody" });
    await tour.sees(vera, "ops", /Asked @\S*oncall in #ops/);
    const card = await tour.sees(olivia, "ops", /vera asks[\s\S]*it answers nobody[\s\S]*Run/);
    tour.holds("a question alone sends nothing", restarts(tour) === before);
    await tour.presses(olivia, "Run", card.ts);
    await tour.sees(vera, "ops", /in thread.*@vera ✅ Restarted \S*web-1 in .*\(olivia\)/);
    tour.holds("it was restarted once, by Olivia", restarts(tour) === before + 1);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene("The night is over. Olivia reads it as one page.");
    await tour.types(olivia, "ops", "/gatehouse night 1h");
    const night = await tour.sees(olivia, "ops", /The night since [\s\S]*oldest first/);
    tour.holds("only she reads it", night.ephemeral);
    let told = JSON.stringify(night.blocks);
    const next = /"(Next \d+)"/.exec(told)?.[1];
    if (next !== undefined) {
      await tour.presses(olivia, next, night.ts);
      const rest = await tour.sees(olivia, "ops", /21 to \d+ of \d+ are shown/);
      told += JSON.stringify(rest.blocks);
    }
    tour.holds("it tells of the alert that a restart didn't help", told.includes("HighMemory"));
    tour.holds(
      "and of what Vera asked for, which Olivia ran",
      /olivia\* restarted `(payments\/)?web-1`/.test(told),
    );
  },
];
