import type { Tour } from "./tour.ts";

const names = Array.from({ length: 10 }, (_, n) => `batch-${n}`);

/** More requests at once than Slack takes messages, on VMs that another tool has just made. */
export const burstSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const { compute, slack } = tour.world;
    const olivia = slack.person("olivia");
    tour.scene(
      "Another tool has just made ten VMs. Olivia starts each, all within a second: one channel takes one message a second, so they share a card.",
    );
    const project = compute.edit.addProject({ name: "batch", type: "TEE_VM" });
    for (const name of names) compute.edit.addVm({ project, name, status: "STOPPED" });
    await tour.typesAll(
      olivia,
      "ops",
      names.map((name) => `/vm start ${name}`),
    );
    await tour.sees(olivia, "ops", /✅ Started batch-\d.*\n[\s\S]*Details of one…/);
    const toldOf = () => olivia.mentions().length;
    await tour.until("each was started once, and told", olivia, () => {
      const channel = JSON.stringify(olivia.seesChannel("ops").messages);
      return names.every((name) => new RegExp(`Started \`?${name}`).test(channel));
    });
    tour.holds(
      "ten were started, none of them twice",
      names.every((name) => compute.vm(`batch/${name}`).status === "RUNNING") &&
        compute.writes().filter(({ path }) => path.endsWith("/start")).length === names.length,
    );
    tour.holds(`Olivia's phone rang fewer times than that (${toldOf()} in all)`, toldOf() < 10);
  },
];
