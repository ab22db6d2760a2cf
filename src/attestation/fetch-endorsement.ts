import type { Readable } from "node:stream";
import { type Dispatcher, request } from "undici";
import type { EndorsementFiles, EndorsementKind } from "../verifier/inspect-endorsement.ts";
import { tcbParts } from "../verifier/snp/report.ts";
import { mostBytes } from "./endorsement-folder.ts";

/** Where endorsements come from; without a slash at the end. */
export interface VendorAddresses {
  /** Intel's PCS, or a PCCS. */
  intel: string;
  /** The list of Intel's root; a PCCS has it under `/sgx/certification/v4/rootcacrl`. */
  intelRoot: string;
  /** AMD's KDS. */
  amd: string;
}

/** Intel's and AMD's paths; what is put in are words of a list and hex digits (`endorsementNamed`). */
const paths = {
  "intel-root-list": "",
  "intel-pck-list": "/sgx/certification/v4/pckcrl?ca={ca}&encoding=der",
  "intel-qe-identity": "/tdx/certification/v4/qe/identity",
  "intel-tcb-info": "/tdx/certification/v4/tcb?fmspc={fmspc}",
  "amd-list": "/{signer}/v1/{product}/crl",
  "amd-vcek": "/vcek/v1/{product}/{hwid}",
} as const satisfies Record<EndorsementKind["is"], string>;

/** What KDS calls the parts of a TCB version. */
const versionNames: Readonly<Record<string, string>> = {
  fmc: "fmcSPL",
  bootloader: "blSPL",
  tee: "teeSPL",
  snp: "snpSPL",
  microcode: "ucodeSPL",
};

/** What leaves this machine: which platform, which chip, which firmware, and nothing of what runs on them. */
export function addressOf(kind: EndorsementKind, at: VendorAddresses): string {
  if (kind.is === "intel-root-list") return at.intelRoot;
  const base = kind.is.startsWith("intel-") ? at.intel : at.amd;
  const values = new Map(Object.entries(kind));
  const path = paths[kind.is].replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(values.get(name) ?? ""),
  );
  if (kind.is === "intel-tcb-info" && kind.early !== undefined)
    return `${base}${path}&update=early`;
  if (kind.is !== "amd-vcek") return `${base}${path}`;
  const versions = Object.entries(tcbParts(kind.tcb, kind.product)).map(
    ([part, version]) => `${versionNames[part]}=${String(version).padStart(2, "0")}`,
  );
  return `${base}${path}?${versions.join("&")}`;
}

const chainHeaders = [
  "tcb-info-issuer-chain",
  "sgx-enclave-identity-issuer-chain",
  "sgx-pck-crl-issuer-chain",
] as const;

export class FetchError extends Error {
  override readonly name = "FetchError";
  /** What the vendor asked to wait (ms). */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Believed for nothing: whoever stores it checks it. Throws FetchError, or what the network threw. */
export async function fetchEndorsement(
  url: string,
  { dispatcher, timeoutMs }: { dispatcher: Dispatcher; timeoutMs: number },
): Promise<EndorsementFiles> {
  const signal = AbortSignal.timeout(timeoutMs);
  const { statusCode, headers, body } = await request(url, { dispatcher, signal });
  if (statusCode !== 200) {
    body.on("error", () => undefined).destroy();
    const seconds = Number(headers["retry-after"]);
    const wait = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
    throw new FetchError(`${new URL(url).host} answered ${statusCode}`, wait);
  }
  const content = await readCapped(body);
  const header = chainHeaders.map((name) => headers[name]).find((value) => value !== undefined);
  const chain = typeof header === "string" ? decoded(header) : undefined;
  return { content: isHexText(content) ? Buffer.from(content.toString(), "hex") : content, chain };
}

/** A PCCS gives lists as hex digits. */
const isHexText = (content: Buffer) => /^([0-9a-fA-F]{2})+$/.test(content.toString("latin1"));

function decoded(header: string): string | undefined {
  try {
    return decodeURIComponent(header);
  } catch {
    return undefined;
  }
}

async function readCapped(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostBytes) throw new FetchError(`the answer is larger than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
