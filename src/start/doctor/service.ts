import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { ComputeError } from "../../compute/compute.ts";
import type { Config } from "../../config/config.ts";
import { certificatesIn } from "../../config/compute-tls.ts";
import { proxyFor } from "../../config/proxy.ts";
import { messageOf, withHint } from "../../errors.ts";
import { silentLog } from "../../log/log.ts";
import { connectCompute } from "../services.ts";
import { type Finding, ill, note, proxyFinding, well } from "./finding.ts";

const handshakeMs = 5_000;

export type ServiceFacts = Awaited<ReturnType<typeof lookAtService>>;

/** Reads the list of projects, as Gatehouse does all the time. */
export async function lookAtService(config: Config, now: number) {
  const { url } = config.compute;
  const { ca, cert = "" } = config.compute.tls();
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
    const ends = certificatesIn(cert).map((one) => Date.parse(one?.validTo ?? ""));
    return {
      host: new URL(url).host,
      proxy: proxy === undefined ? undefined : new URL(proxy).host,
      /** Of one read with the key: how many projects, or why there was no answer to use. */
      read,
      /** Over https, without a proxy, where a handshake came to an end. */
      certificate:
        proxy !== undefined || isForbidden ? undefined : await lookAtCertificate(url, ca),
      /** When the certificate that Gatehouse shows ends. */
      ownValidTo: ends.length === 0 ? undefined : Math.min(...ends),
      now,
    };
  } finally {
    await compute.close();
  }
}

/** A handshake that trusts anyone, to see whom; nothing is sent in it. */
async function lookAtCertificate(url: string, ca: string | undefined) {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "https:") return undefined;
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connectTls({
    host,
    port: Number(port || 443),
    ...(/^[\d.:]+$/.test(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
    rejectUnauthorized: false,
  });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.timeout(handshakeMs) });
    const { subject, issuer, valid_to } = socket.getPeerCertificate();
    const name = (of: typeof subject | undefined) =>
      [of?.CN ?? of?.O ?? "no name"].flat().join(", ");
    const { authorized, authorizationError } = socket;
    return {
      subject: name(subject),
      issuer: name(issuer),
      validTo: Date.parse(valid_to),
      /** Why it isn't trusted; undefined when it is. */
      problem: authorized ? undefined : messageOf(authorizationError),
    };
  } catch {
    return undefined;
  } finally {
    socket.on("error", () => undefined);
    socket.destroy();
  }
}

const fewDays = 14;
const daysUntil = (end: number, now: number) => Math.floor((end - now) / 86_400_000);

/** By the status of the answer, where that says more than its error. */
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
  tls: "The certificate isn't trusted; see the next line. A private authority belongs in COMPUTE_CA_FILE.",
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
    const found = `${where}: the key may read projects (${read.ms.toFixed(0)} ms)`;
    return read.projects > 0
      ? well(found)
      : note(`${found}, and there is none`, "Does the key belong to the right team?");
  }
  const { status = 0, reason = "other", message } = read;
  if (reason === "proxy-login") return proxyFinding(407, where);
  const [what, mend] = refusals[status] ?? [message, mends[reason]];
  return ill(`${where}: ${what}`, mend ?? "Check COMPUTE_API_URL, and the service itself.");
}

/** Of the service's certificate, and of the one that Gatehouse shows. */
function certificateFindings(facts: ServiceFacts): readonly Finding[] {
  const { certificate, ownValidTo, now } = facts;
  const found: Finding[] = [];
  if (certificate !== undefined) {
    const { subject, issuer, validTo, problem } = certificate;
    const days = daysUntil(validTo, now);
    const left = days < 0 ? `expired ${-days} days ago` : `${days} days left`;
    const what = `certificate: ${subject}, from ${issuer}, ${left}`;
    if (days < 0) found.push(ill(what, "The service needs a new certificate."));
    else if (problem !== undefined)
      found.push(
        ill(
          `${what}; not trusted (${problem})`,
          "Put its authority into COMPUTE_CA_FILE, or name the host as the certificate does in COMPUTE_API_URL.",
        ),
      );
    else if (days < fewDays)
      found.push(ill(what, "Have it renewed: once it expires, all changes freeze."));
    else found.push(well(what));
  }
  if (ownValidTo !== undefined) {
    const days = daysUntil(ownValidTo, now);
    const what = `COMPUTE_CLIENT_CERT_FILE: ${days < 0 ? "has expired" : `${days} days left`}`;
    found.push(days < fewDays ? ill(what, "Put a new certificate and its key there.") : well(what));
  }
  return found;
}
