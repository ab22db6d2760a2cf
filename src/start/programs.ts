import { attestationUsage, runAttestation } from "../attestation/cli.ts";
import { auditUsage, runAudit } from "../audit/cli.ts";
import { commands } from "../commands/index.ts";
import {
  loadAuditConfig,
  loadEndorsementsFolder,
  loadSlackAccess,
  loadSourceProblems,
  policyPath,
} from "../config/config.ts";
import { operationsOf } from "../policy/approval-rule.ts";
import { orExit, type Programs } from "./command-line.ts";
import { doctorUsage, runDoctor } from "./doctor/doctor.ts";
import { policyUsage, runPolicy } from "./policy-cli.ts";
import { retentionUsage, runRetention } from "./retention.ts";

const operations = operationsOf(commands);

/** What runs in a terminal beside Gatehouse itself. */
export const programs: Programs = {
  doctor: {
    what: "checks Slack, Redis, the compute service, the policy, and the data directory",
    usage: doctorUsage,
    run: (words, write) => runDoctor(words, { write }),
  },
  audit: {
    what: "verifies or exports the audit trail, or erases records: verify, export, head, erase",
    usage: auditUsage,
    run: (words, write) =>
      runAudit(words, {
        // Only when it is needed: an exported file is verified without Redis
        get redisUrl() {
          return orExit(loadAuditConfig).redisUrl;
        },
        get dataDir() {
          return orExit(loadAuditConfig).dataDir;
        },
        write,
      }),
  },
  retention: {
    what: "lists what Redis holds, how large, for how long, and what you can delete",
    usage: retentionUsage,
    run: (words, write) =>
      runRetention(words, { redisUrl: () => orExit(loadAuditConfig).redisUrl, write }),
  },
  policy: {
    what: "shows what gatehouse.yml decides, without starting Gatehouse: check, explain, test",
    usage: policyUsage,
    run: (words, write) =>
      runPolicy(words, {
        file: policyPath(),
        write,
        slack: loadSlackAccess(),
        sourceProblem: loadSourceProblems(),
      }),
  },
  attestation: {
    what: "verifies Intel TDX and AMD SEV-SNP evidence, offline, and keeps endorsements: check, status, import",
    usage: attestationUsage,
    run: (words, write) =>
      runAttestation(words, {
        write,
        endorsements: () => loadEndorsementsFolder({ operations }),
      }),
  },
};
