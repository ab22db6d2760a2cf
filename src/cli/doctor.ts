import { trustAuthorities } from "../config/authorities.ts";
import { isExtraUnread, loadConfig, type Role } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Env } from "../config/environment.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import { version } from "../config/version.ts";
import { messageOf } from "../errors.ts";
import { policyName } from "../operate/adopt-policy.ts";
import type { JudgePolicy } from "../operate/checks/api.ts";
import { checks } from "../operate/checks/checks.ts";
import type { Command } from "../registry/define.ts";
import { roleIn } from "./command-line.ts";
import { useProxies } from "../operate/use-proxies.ts";
import { askAboutMessages } from "./doctor-messages.ts";
import { exitCodeOf, ill, note, render, type Section, well } from "../messages/finding.ts";

export const doctorUsage = `usage: node gatehouse.mjs doctor [gateway|worker] [--messages]
  checks the configuration, Slack, Redis, the compute service, the policy, ports, files of secrets, and the data
  directory, with the variables that Gatehouse itself would have; before it starts or while it runs. It reads, and writes
  one key in Redis that expires and a file in the data directory and in its ledger that it removes.
  --messages also asks Slack whether it takes each kind of message that Gatehouse makes; it posts none, and needs no token
  ✓ well   ! works, and could be better   ✗ must be fixed; each with what to do
  ends with 0 when nothing is ✗, else with 1`;

const messagesFlag = "--messages";

interface DoctorOptions {
  commands: readonly Command[];
  /** The commands and sections that gatehouse.yml can name. */
  terms: PolicyTerms;
  judgePolicy: JudgePolicy;
  env?: Env | undefined;
  write: (text: string) => void;
  /** Gets what isn't a result. */
  complain?: (text: string) => void;
}

/** `doctor` in a terminal. Prints no secret. */
export async function runDoctor(
  words: readonly string[],
  { write, complain = write, ...options }: DoctorOptions,
): Promise<0 | 1 | 64> {
  const isAboutMessages = words.includes(messagesFlag);
  const [word = "all", ...more] = words.filter((one) => one !== messagesFlag);
  const role = roleIn(word);
  if (role === undefined || more.length > 0) {
    complain(`${doctorUsage}\n`);
    return 64;
  }
  const { sections, secrets } = await examine(role, { ...options, isAboutMessages });
  // No line is built from a secret, but an error message of another program may contain one.
  write(secrets.reduce((text, secret) => text.replaceAll(secret, "[removed]"), render(sections)));
  return exitCodeOf(sections);
}

async function examine(
  role: Role,
  {
    commands,
    terms,
    judgePolicy,
    env,
    isAboutMessages,
  }: Omit<DoctorOptions, "write" | "complain"> & { isAboutMessages: boolean },
): Promise<{ sections: readonly Section[]; secrets: readonly string[] }> {
  try {
    const config = loadConfig({ role, terms, ...(env && { env }) });
    trustAuthorities(config.authorities);
    if (config.proxies) useProxies(config.proxies);
    const now = Date.now();
    const said = `all variables can be read; the policy has version ${policyName(config.policyVersion, config.policy.version)}`;
    const sections = checks.map(async ({ name, fromOutside }) => {
      const findings = await fromOutside?.(config, now, judgePolicy).catch((error: unknown) => {
        const mend = "Report this to the team that runs Gatehouse.";
        return [ill(`can't be checked: ${messageOf(error)}`, mend)];
      });
      return findings && { name, findings };
    });
    const unread = isExtraUnread(env)
      ? [
          note(
            "NODE_EXTRA_CA_CERTS is set, and Node.js read nothing from it: it must be in the environment that Node.js starts in",
            "Set CA_FILE to that file in its place; that works in .env, too.",
          ),
        ]
      : [];
    const warnings = config.warnings.map((warning) =>
      note(warning, "Gatehouse starts, and goes on as if it were not set."),
    );
    const name = `Configuration (Gatehouse ${version}, Node.js ${process.version})`;
    const found = (await Promise.all(sections)).filter((section) => section !== undefined);
    const messages = isAboutMessages
      ? [{ name: "Messages (blocks.validate)", findings: await askAboutMessages(config, commands) }]
      : [];
    const first = { name, findings: [well(said), ...unread, ...warnings] };
    return { sections: [first, ...found, ...messages], secrets: config.secrets };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const mend = 'docs/install.md, "Variables", and .env.example say what belongs there.';
    const findings = error.problems.map((problem) => ill(problem, mend));
    return { sections: [{ name: `Configuration (Gatehouse ${version})`, findings }], secrets: [] };
  }
}
