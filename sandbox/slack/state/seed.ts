import { addChannel } from "./channels.ts";
import { addGroup, addPerson } from "./people.ts";
import type { Workspace } from "./workspace.ts";

/**
 * A small company. Ada owns the workspace; Olivia (in @oncall), Amir (in @leads, as Ada is), and Vera are members. Gina is a guest,
 * Dora has left, Stan belongs to another company (Slack Connect), deploybot is another app's bot. The app is in #ops, #status,
 * #audit, #leads-only, and #vendor, not in #random and #secret.
 */
export function seedDemo(workspace: Workspace): void {
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

  addGroup(workspace, "S01ONCALL", "oncall", "On call", ["U0OLIVIA"]);
  addGroup(workspace, "S02LEADS", "leads", "Leads", ["U0AMIR", "U0ADA"]);

  const staff = ["U0ADA", "U0OLIVIA", "U0AMIR", "U0VERA"];
  const bot = workspace.app.botUserId;
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
