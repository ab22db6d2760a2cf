import { commands } from "../../commands/index.ts";
import { type Config, ConfigError, loadConfig, type Role } from "../../config/config.ts";
import { version } from "../../config/version.ts";
import { messageOf } from "../../errors.ts";
import { operationsOf } from "../../policy/approval-rule.ts";
import { useProxies } from "../use-proxies.ts";
import { judgeDirectory, lookAtDirectory } from "./directory.ts";
import { lookAtFolder } from "./endorsements.ts";
import { exitCodeOf, type Finding, ill, render, type Section, well } from "./finding.ts";
import { judgePolicy, lookAtPolicy } from "./policy.ts";
import { judgeRedis, lookAtRedis } from "./redis.ts";
import { judgeService, lookAtService } from "./service.ts";
import { judgeSlack, lookAtSlack } from "./slack.ts";

export const doctorUsage = `usage: node gatehouse.mjs doctor [gateway|worker]
  checks the configuration, Slack, Redis, the compute service, the policy, and the data directory, with the variables that
  Gatehouse itself would have; before it starts or while it runs. It reads, and writes one key in Redis that expires and one
  file in the data directory that it removes.
  ✓ well   ! works, and could be better   ✗ must be mended; each with what to do
  ends with 0 when nothing is ✗, else with 1`;

type Env = Readonly<Record<string, string | undefined>>;

/** `doctor` in a terminal. Prints no secret. */
export async function runDoctor(
  words: readonly string[],
  { env, write }: { env?: Env; write: (text: string) => void },
): Promise<0 | 1 | 64> {
  const [word = "all", ...more] = words;
  const role = (["all", "gateway", "worker"] as const).find((one) => one === word);
  if (role === undefined || more.length > 0) {
    write(`${doctorUsage}\n`);
    return 64;
  }
  const { sections, secrets } = await examine(role, env);
  // No line is made of a secret; what others say in an error might be
  write(secrets.reduce((text, secret) => text.replaceAll(secret, "[removed]"), render(sections)));
  return exitCodeOf(sections);
}

/** Names the line of gatehouse.yml that it is about. */
const withPlace =
  ({ policyFile }: Config) =>
  (finding: Finding): Finding => ({
    ...finding,
    what: (Array.isArray(finding.about) ? policyFile.placeOf(finding.about) : "") + finding.what,
  });

async function examine(
  role: Role,
  env: Env | undefined,
): Promise<{ sections: readonly Section[]; secrets: readonly string[] }> {
  const operations = operationsOf(commands);
  let config: Config;
  try {
    config = loadConfig({ role, operations, ...(env && { env }) });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const mend = 'docs/install.md, "Variables", and .env.example say what belongs there.';
    const findings = error.problems.map((problem) => ill(problem, mend));
    return { sections: [{ name: `Configuration (Gatehouse ${version})`, findings }], secrets: [] };
  }
  if (config.proxies) useProxies(config.proxies);
  const now = Date.now();
  const sections: readonly [string, () => Promise<readonly Finding[]>][] = [
    ["Slack", async () => judgeSlack(await lookAtSlack(config, now))],
    ["Redis", async () => judgeRedis(await lookAtRedis(config))],
    ["Compute service", async () => judgeService(await lookAtService(config, now))],
    [
      "Policy",
      async () => [
        ...judgePolicy(await lookAtPolicy(config)),
        ...lookAtFolder(config.policyFile.asWritten.attestation).map(withPlace(config)),
      ],
    ],
    ["Data directory", async () => judgeDirectory(lookAtDirectory(config.dataDir))],
  ];
  const looked = sections.map(async ([name, look]) => {
    const findings = await look().catch((error: unknown) => [
      ill(`can't be checked: ${messageOf(error)}`, "Report this to the team that runs Gatehouse."),
    ]);
    return { name, findings };
  });
  const configuration = {
    name: `Configuration (Gatehouse ${version}, Node.js ${process.version})`,
    findings: [well(`all variables can be read; the policy has version ${config.policyVersion}`)],
  };
  return { sections: [configuration, ...(await Promise.all(looked))], secrets: config.secrets };
}
