import { startWorld } from "../../sandbox/world.ts";
import type { Figure } from "./figure.ts";

/** What one restart costs the service and Slack, counted from the command to its result. */
export async function measureRestart(): Promise<readonly Figure[]> {
  await using world = await startWorld({ slack: { rateLimits: "off" } });
  const olivia = world.slack.person("olivia");
  await olivia.types("ops", "/vm list");
  await olivia.until(({ channels }) => channels.some(({ messages }) => messages.length > 0));
  world.compute.forget();
  world.slack.forgetCalls();
  await olivia.types("ops", "/vm restart db-1");
  await olivia.until(() => olivia.mentions().length > 0, 30_000);
  const calls = world.compute.calls();
  const polls = calls.filter(({ method, path }) => method === "GET" && !path.endsWith("/projects"));
  const slack = world.slack.callCounts();
  const said = (slack["chat.postMessage"] ?? 0) + (slack["chat.update"] ?? 0);
  return [
    {
      name: "one restart: POSTs to the service",
      value: world.compute.writes().length,
      unit: "",
      bound: 1,
    },
    { name: "one restart: reads of the service", value: polls.length, unit: "" },
    { name: "one restart: messages and edits in Slack", value: said, unit: "", bound: 3 },
  ];
}
