import { hash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { ProposalState } from "../../../src/features/proposals/propose.ts";
import { type PolicyDifference, policyWith, type TestWorld } from "../../support/start-world.ts";

/** Tokens of the deploy job in these tests. They are nobody's secrets. */
export const tokens = ["fake-token-one", "fake-token-two"] as const;
const hashes = tokens.map((token) => `"sha256:${hash("sha256", token)}"`).join(", ");

export const apiEnv = { API_PORT: "0" };

/** The policy that lets the job propose, added to what people may do. */
export const deployPolicy = (more = "", difference: PolicyDifference = {}) =>
  policyWith(
    difference,
    `services:
  deploy:
    tokens: [${hashes}]
    view: ["payments"]
    propose:
      - { operations: ["vm.snapshot", "vm.restore"], targets: ["payments/*"] }
      - { operations: ["vm.restart"], targets: ["web-*"] }
    channel: C01OPS
${more}`,
  );

/** Limits of the job that no test meets, as a part of `more`. */
export const roomy = "    limits: { requestsPerMinute: 10000, openProposals: 1000 }\n";

/** Replaces gatehouse.yml; resolves once the first process goes by it. */
export async function replacePolicy(
  { env, processes }: Pick<TestWorld, "env" | "processes">,
  policy: string,
): Promise<void> {
  await writeFile(env["GATEHOUSE_CONFIG"] ?? "", policy);
  await processes[0]?.reload();
}

type Problem = { title: string; detail?: string; field?: string };
interface Answer {
  status: number;
  headers: Headers;
  body: ProposalState & Problem & { url?: string };
}

/** A program that calls the API with its own token over plain HTTP. */
export function deployJob({ processes }: Pick<TestWorld, "processes">, token: string = tokens[0]) {
  const url = () => `http://127.0.0.1:${processes.findLast((one) => one.apiPort)?.apiPort}`;
  const authorization = `Bearer ${token}`;
  const answered = async (response: Response): Promise<Answer> => ({
    status: response.status,
    headers: response.headers,
    body: JSON.parse(await response.text()),
  });
  return {
    url,
    proposes: async (command: unknown, reason: unknown = "release 42", key?: string) =>
      answered(
        await fetch(`${url()}/v1/proposals`, {
          method: "POST",
          headers: { authorization, ...(key === undefined ? {} : { "idempotency-key": key }) },
          body: JSON.stringify({ command, reason }),
        }),
      ),
    asks: async (id: string, query = "") =>
      answered(await fetch(`${url()}/v1/requests/${id}${query}`, { headers: { authorization } })),
  };
}
