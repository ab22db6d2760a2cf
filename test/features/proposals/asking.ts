import { hash } from "node:crypto";
import { startWorld, testPolicy, type TestWorld } from "../../support/start-world.ts";

export const token = "test-token-deploy";
export const otherToken = "test-token-deploy-next";
export const everythingToken = "test-token-everything";
const hashed = (text: string) => `sha256:${hash("sha256", text)}`;

/**
 * Vera sees VMs without a team, Amir is in the team that has staging, and the service `deploy` sees
 * only payments.
 */
export const apiPolicy = `${testPolicy}
teams:
  qa: { projects: [staging], operate: [U0AMIR], channel: C02STATUS }
services:
  deploy:
    tokens: ["${hashed(token)}", "${hashed(otherToken)}"]
    view: [payments]
    propose: [{ operations: [vm.snapshot], targets: ["db-*"] }]
    channel: C01OPS
  dashboards:
    tokens: ["${hashed(everythingToken)}"]
    view: ["*"]
    # Tests ask until a fact is there
    limits: { requestsPerMinute: 1000 }
  blind:
    tokens: ["${hashed("test-token-blind")}"]
  eager:
    tokens: ["${hashed("test-token-eager")}"]
    view: ["vau*", prj-ml]
    limits: { requestsPerMinute: 3 }
`;

export const startApiWorld = (env: Record<string, string> = {}) =>
  startWorld({ policy: apiPolicy, env: { API_PORT: "0", ...env } });

export const addressOf = (world: TestWorld, path: string) =>
  `http://127.0.0.1:${world.processes[0]?.apiPort}${path}`;

/** Reads from the API as a service; resolves with status and JSON. */
export async function readAs(world: TestWorld, bearer: string | undefined, path: string) {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const answer = await fetch(addressOf(world, path), { headers });
  const type = answer.headers.get("content-type");
  return { status: answer.status, type, body: (await answer.json()) as Record<string, unknown> };
}
