import { addChannel } from "./channels.ts";
import { addGroup, addPerson } from "./people.ts";
import type { Workspace } from "./workspace.ts";

/**
 * The workspace of the demo and most tests. Olivia is on call and operates, Amir approves, Vera only looks, Ada
 * administers. Gina is a guest, Dora has left, Stan belongs to another company (Slack Connect), deploybot is a bot.
 */
export function seedDemo(workspace: Workspace): void {
  const { app, team } = workspace;
  addPerson(workspace, { id: "U0ADA", name: "ada", realName: "Ada Byron", role: "owner" });
  addPerson(workspace, { id: "U0OLIVIA", name: "olivia", realName: "Olivia Ortiz" });
  addPerson(workspace, { id: "U0AMIR", name: "amir", realName: "Amir Aziz" });
  addPerson(workspace, { id: "U0VERA", name: "vera", realName: "Vera Voss" });
  addPerson(workspace, { id: "U0GINA", name: "gina", realName: "Gina Gast", role: "guest" });
  addPerson(workspace, { id: "U0DORA", name: "dora", realName: "Dora Dunn" }).active = false;
  addPerson(workspace, {
    id: "U0STAN",
    name: "stan",
    realName: "Stan Strange",
    role: "stranger",
    teamId: "T09OTHER",
  });
  addPerson(workspace, { id: "U0DEPLOYBOT", name: "deploybot", role: "bot", botId: "B0DEPLOYBOT" });
  addPerson(workspace, {
    id: app.botUserId,
    name: app.botName,
    realName: "Gatehouse",
    role: "bot",
    botId: app.botId,
    teamId: team.id,
  });

  addGroup(workspace, "S01ONCALL", "oncall", "On call", ["U0OLIVIA"]);
  addGroup(workspace, "S02LEADS", "leads", "Leads", ["U0AMIR", "U0ADA"]);

  const staff = ["U0ADA", "U0OLIVIA", "U0AMIR", "U0VERA"];
  const bot = app.botUserId;
  addChannel(workspace, {
    id: "C01OPS",
    name: "ops",
    topic: "Running things",
    members: [...staff, "U0GINA", "U0DORA", "U0DEPLOYBOT", bot],
  });
  addChannel(workspace, { id: "C02STATUS", name: "status", members: [...staff, bot] });
  addChannel(workspace, { id: "C03AUDIT", name: "audit", members: ["U0ADA", "U0AMIR", bot] });
  addChannel(workspace, { id: "C04RANDOM", name: "random", members: staff });
  addChannel(workspace, {
    id: "C05LEADS",
    name: "leads-only",
    kind: "private",
    members: ["U0ADA", "U0AMIR", bot],
  });
  addChannel(workspace, {
    id: "C06SECRET",
    name: "secret",
    kind: "private",
    members: ["U0ADA", "U0OLIVIA"],
  });
  addChannel(workspace, {
    id: "C07VENDOR",
    name: "vendor",
    shared: true,
    members: [...staff, "U0STAN", bot],
  });
  for (const id of [...staff, "U0GINA"]) {
    addChannel(workspace, {
      id: id.replace("U0", "D0"),
      name: "",
      kind: "direct",
      members: [id, bot],
    });
  }
}
