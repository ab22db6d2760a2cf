import type { ApiAccess } from "../config/api-access.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import type { Proxies } from "../config/proxy.ts";
import type { JudgePolicy } from "../operate/checks/api.ts";
import type { Command } from "../registry/define.ts";
import type { Programs } from "./command-line.ts";
import { processEnv } from "../config/process-env.ts";

/** Passed in by `main.ts`, because programs don't know features. */
interface FromFeatures {
  /** In the order of help. */
  commands: readonly Command[];
  terms: PolicyTerms;
  judgePolicy: JudgePolicy;
}

/** Connects by the authorities and proxies of this access from now on. */
async function trust({
  authorities,
  proxies,
}: {
  authorities?: string | undefined;
  proxies?: Proxies | undefined;
}): Promise<void> {
  if (authorities !== undefined) {
    const { trustAuthorities } = await import("../config/authorities.ts");
    trustAuthorities(authorities);
  }
  if (proxies) {
    const { useProxies } = await import("../operate/use-proxies.ts");
    useProxies(proxies);
  }
}

/** Throws ConfigError. */
async function apiAccess(): Promise<ApiAccess> {
  const { loadApiAccess } = await import("../config/api-access.ts");
  const access = loadApiAccess();
  await trust(access);
  return access;
}

/**
 * The programs that run in a terminal, apart from Gatehouse itself. Each loads what it needs when it
 * is run or explained, because whoever presses Tab waits for that.
 */
export function programsFor(handed: () => Promise<FromFeatures>): Programs {
  const programs: Programs = {
    doctor: {
      summary: "checks Slack, Redis, the compute service, the policy, and the data directory",
      async load() {
        const { doctorUsage, runDoctor } = await import("./doctor.ts");
        return {
          usage: doctorUsage,
          run: async (words, out) => runDoctor(words, { ...(await handed()), ...out }),
        };
      },
    },
    audit: {
      summary:
        "verifies, exports, or cuts the audit trail, records losses, or erases records and people: verify, export, head, archive, erase, record-gap",
      async load() {
        const { auditUsage, runAudit } = await import("./audit.ts");
        const { loadAuditConfig } = await import("../config/config.ts");
        const { orExit } = await import("../operate/exit-config.ts");
        return {
          usage: auditUsage,
          run: (words, out) =>
            runAudit(words, {
              // It is read only when needed: an exported file is verified without Redis.
              async access() {
                const config = orExit(loadAuditConfig);
                await trust(config);
                return config;
              },
              ...out,
            }),
        };
      },
    },
    policy: {
      summary: "shows what gatehouse.yml decides, without starting Gatehouse: check, explain, test",
      async load() {
        const { policyUsage, runPolicy } = await import("./policy.ts");
        const config = await import("../config/config.ts");
        return {
          usage: policyUsage,
          run: async (words, out) =>
            runPolicy(words, {
              file: config.policyPath(),
              ...out,
              ...(await handed()),
              slack: config.loadSlackAccess(),
              secretProblem: config.loadCallerProblems(),
            }),
        };
      },
    },
    attestation: {
      summary:
        "verifies Intel TDX and AMD SEV-SNP evidence, offline, and keeps endorsements: check, status, import",
      async load() {
        const { attestationUsage, runAttestation } = await import("./attestation.ts");
        const { loadEndorsementsFolder } = await import("../config/config.ts");
        return {
          usage: attestationUsage,
          run: (words, out) =>
            runAttestation(words, {
              ...out,
              endorsements: async () => loadEndorsementsFolder({ terms: (await handed()).terms }),
            }),
        };
      },
    },
    propose: {
      summary: "proposes a change through the API, as a service, and follows it",
      async load() {
        const { proposeUsage, runPropose } = await import("./propose.ts");
        const { describeTokenSource } = await import("../config/api-access.ts");
        const { exitConfigOn } = await import("../operate/exit-config.ts");
        return {
          usage: proposeUsage,
          run: (words, out) =>
            runPropose(words, {
              api: () => apiAccess().catch(exitConfigOn),
              tokenSource: describeTokenSource(),
              ...out,
            }),
        };
      },
    },
    token: {
      summary: "makes a token for a service, and its hash for gatehouse.yml",
      async load() {
        const { runToken, tokenUsage } = await import("./token.ts");
        return { usage: tokenUsage, run: runToken };
      },
    },
    completion: {
      summary: "prints the completion of commands and VMs for a shell: bash, zsh",
      async load() {
        const { completionUsage, runCompletion } = await import("./completion.ts");
        return {
          usage: completionUsage,
          run: (words, out) =>
            runCompletion(words, {
              api: processEnv["GATEHOUSE_URL"] ? apiAccess : undefined,
              main: process.argv[1] ?? "gatehouse.mjs",
              programs: Object.keys(programs),
              ...out,
            }),
        };
      },
    },
  };
  return programs;
}
