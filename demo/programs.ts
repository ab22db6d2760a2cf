import { hash } from "node:crypto";

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
  prometheus: { format: alertmanager, vm: [vm] }
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
  const taken = await fetch(`http://127.0.0.1:${apiPort}/alerts/prometheus`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${alertSecret}` },
    body: JSON.stringify(body),
  });
  if (taken.ok) return;
  const { title, detail } = (await taken.json()) as { title: string; detail?: string };
  throw new Error(`The API refused the alert: ${[title, detail].filter(Boolean).join(" ")}`);
}

const asDeploy = { "content-type": "application/json", authorization: `Bearer ${deployToken}` };

/** What a deploy job asks for. Resolves with the answer's JSON. */
export async function propose(apiPort: number, command: string, reason: string) {
  const body = JSON.stringify({ command, reason });
  const url = `http://127.0.0.1:${apiPort}/v1/proposals`;
  const answer = await fetch(url, { method: "POST", headers: asDeploy, body });
  return (await answer.json()) as { id: string; state: string };
}

/** What a deploy job is told of its proposal, and of the request made of it. */
export async function proposalAt(apiPort: number, id: string) {
  const url = `http://127.0.0.1:${apiPort}/v1/requests/${id}`;
  const answer = await fetch(url, { headers: asDeploy });
  return (await answer.json()) as { state: string; by?: string; result?: string };
}

export const stateOfProposal = async (apiPort: number, id: string): Promise<string> =>
  (await proposalAt(apiPort, id)).state;
