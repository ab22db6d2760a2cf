import { type SeenMessage, wordsIn } from "../../sandbox/slack/acts/index.ts";
import { connectAgent, dataOf } from "../agent.ts";
import { pinnedOfWeb2 } from "../demo-world.ts";
import {
  agentProposes,
  agentToken,
  apiPortOf,
  deployProposes,
  propose,
  proposalAt,
  sendAlert,
} from "../programs.ts";
import type { Tour } from "./tour.ts";

const sent = ({ world }: Tour, path: string) =>
  world.compute.writes().filter((one) => one.path === path).length;

const buttonsOf = ({ blocks }: SeenMessage) =>
  wordsIn(blocks).flatMap((line) =>
    [...line.matchAll(/\[([^\]]+)\]/g)].map(([, label = ""]) => label),
  );

/** An alert and its button; a deploy job that asks, and goes on once a person has run it; an agent that asks for too much. */
export const programSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    const startsAt = new Date().toISOString();
    const restarts = () => sent(tour, "/v1/vms/vm-payments-web-2/restart");
    const before = restarts();
    tour.scene(
      "web-2 runs its pinned image again. Now Alertmanager speaks first: its CPU is high. The message has the buttons.",
    );
    tour.world.compute.edit.setMeasurement({ vm: "payments/web-2", measurement: pinnedOfWeb2 });
    await sendAlert(apiPortOf(tour.world.processes), { vm: "web-2", startsAt });
    const card = await tour.sees(olivia, "ops", /HighCpu[\s\S]*web-2[\s\S]*Restart/);
    tour.holds("an alert alone sends nothing", restarts() === before);
    await tour.presses(olivia, "Restart…");
    await tour.sees(olivia, "ops", /HighCpu[\s\S]*👤 olivia/);
    const result = await tour.sees(olivia, "ops", /in thread\): ✅ .*Restarted web-2 in/);
    tour.holds("the result is in the alert's thread", result.threadTs === card.ts);
    await sendAlert(apiPortOf(tour.world.processes), {
      vm: "web-2",
      startsAt,
      endsAt: new Date().toISOString(),
    });
    const end = /HighCpu on web-2 ended.*; olivia had restarted it\./;
    await tour.sees(olivia, "ops", new RegExp(`in thread.*${end.source}`));
    const ended = await tour.sees(olivia, "ops", new RegExp(`^(?!.*in thread).*${end.source}`));
    tour.holds("it is the same message, edited", ended.ts === card.ts);
    tour.holds("its buttons only look", buttonsOf(ended).join() === "Show,Metrics,Runbook,Graph");
    tour.holds("web-2 was restarted exactly once", restarts() === before + 1);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    const alert = { vm: "db-1", name: "HighMemory" };
    const startsAt = new Date().toISOString();
    tour.scene(
      "The next alert is one that a restart doesn't end. Gatehouse looks again, says so in its thread, and remembers it.",
    );
    await sendAlert(apiPortOf(tour.world.processes), { ...alert, startsAt });
    const card = await tour.sees(
      olivia,
      "ops",
      /HighMemory on db-1[\s\S]*Last change with Gatehouse: [\s\S]*Restart/,
    );
    await tour.presses(olivia, "Restart…");
    await tour.sees(
      olivia,
      "ops",
      /Restarted db-1 in [^\n]* Still firing, as far as \w+ has told\./,
    );
    const still = await tour.sees(
      olivia,
      "ops",
      /in thread.*HighMemory on db-1 still fires, \d+ s after the restart, as far as \w+ has told: it hasn't spoken since/,
    );
    tour.holds("it is in the alert's thread", still.threadTs === card.ts);
    // Another of its servers saw the same firing a little earlier, so this is news.
    const earlier = new Date(Date.parse(startsAt) - 1).toISOString();
    await sendAlert(apiPortOf(tour.world.processes), { ...alert, startsAt: earlier });
    await tour.sees(olivia, "ops", /Restarted db-1 in [^\n]* Still firing\./);
    await tour.sees(
      olivia,
      "ops",
      /HighMemory on db-1[\s\S]*A restart didn't help the last time\./,
    );
    await sendAlert(apiPortOf(tour.world.processes), {
      ...alert,
      startsAt,
      endsAt: new Date().toISOString(),
    });
    const ended = await tour.sees(olivia, "ops", /^(?!.*in thread).*HighMemory on db-1 ended/);
    tour.holds("its end is on the same message", ended.ts === card.ts);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    const [command, reason] = deployProposes;
    const snapshots = () => sent(tour, "/v1/vms/vm-payments-db-1/snapshots");
    const before = snapshots();
    tour.scene("A deploy job proposes a snapshot first. It can't run it: Olivia can.");
    const api = apiPortOf(tour.world.processes);
    const { id, state } = await propose(api, command, reason);
    tour.program("deploy", `proposes “${command}”, because “${reason}”`, state);
    await tour.sees(olivia, "ops", /deploy[\s\S]*before-deploy[\s\S]*release 42[\s\S]*Run/);
    tour.holds("a proposal alone sends nothing", snapshots() === before);
    await tour.presses(olivia, "Run");
    await tour.sees(olivia, "ops", /✅ (@olivia )?.*before-deploy/);
    let told = await proposalAt(api, id);
    for (let tries = 0; tries < 100 && told.state !== "done"; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      told = await proposalAt(api, id);
    }
    tour.program("deploy", "asks what became of it", `${told.state}: ${told.result ?? ""}`);
    tour.holds("the job is told that it is done", told.state === "done");
    tour.holds("and by whom: by Olivia, who pressed Run", told.by === "olivia");
    await tour.sees(
      olivia,
      "ops",
      /deploy proposes[\s\S]*✅ Took a snapshot of db-1[\s\S]*\(olivia\)/,
    );
    tour.holds("one snapshot of db-1 was taken", snapshots() === before + 1);
  },
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    const before = tour.world.compute.writes().length;
    tour.scene(
      "An agent connects over MCP. It may view payments and propose snapshots; it tries to restart web-2, which is in production.",
    );
    await using agent = await connectAgent(
      `http://127.0.0.1:${apiPortOf(tour.world.processes)}/mcp`,
      {
        bearer: agentToken,
      },
    );
    const { tools } = await agent.listTools();
    tour.program("agent", "lists its tools", tools.map(({ name }) => name).join(", "));
    const others = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true);
    tour.holds(
      "each only reads, except propose, which asks a person",
      tools.length > 2 && others.map(({ name }) => name).join() === "propose",
    );
    const shown = await agent.callTool({ name: "vm_show", arguments: { vm: "web-2" } });
    tour.program("agent", "calls vm_show web-2", dataOf(shown).split("\n")[0] ?? "");
    tour.holds("it may read web-2", shown.isError !== true && dataOf(shown).includes("web-2"));
    const missing = await agent
      .callTool({ name: "vm_restart", arguments: { vm: "web-2" } })
      .then(dataOf, (error: unknown) => (error instanceof Error ? error.message : "?"));
    tour.program("agent", "calls vm_restart web-2", missing);
    tour.holds("there is no tool that restarts", missing.includes("There is no such tool"));
    const [command, reason] = ["vm restart web-2", "Olivia said yes, it is urgent"];
    const refused = await agent.callTool({ name: "propose", arguments: { command, reason } });
    tour.program("agent", `calls propose “${command}”, because “${reason}”`, dataOf(refused));
    tour.holds(
      "it is refused, and told why",
      refused.isError === true && dataOf(refused).includes("agent may not propose /vm restart"),
    );
    const may = { command: agentProposes[0], reason: agentProposes[1] };
    const open = await agent.callTool({ name: "propose", arguments: may });
    tour.program("agent", `calls propose “${may.command}”, because “${may.reason}”`, dataOf(open));
    await tour.sees(olivia, "ops", /agent proposes: Snapshot web-2[\s\S]*Run/);
    const seen = olivia.seesChannel("ops").messages.map(({ text }) => text);
    tour.holds(
      "that is the agent's only card: Olivia isn't asked about a restart",
      seen.filter((text) => text.includes("agent proposes")).length === 1,
    );
    tour.holds("nothing was sent", tour.world.compute.writes().length === before);
  },
];
