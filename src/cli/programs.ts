import { trustAuthorities } from "../config/authorities.ts";
import {
  describeTokenSource,
  loadAuditConfig,
  loadApiAccess,
  loadCallerProblems,
  loadEndorsementsFolder,
  loadSlackAccess,
  policyPath,
} from "../config/config.ts";
import type { PolicyTerms } from "../config/policy-section.ts";
import type { Proxies } from "../config/proxy.ts";
import type { JudgePolicy } from "../operate/checks/api.ts";
import { orExit } from "../operate/exit-config.ts";
import { useProxies } from "../operate/use-proxies.ts";
import type { Command } from "../registry/define.ts";
import { attestationUsage, runAttestation } from "./attestation.ts";
import { auditUsage, runAudit } from "./audit.ts";
import type { Programs } from "./command-line.ts";
import { completionUsage, runCompletion } from "./completion.ts";
import { doctorUsage, runDoctor } from "./doctor.ts";
import { policyUsage, runPolicy } from "./policy.ts";
import { proposeUsage, runPropose } from "./propose.ts";
import { runToken, tokenUsage } from "./token.ts";

/** Passed in by `main.ts`, because programs don't know features. */
interface FromFeatures {
  /** In the order of help. */
  commands: readonly Command[];
  terms: PolicyTerms;
  judgePolicy: JudgePolicy;
}

/** Loads the access that a program needs, and connects by its authorities and proxies from then on. */
function loadTrusting<
  T extends { authorities?: string | undefined; proxies?: Proxies | undefined },
>(load: () => T): T {
  const access = load();
  trustAuthorities(access.authorities);
  if (access.proxies) useProxies(access.proxies);
  return access;
}
const api = () => loadTrusting(() => orExit(loadApiAccess));
const audit = () => loadTrusting(() => orExit(loadAuditConfig));

/** The programs that run in a terminal, apart from Gatehouse itself. */
export function programsFor(handed: FromFeatures): Programs {
  const { commands, terms } = handed;
  const programs: Programs = {
    doctor: {
      what: "checks Slack, Redis, the compute service, the policy, and the data directory",
      usage: doctorUsage,
      run: (words, write) => runDoctor(words, { ...handed, write }),
    },
    audit: {
      what: "verifies or exports the audit trail, or erases records: verify, export, head, erase",
      usage: auditUsage,
      run: (words, write) =>
        runAudit(words, {
          // It is read only when needed: an exported file is verified without Redis.
          get redisUrl() {
            return audit().redisUrl;
          },
          certificate: () => audit().redisCertificate,
          get dataDir() {
            return audit().dataDir;
          },
          write,
        }),
    },
    policy: {
      what: "shows what gatehouse.yml decides, without starting Gatehouse: check, explain, test",
      usage: policyUsage,
      run: (words, write) =>
        runPolicy(words, {
          file: policyPath(),
          write,
          ...handed,
          slack: loadSlackAccess(),
          secretProblem: loadCallerProblems(),
        }),
    },
    attestation: {
      what: "verifies Intel TDX and AMD SEV-SNP evidence, offline, and keeps endorsements: check, status, import",
      usage: attestationUsage,
      run: (words, write) =>
        runAttestation(words, {
          write,
          endorsements: () => loadEndorsementsFolder({ terms }),
        }),
    },
    propose: {
      what: "proposes a change through the API, as a service, and follows it",
      usage: proposeUsage,
      run: (words, write, aside) =>
        runPropose(words, { api, tokenSource: describeTokenSource(), write, ...aside }),
    },
    token: {
      what: "makes a token for a service, and its hash for gatehouse.yml",
      usage: tokenUsage,
      run: (words, write) => runToken(words, write),
    },
    completion: {
      what: "prints the completion of commands and VMs for a shell: bash, zsh",
      usage: completionUsage,
      run: (words, write) =>
        runCompletion(words, {
          commands,
          api: () => loadTrusting(loadApiAccess),
          write,
          main: process.argv[1] ?? "gatehouse.mjs",
          programs: Object.keys(programs),
        }),
    },
  };
  return programs;
}
