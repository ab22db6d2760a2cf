import { ComputeError } from "../../fleet/compute/compute.ts";
import type { Config } from "../../config/config.ts";
import { proxyFor } from "../../config/proxy.ts";
import { withHint } from "../../errors.ts";
import { silentLog } from "../../log/log.ts";
import { connectCompute } from "../connect-compute.ts";
import {
  earliestEnd,
  judgeCertificate,
  judgeOwnCertificate,
  lookAtCertificate,
} from "./certificate.ts";
import { type Finding, ill, note, proxyFinding, well } from "../../messages/finding.ts";

export type ServiceFacts = Awaited<ReturnType<typeof lookAtService>>;

/** Reads the list of projects, as Gatehouse does regularly. */
export async function lookAtService(config: Config, now: number) {
  const { url } = config.compute;
  const { ca, cert = "", key } = config.compute.tls();
  const { protocol, hostname, port } = new URL(url);
  const proxy = proxyFor(url, config.proxies);
  const compute = connectCompute(config, { log: silentLog() });
  const began = performance.now();
  try {
    const read = await compute.projects.listAll(1).then(
      ({ length }) => ({ projects: length, ms: performance.now() - began }),
      (error: unknown) => ({
        reason: error instanceof ComputeError ? error.reason : undefined,
        status: error instanceof ComputeError ? error.status : undefined,
        message: withHint(error, ". "),
      }),
    );
    const isForbidden = "reason" in read && read.reason === "forbidden-address";
    return {
      host: new URL(url).host,
      proxy: proxy === undefined ? undefined : new URL(proxy).host,
      /**
       * The result of one read with the key: the number of projects, or why there was no usable
       * answer.
       */
      read,
      /** The server's certificate, if the connection uses https and a handshake completed. */
      certificate:
        protocol !== "https:" || isForbidden
          ? undefined
          : await lookAtCertificate(
              {
                host: hostname.replace(/^\[|\]$/g, ""),
                port: Number(port || 443),
                proxy,
                ca,
                ...(cert === "" ? {} : { cert, key }),
              },
              now,
            ),
      /** Whether CA_FILE is set. */
      authorities: config.authorities !== undefined,
      /** Whether COMPUTE_CA_FILE is set. */
      isStrict: ca !== undefined,
      /** When the certificate that Gatehouse presents expires. */
      ownValidTo: earliestEnd(cert),
      now,
    };
  } finally {
    await compute.close();
  }
}

/** Findings by the status of the answer, where the status says more than the error. */
const refusals: Readonly<Record<number, readonly [what: string, mend: string]>> = {
  401: [
    "COMPUTE_API_KEY is refused (401)",
    "Put a valid key there: it may have expired or been revoked.",
  ],
  403: ["COMPUTE_API_KEY may not read projects (403)", "Give the key the right to read projects."],
  404: [
    "the list of projects isn't there (404)",
    "COMPUTE_API_URL names another path or another service: Gatehouse appends /v1/….",
  ],
};

const mends: Readonly<Record<string, string>> = {
  dns: "Check the name in COMPUTE_API_URL, and the DNS of this machine.",
  connect:
    "Nothing listens there, or a firewall is in between: check COMPUTE_API_URL, and whether HTTPS_PROXY is needed.",
  timeout: "Nothing answers there: check for a firewall, and whether HTTPS_PROXY is needed.",
  reset: "Something cuts the connection: check for a firewall, and whether HTTPS_PROXY is needed.",
  proxy: "Check HTTPS_PROXY, and whether the proxy allows that host; NO_PROXY goes around it.",
  tls: "The handshake failed: nothing was sent. A line about its certificate follows, where it showed one.",
  "forbidden-address":
    "The name leads to a private address. If that is right, set COMPUTE_ALLOW_PRIVATE=1, or its range.",
  redirect: "Put the address that it redirects to into COMPUTE_API_URL.",
  answer: "Something else answers there (a login page, a proxy): check COMPUTE_API_URL.",
  status: "The service has a problem: check the service itself.",
};

export function judgeService(facts: ServiceFacts): readonly Finding[] {
  return [readFinding(facts), ...certificateFindings(facts)];
}

function readFinding({ host, proxy, read }: ServiceFacts): Finding {
  const where = proxy === undefined ? host : `${host}, through the proxy ${proxy}`;
  if ("projects" in read) {
    const summary = `${where}: the key may read projects (${read.ms.toFixed(0)} ms)`;
    return read.projects > 0
      ? well(summary)
      : note(`${summary}, and there is none`, "Does the key belong to the right team?");
  }
  const { status = 0, reason = "other", message } = read;
  if (reason === "proxy-login") return proxyFinding(407, where);
  const [problem, mend] = refusals[status] ?? [message, mends[reason]];
  return ill(`${where}: ${problem}`, mend ?? "Check COMPUTE_API_URL, and the service itself.");
}

/** Judges the service's certificate, and the one that Gatehouse presents. */
function certificateFindings(facts: ServiceFacts): readonly Finding[] {
  const { certificate, ownValidTo, now } = facts;
  const findings: Finding[] = [];
  if (certificate !== undefined) {
    const { authorities: hasAuthorities, isStrict } = facts;
    const only = isStrict ? "COMPUTE_CA_FILE" : undefined;
    const variables = { address: "COMPUTE_API_URL", only, hasAuthorities };
    const soon = "once it expires, all changes freeze";
    findings.push(judgeCertificate(certificate, variables, now, soon));
  }
  findings.push(...judgeOwnCertificate("COMPUTE_CLIENT_CERT_FILE", ownValidTo, now));
  return findings;
}
