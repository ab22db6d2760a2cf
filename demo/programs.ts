import { hash } from "node:crypto";
import { runPropose } from "../src/cli/propose.ts";
import { connectAgent, dataOf } from "./agent.ts";

/** What speaks to the API of a sandbox's Gatehouse besides people. Obviously fake secrets. */
export const alertSecret = "sandbox-alert-secret";
export const deployToken = "sandbox-deploy-token";
export const agentToken = "sandbox-agent-token";
const hashOf = (token: string) => `sha256:${hash("sha256", token)}`;

/** The variables and the sections of gatehouse.yml that let them in. */
export const apiEnv = { API_PORT: "0", SOURCE_SECRET_PROMETHEUS: alertSecret };
export const servicesPolicy = `services:
  deploy:
    tokens: ["${hashOf(deployToken)}"]
    view: ["payments"]
    propose: [{ operations: ["vm.snapshot"], targets: ["payments/*"] }]
    channel: C01OPS
  agent:
    tokens: ["${hashOf(agentToken)}"]
    view: ["payments"]
    propose: [{ operations: ["vm.snapshot"], targets: ["payments/*"] }]
    channel: C01OPS
`;
export const apiPolicy = `sources:
  prometheus: { format: alertmanager, vm: [vm], notify: { critical: ["S01ONCALL"] } }
${servicesPolicy}`;

/** Sends what Alertmanager sends when this VM's alert begins (ISO 8601), or has ended. Rejects unless it was taken. */
export async function sendAlert(
  apiPort: number,
  {
    vm,
    startsAt,
    endsAt,
    name = "HighCpu",
  }: { vm: string; startsAt: string; endsAt?: string; name?: string },
): Promise<void> {
  const status = endsAt === undefined ? "firing" : "resolved";
  const labels = { alertname: name, severity: "critical", vm };
  const what = name === "HighCpu" ? "CPU" : "Memory";
  const annotations = {
    summary: `${what} of ${vm} above 95% for 5 min`,
    description: "Requests wait longer than 2 s. The runbook says what to try.",
    runbook_url: `https://runbooks.example/${name}`,
  };
  const times = { startsAt, endsAt: endsAt ?? "0001-01-01T00:00:00Z" };
  const fingerprint = hash("sha256", `${name} ${vm}`).slice(0, 16);
  const generatorURL = `https://prometheus.example/graph?g0.expr=${name}`;
  const body = {
    version: "4",
    groupKey: `{}:{alertname="${name}", vm="${vm}"}`,
    truncatedAlerts: 0,
    status,
    receiver: "gatehouse",
    groupLabels: { alertname: name },
    commonLabels: labels,
    commonAnnotations: annotations,
    externalURL: "http://alertmanager.example",
    alerts: [{ status, labels, annotations, ...times, generatorURL, fingerprint }],
  };
  const taken = await fetch(`${addressOf(apiPort)}/alerts/prometheus`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${alertSecret}` },
    body: JSON.stringify(body),
  });
  if (taken.ok) return;
  const { title, detail } = (await taken.json()) as { title: string; detail?: string };
  throw new Error(`The API refused the alert: ${[title, detail].filter(Boolean).join(" ")}`);
}

const asDeploy = { authorization: `Bearer ${deployToken}` };

const addressOf = (apiPort: number) => `http://127.0.0.1:${apiPort}`;

/** The port of the API, where one of these processes has it. */
export const apiPortOf = (processes: readonly { apiPort: number | undefined }[]): number =>
  processes.find((one) => one.apiPort !== undefined)?.apiPort ?? 0;

/** What the deploy job and the agent of the demo propose, each with its reason. */
export const deployProposes = ["vm snapshot db-1 before-deploy", "release 42"] as const;
export const agentProposes = ["vm snapshot web-2 before-the-fix", "CPU is high"] as const;

/** Proposes as a deploy job, by the code of `gatehouse.mjs propose`. Rejects unless it was taken. */
export async function propose(
  apiPort: number,
  command: string,
  reason: string,
): Promise<{ id: string; state: string }> {
  let said = "";
  await runPropose([command, "--reason", reason], {
    api: () => ({ url: addressOf(apiPort), token: deployToken }),
    write: (text) => void (said += text),
  });
  const [, state, id] = /^(\w+): (p-\w+)/m.exec(said) ?? [];
  if (state === undefined || id === undefined) throw new Error(said.trim());
  return { id, state };
}

/** Proposes as an agent, over MCP. Rejects unless it was taken. */
export async function proposeAsAgent(
  apiPort: number,
  command: string,
  reason: string,
): Promise<void> {
  await using agent = await connectAgent(`${addressOf(apiPort)}/mcp`, { bearer: agentToken });
  const answer = await agent.callTool({ name: "propose", arguments: { command, reason } });
  if (answer.isError === true) throw new Error(dataOf(answer));
}

/** What to copy into a terminal to propose as a program and as an agent: the address, the token, and the command. */
export function linesToPropose(apiPort: number): { program: string[]; agent: string[] } {
  const [command, reason] = agentProposes;
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "propose", arguments: { command, reason } },
  };
  const types =
    '-H "Content-Type: application/json" -H "Accept: application/json, text/event-stream"';
  return {
    program: [
      `export GATEHOUSE_URL=${addressOf(apiPort)}`,
      `export GATEHOUSE_TOKEN=${deployToken}`,
      `npx node gatehouse.mjs propose "${deployProposes[0]}" --reason "${deployProposes[1]}"`,
    ],
    agent: [
      `export MCP_URL=${addressOf(apiPort)}/mcp`,
      `export MCP_TOKEN=${agentToken}`,
      `curl -sS "$MCP_URL" -H "Authorization: Bearer $MCP_TOKEN" ${types} -d '${JSON.stringify(call)}'`,
    ],
  };
}

/** What a deploy job is told of its proposal, and of the request made of it. */
export async function proposalAt(apiPort: number, id: string) {
  const url = `${addressOf(apiPort)}/v1/requests/${id}`;
  const answer = await fetch(url, { headers: asDeploy });
  return (await answer.json()) as { state: string; by?: string; result?: string };
}

export const stateOfProposal = async (apiPort: number, id: string): Promise<string> =>
  (await proposalAt(apiPort, id)).state;
