import { parseArgs } from "node:util";
import { messageOf, UserError } from "../errors.ts";
import { readRegularSync } from "../regular-file.ts";
import { parseJson } from "../text/parse-json.ts";
import { printableLine } from "../text/printable.ts";
import {
  type AcceptedStatus,
  type Allowance,
  allowances,
  type AppraisalPolicy,
  type MinimumTcb,
  type ReferenceValue,
  strictPolicy,
} from "../verifier/appraisal-policy.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type { AttestationResult } from "../verifier/attestation-result.ts";
import { exactTime } from "../verifier/der.ts";
import { products, type TrustedRoots, vendorRoots } from "../verifier/roots.ts";
import { tcbPartNames } from "../verifier/snp/report.ts";
import { tcbStatuses } from "../verifier/tdx/tcb.ts";
import { decodeEvidence, endorsementsNeeded, verifyEvidence } from "../verifier/verify-evidence.ts";
import { judgeBundle, readBundle, signerNamed } from "./bundle.ts";
import { findEndorsements } from "./endorsements.ts";
import { judgeFleetBundle, readFleetBundle } from "./fleet-bundle.ts";
import { importEndorsements, showStatus } from "./folder-cli.ts";
import { jsonValue } from "./render-attestation.ts";
import { resultLines } from "./render-result.ts";

export const attestationUsage = `usage: node gatehouse.mjs attestation check <file>
  a raw TDX quote or SNP report (binary, base64, or hex), or the file that vm attest attaches; a bundle of
  vm attest --evidence, of one VM or of a fleet, is judged by its own clock, endorsements, pins, and policy, with the
  first of these options alone
      --signer <key>            whose bundles count: the fingerprint of Gatehouse's key (16 hex digits), its SHA-256, or the key
                                in base64; repeatable; a bundle of anyone else fails, and without it none is verified
      --endorsements <folder>   what Intel and AMD have signed (docs/attestation.md); else attestation.endorsements
      --pin <hex>               the MEASUREMENT or MRTD expected; MRTD,RTMR0,RTMR1,RTMR2 for TDX; repeatable
      --at <time>               judge by this clock, like 2026-03-01T00:00:00Z; now without it
      --vek <file>              the VCEK or VLEK, where it is not in the folder
      --accept <status>:<day>[:<advisory>,…]   a TCB status of Intel's, until the end of that day
      --minimum <product>:<part>=<n>,…   the least AMD firmware: ${tcbPartNames.join(", ")}
      --allow <name>            ${allowances.join(", ")}
      --vmpl <number>           who in the VM may have asked; 0 without it
      --report-data <hex>       what the report must be bound to
      --json                    the whole result, for programs
  ends with 0 verified, 1 failed, 2 could not verify; a bundle with 0 only where --signer names its key

       node gatehouse.mjs attestation status
  what the folder of endorsements holds, and until when; ends with 1 when something in it doesn't hold
       node gatehouse.mjs attestation import <folder or file>…
  takes endorsements over from elsewhere, laid out alike; never an older one over a newer`;

/** 0 verified, 1 failed, 2 could not verify, 64 unknown words. */
type AttestationExitCode = 0 | 1 | 2 | 64;

interface AttestationTerminal {
  /** Gets text that ends with a line break. */
  write: (text: string) => void;
  /** The folder that gatehouse.yml names; asked when the words name none. */
  endorsements?: () => string | undefined;
  now?: () => number;
  roots?: TrustedRoots;
}

/** `attestation check`, `status`, and `import` in a terminal, offline. Never throws: errors are written and exit with 2. */
export async function runAttestation(
  words: readonly string[],
  { write, endorsements: configured, now = Date.now, roots = vendorRoots }: AttestationTerminal,
): Promise<AttestationExitCode> {
  try {
    const { values, positionals } = parseWords(words);
    const [verb, file, ...more] = positionals;
    const at = values.at === undefined ? now() : timeOf(values.at);
    if (verb === "status" || verb === "import") {
      const folder = values.endorsements ?? configured?.();
      const terminal = { write, folder, now: at, roots };
      if (verb === "status" && file === undefined) return await showStatus(terminal);
      if (verb === "import" && file !== undefined)
        return await importEndorsements([file, ...more], terminal);
    }
    if (verb !== "check" || file === undefined || more.length > 0)
      throw new UserError(
        verb === undefined || verb === "check"
          ? "Name the file to check"
          : `There is no "attestation ${words.join(" ")}"`,
        attestationUsage,
      );
    const content = readRegularSync(file, mostBytes);
    const [bundle, fleet] = [readBundle(content), readFleetBundle(content)];
    const signers = (values.signer ?? []).map((text) => signerOf(text));
    const judged = bundle
      ? judgeBundle(bundle, roots, signers)
      : fleet && judgeFleetBundle(fleet, roots, signers);
    if (judged) {
      write(textOf(judged.lines));
      return exitCodes[judged.verdict];
    }
    const references = (values.pin ?? []).map((pin) => referenceOf(pin));
    const policy = policyOf(values);
    const bytes = evidenceIn(content);
    const needed = bytes && endorsementsNeeded(bytes);
    const folder = values.endorsements ?? configured?.();
    const { endorsements, absent } =
      needed && folder !== undefined
        ? await findEndorsements(folder, needed)
        : { endorsements: {}, absent: [] };
    const vek = values.vek === undefined ? undefined : readRegularSync(values.vek, mostBytes);
    const amd = vek ? { ...endorsements.amd, vek } : endorsements.amd;
    const result = appraiseEvidence(
      bytes
        ? verifyEvidence(bytes, { ...endorsements, ...(amd ? { amd } : {}) }, { now: at, roots })
        : { is: "unverifiable", problems: [{ reason: "evidence-encoding", about: "" }] },
      {
        policy,
        references,
        now: at,
        ...(values["report-data"] === undefined
          ? {}
          : { context: { expectedReportData: hexOf(values["report-data"], 64) } }),
      },
    );
    write(
      values.json
        ? `${JSON.stringify({ at: new Date(at).toISOString(), ...result }, jsonValue, 2)}\n`
        : textOf(resultLines(result, { at, absent })),
    );
    return exitCodes[result.verdict];
  } catch (error) {
    const hint = error instanceof UserError && error.hint ? `\n${error.hint}` : "";
    write(`${messageOf(error)}${hint}\n`);
    return error instanceof UserError && error.hint === attestationUsage ? 64 : 2;
  }
}

/** A bundle of a whole fleet has some MiB. */
const mostBytes = 64 * 1024 * 1024;

/** A name in a certificate or a bundle is as whoever made it wrote it: it must not pass for a line of its own. */
const textOf = (lines: readonly string[]) =>
  lines.map((line) => `${printableLine(line)}\n`).join("");

function signerOf(text: string): string {
  const signer = signerNamed(text);
  if (signer !== undefined) return signer;
  throw new UserError(`${text.slice(0, 200)} is no key`, "like 9f86d081884c7d65");
}

const exitCodes: Record<AttestationResult["verdict"], AttestationExitCode> = {
  verified: 0,
  failed: 1,
  "could not verify": 2,
};

function parseWords(words: readonly string[]) {
  const one = { type: "string" } as const;
  const several = { type: "string", multiple: true } as const;
  const options = {
    endorsements: one,
    pin: several,
    signer: several,
    at: one,
    vek: one,
    accept: several,
    minimum: several,
    allow: several,
    vmpl: one,
    "report-data": one,
    json: { type: "boolean" },
  } as const;
  try {
    return parseArgs({ args: [...words], allowPositionals: true, options });
  } catch (error) {
    throw new UserError(messageOf(error), attestationUsage);
  }
}

/** Raw bytes, or the text of them: hex, base64, or JSON with the report as the compute service gave it. */
function evidenceIn(file: Buffer): Buffer | undefined {
  const isText = file.every((byte) => byte === 9 || byte === 10 || byte === 13 || byte >= 32);
  if (!isText || file.length === 0) return file;
  const text = file.toString("utf8").trim();
  if (/^([0-9a-fA-F]{2})+$/.test(text)) return Buffer.from(text, "hex");
  const json = text.startsWith("{") ? parseJson(text) : undefined;
  const raw = json === undefined ? text : reportIn(json, 0);
  return raw === undefined ? undefined : decodeEvidence(raw);
}

/** `{report}`, also inside `{report: {report}}` and the like. */
function reportIn(json: unknown, depth: number): string | undefined {
  if (typeof json === "string") return json;
  if (typeof json !== "object" || json === null || depth > 3) return undefined;
  const { report, attestation } = json as { report?: unknown; attestation?: unknown };
  return reportIn(report ?? attestation, depth + 1);
}

function timeOf(text: string): number {
  const at = exactTime(text.replace(/\.\d+Z$/, "Z"));
  if (at === undefined) throw new UserError(`${text} is not a time`, "like 2026-03-01T00:00:00Z");
  return at;
}

function hexOf(text: string, bytes: number): string {
  const bare = text.trim().replace(/^0x/i, "").toLowerCase();
  if (bare.length !== bytes * 2 || !/^[0-9a-f]+$/.test(bare))
    throw new UserError(`${text.slice(0, 200)} is not ${bytes} bytes in hex`);
  return bare;
}

function referenceOf(pin: string): ReferenceValue {
  const [first = "", ...rest] = pin.split(",").map((part) => hexOf(part, 48));
  const [a, b, c, ...more] = rest;
  if (rest.length === 0) return { measurement: first };
  if (a === undefined || b === undefined || c === undefined || more.length > 0)
    throw new UserError("A pin is one value, or four: MRTD,RTMR0,RTMR1,RTMR2");
  return { mrTd: first, rtmr: [a, b, c] };
}

function policyOf({
  accept = [],
  minimum = [],
  allow = [],
  vmpl = "0",
}: {
  accept?: string[];
  minimum?: string[];
  allow?: string[];
  vmpl?: string;
}): AppraisalPolicy {
  const isAllowance = (name: string): name is Allowance =>
    (allowances as readonly string[]).includes(name);
  const unknown = allow.find((name) => !isAllowance(name));
  if (unknown !== undefined)
    throw new UserError(`${unknown} can't be allowed`, `one of ${allowances.join(", ")}`);
  if (!/^[0-3]$/.test(vmpl)) throw new UserError(`${vmpl} is not a VMPL: 0 to 3`);
  return {
    ...strictPolicy,
    allows: allow.filter(isAllowance),
    statuses: accept.map((text) => acceptedOf(text)),
    minimumTcb: minimum.map((text) => minimumOf(text)),
    vmpl: Number(vmpl),
  };
}

function acceptedOf(text: string): AcceptedStatus {
  const [word = "", day = "", ids = ""] = text.split(":");
  const status = tcbStatuses.find((one) => one === word);
  const until = exactTime(`${day}T23:59:59Z`);
  if (!status || until === undefined)
    throw new UserError(`${text} is not a status and a day`, "like OutOfDate:2026-12-31");
  return { status, until, advisories: ids.split(",").filter((id) => id !== "") };
}

function minimumOf(text: string): MinimumTcb {
  const [word, rest = ""] = text.split(":");
  const product = products.find((one) => one === word);
  const parts = rest.split(",").map((each) => {
    const [, name, number] = /^([a-z]+)=(\d{1,3})$/.exec(each) ?? [];
    const part = tcbPartNames.find((one) => one === name);
    return part && ([part, Number(number)] as const);
  });
  const known = parts.filter((part) => part !== undefined);
  const isOf = known.every(([part, n]) => n <= 255 && (part !== "fmc" || product === "Turin"));
  if (!product || known.length !== parts.length || !isOf)
    throw new UserError(`${text} is not a minimum`, "like Genoa:snp=23,microcode=84");
  return { product, tcb: Object.fromEntries(known) };
}
