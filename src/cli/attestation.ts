import { stat } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { appraisalRule } from "../config/policy-schema.ts";
import { measurement } from "../config/policy-values.ts";
import { UserError } from "../errors.ts";
import { readRegularSync } from "../regular-file.ts";
import { compareNames } from "../text/compare-names.ts";
import { type Given, printableLine, runProgram, UsageError } from "../text/terminal.ts";
import { allowances, type AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import { appraiseEvidence, dayMs, dayOf } from "../verifier/appraise-evidence.ts";
import { exactTime } from "../verifier/der.ts";
import { type By, endorsementNamed } from "../verifier/inspect-endorsement.ts";
import { type TrustedRoots, vendorRoots } from "../verifier/roots.ts";
import { tcbPartNames } from "../verifier/snp/report.ts";
import { decodeVek } from "../verifier/endorsement-form.ts";
import { bytesInFile, bytesInText } from "../verifier/saved-bytes.ts";
import { endorsementsNeeded, verifyEvidence } from "../verifier/verify-evidence.ts";
import type { Verdict } from "../attestation/appraise.ts";
import { judgeBundle, readBundle, signerNamed } from "../attestation/bundle.ts";
import {
  findEndorsements,
  listEndorsements,
  outOfTime,
  readEndorsement,
  storeEndorsement,
} from "../attestation/endorsement-folder.ts";
import { jsonValue, resultLines } from "../attestation/render-attestation.ts";

export const attestationUsage = `usage: node gatehouse.mjs attestation check <file>
  a raw TDX quote or SNP report (binary, base64, hex, or JSON with one of these), an HCL report of Azure with
  an SNP report in it, or the file that vm attest attaches; a bundle of
  vm attest --evidence, of one VM or of a fleet, is judged by its own clock, endorsements, pins, and policy, with the
  first of these options alone
      --signer <key>            whose bundles count: the fingerprint of Gatehouse's key (16 hex digits), its SHA-256, or the key
                                in base64; repeatable; a bundle of anyone else fails, and without it none is verified
      --endorsements <folder>   what Intel and AMD have signed (docs/attestation.md); else attestation.endorsements
      --pin <hex>               the MEASUREMENT or MRTD expected; MRTD,RTMR0,RTMR1,RTMR2 for TDX; repeatable
      --at <time>               judge by this clock, like 2026-03-01T00:00:00Z; now without it
      --vek <file>              the VCEK or VLEK (DER, PEM, base64, or hex), where it is not in the folder
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

interface AttestationTerminal {
  /** Gets text that ends with a line break. */
  write: (text: string) => void;
  /** Gets what isn't a result. */
  complain?: (text: string) => void;
  /** The folder that gatehouse.yml names. It is asked only when no option names one. */
  endorsements?: () => string | undefined | Promise<string | undefined>;
  now?: () => number;
  roots?: TrustedRoots;
}

/** The program's options and what they resolve to. */
interface Called {
  printLines: (lines: readonly string[]) => void;
  folder: () => Promise<string | undefined>;
  trust: By;
}

/**
 * `attestation check`, `status`, and `import` in a terminal, offline. Resolves with 0 verified, 1
 * failed, 2 could not verify, 64 wrong arguments.
 */
export function runAttestation(
  words: readonly string[],
  {
    write,
    complain = write,
    endorsements,
    now = Date.now,
    roots = vendorRoots,
  }: AttestationTerminal,
): Promise<number> {
  const program = { usage: attestationUsage, options: flags, failed: 2, complain };
  return runProgram(words, program, async ({ values, positionals: [verb, file, ...more] }) => {
    const called: Called = {
      // Anyone can choose the names in a certificate or a bundle, so no name may pass for a line of
      // its own.
      printLines: (lines) => write(lines.map((line) => `${printableLine(line)}\n`).join("")),
      folder: async () => values.endorsements ?? (await endorsements?.()),
      trust: { now: values.at === undefined ? now() : timeOf(values.at), roots },
    };
    if (verb === "status" && file === undefined) return showStatus(called);
    if (verb === "import" && file !== undefined) return importEndorsements([file, ...more], called);
    if (verb === "check" && file !== undefined && more.length === 0)
      return exitCodes[await check(readRegularSync(file, mostBytes), values, called)];
    throw new UsageError(
      verb === undefined || verb === "check"
        ? "Name the file to check"
        : `There is no "attestation ${words.join(" ")}"`,
    );
  });
}

/** A bundle of a whole fleet has several MiB. */
const mostBytes = 64 * 1024 * 1024;

const exitCodes = { verified: 0, failed: 1, "could not verify": 2 } as const;

async function check(
  file: Buffer,
  values: Words,
  { printLines, folder, trust }: Called,
): Promise<Verdict> {
  const bundle = readBundle(file);
  const signers = (values.signer ?? []).map((text) => signerNamed(text));
  if (bundle) {
    const { lines, verdict } = judgeBundle(bundle, trust.roots, signers);
    printLines(lines);
    return verdict;
  }
  const bytes = bytesInFile(file);
  const { endorsements, absent } = await findEndorsements(
    await folder(),
    bytes && endorsementsNeeded(bytes),
  );
  if (values.vek !== undefined)
    endorsements.amd = {
      ...endorsements.amd,
      vek: decodeVek(readRegularSync(values.vek, mostBytes)),
    };
  const expectedReportData = reportDataOf(values["report-data"]);
  const result = appraiseEvidence(verifyEvidence(bytes, endorsements, trust), {
    policy: policyOf(values),
    references: (values.pin ?? []).map((text) => pinOf(text)),
    now: trust.now,
    context: { expectedReportData },
  });
  const json = () =>
    JSON.stringify({ at: new Date(trust.now).toISOString(), ...result }, jsonValue, 2).split("\n");
  printLines(values.json ? json() : resultLines(result, { at: trust.now, absent }));
  return result.verdict;
}

const word = { type: "string" } as const;
const several = { type: "string", multiple: true } as const;
const flags = {
  endorsements: word,
  pin: several,
  signer: several,
  at: word,
  vek: word,
  accept: several,
  minimum: several,
  allow: several,
  vmpl: word,
  "report-data": word,
  json: { type: "boolean" },
} as const;

type Words = Given<typeof flags>["values"];

function timeOf(text: string): number {
  const at = exactTime(text.replace(/\.\d+Z$/, "Z"));
  if (at === undefined) throw new UserError(`${text} is not a time`, "like 2026-03-01T00:00:00Z");
  return at;
}

function reportDataOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const bytes = bytesInText(text);
  if (bytes?.length !== 64) throw new UserError(`${text.slice(0, 200)} is not 64 bytes in hex`);
  return bytes.toString("hex");
}

function pinOf(text: string): string {
  const { data, error } = measurement.safeParse(text);
  if (data === undefined)
    throw new UserError(`--pin ${text.slice(0, 200)}: ${error?.issues[0]?.message}`);
  return data;
}

const numberIn = (text = "") => (/^\d{1,3}$/.test(text) ? Number(text) : text);

/** Reads the options by the schema of `attestation.appraisal` in gatehouse.yml. */
function policyOf({ accept = [], minimum = [], allow = [], vmpl = "0" }: Words): AppraisalPolicy {
  const read = appraisalRule.safeParse({
    allow,
    vmpl: numberIn(vmpl),
    accept: accept.map((text) => {
      const [status, until, ids = ""] = text.split(":");
      return { status, until, advisories: ids.split(",").filter((id) => id !== "") };
    }),
    minimumTcb: minimum.map((text) => {
      const [product, parts = ""] = text.split(":");
      const pairs = parts.split(",").map((part) => part.split("="));
      return { ...Object.fromEntries(pairs.map(([name, n]) => [name, numberIn(n)])), product };
    }),
  });
  if (read.success) return read.data.policy;
  const [{ path: [option = "", at = 0], message } = { path: [], message: "" }] = read.error.issues;
  const given = { allow, accept, minimumTcb: minimum, vmpl: [vmpl] }[String(option)];
  const name = option === "minimumTcb" ? "minimum" : String(option);
  throw new UserError(`--${name} ${given?.[Number(at)]?.slice(0, 200)}: ${message}`);
}

/**
 * Shows what the folder contains and until when it is valid, with problems first. Resolves with 0
 * when everything is valid, otherwise 1.
 */
async function showStatus({ printLines, folder, trust }: Called): Promise<0 | 1> {
  const from = named(await folder());
  const all = await listEndorsements(from, trust).catch((error: unknown) => {
    throw new UserError(`${from} can't be read: ${String(error)}`);
  });
  if (all.length === 0) {
    printLines([`There is no endorsement in ${from}; docs/attestation.md names the files.`]);
    return 1;
  }
  const rows = all.map(({ name, inspected }) => {
    if ("problem" in inspected) return { name, wrong: inspected.problem, until: -Infinity };
    const { until } = inspected;
    return { name, wrong: outOfTime(inspected, trust.now), until };
  });
  const sorted = rows.toSorted((a, b) => a.until - b.until || compareNames(a.name, b.name));
  const lines = sorted.map(({ name, wrong, until }) => {
    const days = Math.floor((until - trust.now) / dayMs);
    const says = wrong ?? `until ${dayOf(until)} (${days} days)`;
    return `${wrong === undefined ? "good" : "BAD "} ${says.padEnd(34)} ${name}`;
  });
  printLines(lines);
  return rows.every(({ wrong }) => wrong === undefined) ? 0 : 1;
}

/**
 * Copies endorsements from elsewhere, typically from a medium that was filled on a machine with a
 * network: folders with the same layout, or single files in one. Each is checked, and an older one
 * never replaces a newer one. Resolves with 0 when all were copied or already there, otherwise 1.
 */
async function importEndorsements(
  sources: readonly string[],
  { printLines, folder, trust }: Called,
): Promise<0 | 1> {
  const into = named(await folder());
  let isGood = true;
  for (const source of sources) {
    const files = await namesIn(source, trust);
    if (files.length === 0) {
      printLines([`${source}: no endorsement by its name; docs/attestation.md names the files`]);
      isGood = false;
    }
    for (const { from, name } of files) {
      const stored = await storeEndorsement(into, name, await readEndorsement(from, name), trust);
      if (typeof stored !== "string") isGood = false;
      const says = typeof stored === "string" ? imported[stored] : `refused: ${stored.refused}`;
      printLines([`${name}: ${says}`]);
    }
  }
  return isGood ? 0 : 1;
}

const imported = {
  stored: "imported",
  kept: "kept what is there, which is as new or newer",
} as const;

function named(folder: string | undefined): string {
  if (folder !== undefined) return folder;
  throw new UserError(
    "No folder of endorsements is named",
    "attestation.endorsements in gatehouse.yml names it, or --endorsements <folder>",
  );
}

async function namesIn(source: string, trust: By) {
  const path = resolve(source);
  const stats = await stat(path).catch(() => undefined);
  if (!stats) throw new UserError(`There is no ${source}`);
  if (stats.isDirectory())
    return (await listEndorsements(path, trust)).map(({ name }) => ({ from: path, name }));
  // A single file is recognized by the end of its path.
  const parts = path.split(sep);
  const at = [4, 3, 2].find((many) => endorsementNamed(parts.slice(-many).join("/")));
  if (at === undefined) return [];
  return [{ from: parts.slice(0, -at).join(sep) || sep, name: parts.slice(-at).join("/") }];
}
