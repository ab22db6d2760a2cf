import { once } from "node:events";
import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { isIP, type Socket } from "node:net";
import { connect as connectTls, type DetailedPeerCertificate } from "node:tls";
import { type CertificateFlaw, certificateFlaw } from "../../config/authorities.ts";
import { certificatesIn } from "../../config/compute-tls.ts";
import { counted } from "../../messages/markdown.ts";
import { type Finding, ill, well } from "../../messages/finding.ts";

const handshakeMs = 5_000;

export interface CertificateFacts {
  /** The host with which the handshake took place. */
  host: string;
  /** True when it is the proxy's own certificate, because the connection ended there. */
  isOfProxy?: boolean;
  subject: string;
  issuer: string;
  /** The names and addresses that the certificate is for. */
  names: readonly string[];
  validFrom: number;
  validTo: number;
  /** The names of expired certificates above it. */
  expiredAbove: readonly string[];
  /** Why it isn't accepted. Undefined when it is. */
  flaw: CertificateFlaw | undefined;
  /** The error code of Node.js. */
  code: string;
}

interface Peer {
  host: string;
  port: number;
  /** Authorities that replace all others. */
  ca?: string | undefined;
  /** The client certificate for a server that asks for one. */
  cert?: string | undefined;
  key?: string | undefined;
  /** The address of a proxy that tunnels. */
  proxy?: string | undefined;
}

/**
 * Makes a handshake that trusts any certificate, to see which one the server has. Nothing is sent.
 * Undefined when no handshake completed. It also goes through a proxy: one that inspects
 * connections shows a certificate of its own.
 */
export async function lookAtCertificate(
  { host, port, proxy, ...ours }: Peer,
  now: number,
): Promise<CertificateFacts | undefined> {
  const ofProxy = await lookAtProxy(proxy, now);
  if (ofProxy?.flaw !== undefined) return ofProxy;
  const signal = AbortSignal.timeout(handshakeMs);
  let open: Socket | undefined;
  try {
    const tunnel = proxy === undefined ? undefined : await openTunnel(proxy, host, port, signal);
    open = tunnel;
    const socket = connectTls({
      ...(tunnel ? { socket: tunnel } : { host, port }),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...withoutUnset(ours),
      rejectUnauthorized: false,
    });
    // A server may end TLS at the moment when the handshake is over, and nothing else handles that
    // error.
    socket.on("error", () => undefined);
    open = socket;
    await once(socket, "secureConnect", { signal });
    // The error's code, or its text if it has no code. Empty when the certificate is accepted.
    const { authorized, authorizationError } = socket;
    const code = authorized ? "" : codeIn(authorizationError);
    const certificate = socket.getPeerCertificate(true);
    const { subject, issuer, subjectaltname = "", valid_from, valid_to } = certificate;
    return {
      host,
      subject: nameOf(subject),
      issuer: nameOf(issuer),
      names: subjectaltname.split(", ").flatMap((name) => name.split(/^[A-Za-z ]+:/)[1] ?? []),
      validFrom: Date.parse(valid_from),
      validTo: Date.parse(valid_to),
      expiredAbove: chainAbove(certificate)
        .filter((above) => Date.parse(above.valid_to) < now)
        .map((above) => nameOf(above.subject)),
      flaw: authorized ? undefined : (certificateFlaw(code) ?? "other"),
      code,
    };
  } catch {
    return undefined;
  } finally {
    // Only the upper socket is destroyed, which ends the tunnel, too. Node.js 26 may crash when the
    // tunnel is destroyed first.
    open?.on("error", () => undefined);
    open?.destroy();
  }
}

/** How long a server may take to refuse our certificate (ms). */
const refusalMs = 1_000;

/**
 * Why a server ends TLS right after the handshake. Undefined when it doesn't. TLS 1.3 refuses a
 * client certificate only then, and a client that has written something meanwhile may see a reset
 * instead of the reason.
 */
export async function tlsRefusal({ host, port, ...ours }: Peer): Promise<Error | undefined> {
  const socket = connectTls({
    host,
    port,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...withoutUnset(ours),
  });
  try {
    const [error] = await once(socket.resume(), "error", {
      signal: AbortSignal.timeout(refusalMs),
    });
    return error instanceof Error ? error : undefined;
  } catch (error) {
    return error instanceof Error && error.name !== "AbortError" ? error : undefined;
  } finally {
    socket.on("error", () => undefined);
    socket.destroy();
  }
}

/** The certificate of a proxy to which the connection itself uses TLS. */
async function lookAtProxy(
  proxy: string | undefined,
  now: number,
): Promise<CertificateFacts | undefined> {
  const url = proxy === undefined ? undefined : new URL(proxy);
  if (url?.protocol !== "https:") return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const facts = await lookAtCertificate({ host, port: Number(url.port || 443) }, now);
  return facts && { ...facts, isOfProxy: true };
}

const withoutUnset = (options: object) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

/**
 * Node.js returns the code itself when it doesn't reject the connection, although the type says
 * Error.
 */
const codeIn = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error);

const nameOf = (of: { CN?: string | string[]; O?: string | string[] } | undefined) =>
  [of?.CN ?? of?.O ?? "no name"].flat().join(", ");

function chainAbove(certificate: DetailedPeerCertificate): readonly DetailedPeerCertificate[] {
  const all: DetailedPeerCertificate[] = [];
  // The last certificate of a chain is its own issuer, or has none.
  for (let { issuerCertificate: above } = certificate; above && !all.includes(above);) {
    all.push(above);
    above = above.issuerCertificate;
  }
  return all.filter((authority) => authority !== certificate);
}

async function openTunnel(proxy: string, host: string, port: number, signal: AbortSignal) {
  const { origin, protocol, username, password } = new URL(proxy);
  const login = [username, password].map((part) => decodeURIComponent(part)).join(":");
  const target = `${host}:${port}`;
  const send = protocol === "https:" ? tlsRequest : plainRequest;
  const asked = send(origin, {
    method: "CONNECT",
    path: target,
    headers: {
      host: target,
      ...(username === ""
        ? {}
        : { "proxy-authorization": `Basic ${Buffer.from(login).toString("base64")}` }),
    },
    agent: false,
    signal,
  });
  asked.end();
  const [answer, socket] = (await once(asked, "connect", { signal })) as [
    { statusCode?: number },
    Socket,
  ];
  if (answer.statusCode === 200) return socket;
  socket.destroy();
  throw new Error(`the proxy answered ${answer.statusCode}`);
}

/** The settings that can be changed here when a certificate is wrong. */
export interface VariablesAtFault {
  /** The variable with the host's address: `COMPUTE_API_URL`. */
  address: string;
  /** The variable with authorities that replace all others, if it is set: `COMPUTE_CA_FILE`. */
  only?: string | undefined;
  /** Whether CA_FILE is set. */
  hasAuthorities: boolean;
}

const daysUntil = (end: number, now: number) => Math.floor((end - now) / 86_400_000);
function daysAgo(end: number, now: number): string {
  const days = daysUntil(now, end);
  return days === 0 ? "less than a day ago" : `${counted(days, "day")} ago`;
}

const fewDays = 14;
const date = (at: number) => new Date(at).toISOString().slice(0, 10);

/** `soon` says what happens when it expires, as the end of a sentence. */
export function judgeCertificate(
  facts: CertificateFacts,
  variables: VariablesAtFault,
  now: number,
  soon: string,
): Finding {
  const { hasAuthorities } = variables;
  const { address, only } = facts.isOfProxy
    ? { address: "HTTPS_PROXY", only: undefined }
    : variables;
  const { host, subject, issuer, names, validFrom, validTo, expiredAbove, flaw, code } = facts;
  const days = daysUntil(validTo, now);
  const summary = `certificate${facts.isOfProxy ? " of the proxy" : ""}: ${subject}, from ${issuer}`;
  const left = `${days} days left`;
  if (validTo < now)
    return ill(
      `${summary}, expired ${daysAgo(validTo, now)}`,
      `${host} needs a new certificate; no setting here helps.`,
    );
  if (expiredAbove.length > 0 && flaw !== undefined)
    return ill(
      `${summary}: ${expiredAbove.join(", ")} above it has expired`,
      `${host} needs a new certificate, or must send the renewed one above it.`,
    );
  if (flaw === "not-yet" || validFrom > now)
    return ill(
      `${summary}, valid from ${date(validFrom)} on`,
      "Let NTP set the clock of this machine, or wait for that day.",
    );
  if (flaw === "wrong-host") {
    const named = names.length === 0 ? "no host" : names.slice(0, 5).join(", ");
    return ill(
      `${summary}: it is for ${named}, and not for ${host}`,
      `Put the name that the certificate has into ${address}, or give ${host} a certificate of its own.`,
    );
  }
  if (flaw === "unknown-issuer") {
    const variable = only ?? "CA_FILE";
    const missing =
      only !== undefined || hasAuthorities
        ? `${variable} lacks it: add the certificate of "${issuer}" (PEM) to that file`
        : `Put the certificate of "${issuer}" (PEM) into a file, and name the file in ${variable}`;
    return ill(
      `${summary}, ${left}; "${issuer}" isn't trusted here (${code})`,
      subject === issuer
        ? `${missing}.`
        : `${missing}. If it is a public authority, ${host} doesn't send the certificates between it and its own.`,
    );
  }
  if (flaw !== undefined)
    return ill(
      `${summary}, ${left}; not accepted (${code})`,
      `${host} needs another certificate; no setting here helps.`,
    );
  if (days < fewDays) return ill(`${summary}, ${left}`, `Have it renewed: ${soon}.`);
  return well(`${summary}, ${left}`);
}

/** When the first of these certificates (PEM) expires. Undefined when there are none. */
export function earliestEnd(pem = ""): number | undefined {
  const ends = certificatesIn(pem).map((certificate) => Date.parse(certificate?.validTo ?? ""));
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Judges a certificate that Gatehouse presents, by the variable that names it. */
export function judgeOwnCertificate(
  variable: string,
  validTo: number | undefined,
  now: number,
): readonly Finding[] {
  if (validTo === undefined) return [];
  const days = daysUntil(validTo, now);
  const validity = `${variable}: ${days < 0 ? "has expired" : `${days} days left`}`;
  return [
    days < fewDays ? ill(validity, "Put a new certificate and its key there.") : well(validity),
  ];
}
