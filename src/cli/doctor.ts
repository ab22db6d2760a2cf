import { trustAuthorities } from "../config/authorities.ts";
import { isExtraUnread, loadConfig, type Role } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Env } from "../config/environment.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import { versionInWords } from "../config/version.ts";
import { messageOf } from "../errors.ts";
import { policyName } from "../operate/adopt-policy.ts";
import type { JudgePolicy } from "../operate/checks/api.ts";
import { checks } from "../operate/checks/checks.ts";
import type { Command } from "../registry/define.ts";
import { roleIn } from "./command-line.ts";
import { useProxies } from "../operate/use-proxies.ts";
import { askAboutMessages } from "./doctor-messages.ts";
import { exitCodeOf, ill, note, render, type Section, well } from "../messages/finding.ts";
import { processEnv } from "../config/process-env.ts";

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
  const [word = "all", ...more] = words.filter((argument) => argument !== messagesFlag);
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

/**
 * The configuration for checks, and all its problems. Wrong variables that may be left out, and a
 * wrong policy, are left out, so that one typo doesn't hide what else is wrong. Undefined when too
 * much is missing to look at anything.
 */
function loadDespite(role: Role, terms: PolicyTerms, env: Env = processEnv) {
  try {
    return { config: loadConfig({ role, terms, env }), problems: [], isPolicyLeftOut: false };
  } catch (error) {
    const problems = problemsIn(error);
    const wrong = new Set(problems.map((problem) => problem.split(":")[0]));
    const isPolicyLeftOut = wrong.has("GATEHOUSE_CONFIG");
    const others = Object.fromEntries(Object.entries(env).filter(([name]) => !wrong.has(name)));
    try {
      const config = loadConfig({ role, terms, env: others, isPolicyLeftOut });
      return { config, problems, isPolicyLeftOut };
    } catch (again) {
      problemsIn(again);
      return { problems, isPolicyLeftOut };
    }
  }
}

function problemsIn(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  throw error;
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
  const { config, problems, isPolicyLeftOut } = loadDespite(role, terms, env);
  const name = `Configuration (Gatehouse ${versionInWords()}, Node.js ${process.version})`;
  const wrong = problems.map((problem) =>
    ill(problem, 'docs/install.md, "Variables", and .env.example say what belongs there.'),
  );
  if (config === undefined) return { sections: [{ name, findings: wrong }], secrets: [] };
  trustAuthorities(config.authorities);
  if (config.proxies) useProxies(config.proxies);
  const now = Date.now();
  const state =
    wrong.length > 0
      ? note(
          `the rest is checked ${isPolicyLeftOut ? "without the policy" : "as if these were not set"}`,
          "Gatehouse doesn't start until they are right.",
        )
      : well(
          `all variables can be read; the policy has version ${policyName(config.policyVersion, config.policy.version)}`,
        );
  const possible = checks.filter(({ isOfPolicy }) => !isOfPolicy || !isPolicyLeftOut);
  const sections = possible.map(async ({ name: of, fromOutside }) => {
    const findings = await fromOutside?.(config, now, judgePolicy).catch((error: unknown) => {
      const mend = "Report this to the team that runs Gatehouse.";
      return [ill(`can't be checked: ${messageOf(error)}`, mend)];
    });
    return findings && { name: of, findings };
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
  const answeredSections = (await Promise.all(sections)).filter((section) => section !== undefined);
  const messages = isAboutMessages
    ? [{ name: "Messages (blocks.validate)", findings: await askAboutMessages(config, commands) }]
    : [];
  const first = { name, findings: [...wrong, state, ...unread, ...warnings] };
  return { sections: [first, ...answeredSections, ...messages], secrets: config.secrets };
}
