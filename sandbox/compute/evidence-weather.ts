import type { Minted } from "../evidence/vendors.ts";

type Verdict = "verified" | "failed" | "could not verify";

/** How a VM's evidence, or what vouches for it, is otherwise than it should be. */
export interface EvidenceWeather extends Minted {
  /** The number of the required result that it shows (`test/verifier/required-cases.ts`). */
  case: number;
  /** For people. */
  label: string;
  verdict: Verdict;
  /** The bytes, once they are signed. */
  bytes?: (evidence: Buffer) => Buffer;
  /** As the service writes them. */
  text?: (base64: string) => string;
  /** What the service says beside them. */
  service?: { verified?: boolean; measurement?: string };
  /** The VM is called so from now on: pins hold for names. */
  name?: string;
  image?: string;
  debug?: boolean;
  /** From now on the report is this one, whatever the VM is later. */
  replays?: "its own" | "another VM's";
}

const setTo = (at: number, value: number) => (bytes: Buffer) => void (bytes[at] = value);

const flipped = (at: number) => (bytes: Buffer) => {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
};

/** r and s as X9.62 would write them. */
function turnedAround(report: Buffer): Buffer {
  const changed = Buffer.from(report);
  for (const at of [0x2a0, 0x2e8]) changed.set(report.subarray(at, at + 48).toReversed(), at);
  return changed;
}

const [V, F, C] = ["verified", "failed", "could not verify"] as const;
const dayMs = 86_400_000;
const day = (at: number) => `${new Date(at).toISOString().slice(0, 19)}Z`;
const firstLevel = (fields: object) => ({
  tcbInfo: (info: { tcbLevels: object[] }) => void Object.assign(info.tcbLevels[0] ?? {}, fields),
});

/** By their names, as switches and `edit.setEvidence` take them. A VM's own clock is no weather: that is case 41. */
export const evidenceWeathers = {
  clear: { case: 1, label: "genuine", verdict: V, on: "Genoa" },
  "clear-tdx": { case: 1, label: "genuine, on Intel TDX", verdict: V, on: "TDX" },
  "body-flipped": {
    case: 2,
    label: "a bit flipped in the body",
    verdict: F,
    on: "Genoa",
    bytes: flipped(0x95),
  },
  "signature-flipped": {
    case: 3,
    label: "a bit flipped in the signature",
    verdict: F,
    on: "Genoa",
    bytes: flipped(0x2a8),
  },
  "numbers-turned": {
    case: 4,
    label: "r and s big-endian",
    verdict: F,
    on: "Genoa",
    bytes: turnedAround,
  },
  "cut-short": {
    case: 5,
    label: "cut short",
    verdict: C,
    on: "Genoa",
    bytes: (report) => report.subarray(0, 1000),
  },
  "base64-broken": {
    case: 5,
    label: "broken base64",
    verdict: C,
    on: "TDX",
    text: (base64) => `${base64.slice(0, 99)}!?`,
  },
  appended: {
    case: 6,
    label: "4 KiB behind it",
    verdict: V,
    on: "Genoa",
    bytes: (report) => Buffer.concat([report, Buffer.alloc(4096)]),
  },
  "unknown-version": {
    case: 7,
    label: "a version that nobody knows",
    verdict: C,
    on: "Genoa",
    snp: { report: setTo(0, 6) },
  },
  "other-root": { case: 8, label: "another Intel's root", verdict: F, on: "TDX", isStranger: true },
  "other-product": {
    case: 9,
    label: "under another product's ASK",
    verdict: F,
    on: "Genoa",
    snp: { vek: { issuer: "SEV-Milan" } },
  },
  "other-chip": {
    case: 10,
    label: "a VCEK of another chip",
    verdict: F,
    on: "Genoa",
    snp: { extensions: { "4": Buffer.alloc(64, 0xc2) } },
  },
  "other-firmware": {
    case: 11,
    label: "a VCEK of another firmware",
    verdict: F,
    on: "Genoa",
    snp: { extensions: { "3.3": Buffer.from([2, 1, 22]) } },
  },
  "other-key": {
    case: 12,
    label: "a VLEK where the report says VCEK",
    verdict: F,
    on: "Genoa",
    snp: { kind: "VLEK", report: setTo(0x48, 0) },
  },
  "no-ca": {
    case: 13,
    label: "a PCK CA that is no CA",
    verdict: F,
    on: "TDX",
    tdx: { ca: { ca: { isCa: false } } },
  },
  "signed-by-pck": {
    case: 14,
    label: "TCB info signed by a PCK",
    verdict: C,
    on: "TDX",
    tdx: { signer: { subject: "Intel SGX PCK Certificate" } },
  },
  revoked: {
    case: 15,
    label: "a revoked PCK",
    verdict: F,
    on: "TDX",
    tdx: { pckCrl: { serials: [0x555] } },
  },
  "ask-revoked": {
    case: 15,
    label: "a revoked ASK",
    verdict: F,
    on: "Genoa",
    snp: { crl: { serials: [0x020002] } },
  },
  "list-forged": {
    case: 16,
    label: "a forged revocation list",
    verdict: C,
    on: "TDX",
    isListForged: true,
  },
  "lists-ran-out": {
    case: 17,
    label: "a revocation list that ran out",
    verdict: C,
    on: "Genoa",
    hasRunOut: true,
  },
  "info-edited": {
    case: 18,
    label: "TCB info with an edited status",
    verdict: C,
    on: "TDX",
    tcbInfo: (body) => body.replace('"OutOfDate"', '"UpToDate"'),
  },
  "info-expired": {
    case: 19,
    label: "TCB info that has ended",
    verdict: C,
    on: "TDX",
    tdx: { tcbInfo: (info) => void (info.nextUpdate = day(Date.now() - dayMs)) },
  },
  "info-of-tomorrow": {
    case: 19,
    label: "TCB info of the future",
    verdict: C,
    on: "TDX",
    tdx: { tcbInfo: (info) => void (info.issueDate = day(Date.now() + dayMs)) },
  },
  "unknown-platform": {
    case: 20,
    label: "a platform without collateral",
    verdict: C,
    on: "TDX",
    tdx: { fmspc: "00906ed50000" },
    isFolderClear: true,
  },
  "certificate-ended": {
    case: 21,
    label: "a PCK certificate that has ended",
    verdict: C,
    on: "TDX",
    tdx: { pck: { until: Date.now() - dayMs } },
  },
  "unknown-module": {
    case: 22,
    label: "a TDX module that Intel doesn't know",
    verdict: F,
    on: "TDX",
    tdx: { body: setTo(1, 9) },
  },
  "module-outdated": {
    case: 23,
    label: "an outdated TDX module",
    verdict: F,
    on: "TDX",
    tdx: { body: setTo(0, 4) },
  },
  "platform-outdated": {
    case: 24,
    label: "an outdated platform",
    verdict: F,
    on: "TDX",
    tdx: firstLevel({ tcbStatus: "OutOfDate" }),
  },
  "level-revoked": {
    case: 25,
    label: "a revoked level",
    verdict: F,
    on: "TDX",
    tdx: firstLevel({ tcbStatus: "Revoked" }),
  },
  "level-unknown": {
    case: 26,
    label: "a level that nobody knows",
    verdict: F,
    on: "TDX",
    tdx: firstLevel({ tcbStatus: "Splendid" }),
  },
  debugged: { case: 27, label: "debugging on", verdict: F, on: "Genoa", debug: true },
  "debugged-tdx": {
    case: 27,
    label: "debugging on, on Intel TDX",
    verdict: F,
    on: "TDX",
    debug: true,
  },
  "asked-by-host": {
    case: 28,
    label: "asked for by the host",
    verdict: F,
    on: "Genoa",
    snp: { report: (report) => void report.fill(0xff, 0x30, 0x34) },
  },
  "other-vmpl": {
    case: 28,
    label: "asked for at VMPL 3",
    verdict: F,
    on: "Genoa",
    snp: { report: setTo(0x30, 3) },
  },
  "migration-agent": {
    case: 29,
    label: "a migration agent allowed",
    verdict: F,
    on: "Genoa",
    snp: { report: setTo(0x0a, 7) },
  },
  "service-td": {
    case: 29,
    label: "a service TD bound",
    verdict: F,
    on: "TDX",
    tdx: { isTd15: true, body: setTo(600, 1) },
  },
  "chip-masked": {
    case: 30,
    label: "a masked chip",
    verdict: F,
    on: "Genoa",
    snp: { report: (report) => void report.fill(0, 0x1a0, 0x1e0) },
  },
  "below-minimum": {
    case: 31,
    label: "firmware below the minimum",
    verdict: F,
    on: "Genoa",
    snp: { report: setTo(0x1f0 + 7, 3) },
  },
  "newer-firmware": {
    case: 32,
    label: "firmware newer than committed",
    verdict: V,
    on: "Genoa",
    snp: { report: setTo(0x38 + 7, 99) },
  },
  "bound-to-nothing": {
    case: 33,
    label: "report data of zeros",
    verdict: V,
    on: "Genoa",
    snp: { report: (report) => void report.fill(0, 0x50, 0x90) },
  },
  "other-image": {
    case: 34,
    label: "another image",
    verdict: F,
    on: "Genoa",
    image: "an image with a back door",
  },
  unpinned: { case: 35, label: "no pin", verdict: C, on: "Genoa", name: "nobody-pinned-this" },
  "service-says-other": {
    case: 36,
    label: "another measurement in the service's word",
    verdict: F,
    on: "Genoa",
    service: { measurement: "5e".repeat(48) },
  },
  "old-report": {
    case: 37,
    label: "the report from before the restart",
    verdict: C,
    on: "Genoa",
    replays: "its own",
  },
  "others-report": {
    case: 38,
    label: "another VM's report",
    verdict: F,
    on: "Genoa",
    replays: "another VM's",
  },
  "service-says-yes": {
    case: 39,
    label: "debugging on, and the service says verified",
    verdict: F,
    on: "Turin",
    debug: true,
    service: { verified: true },
  },
  "service-says-no": {
    case: 40,
    label: "genuine, and the service says not verified",
    verdict: F,
    on: "Turin",
    service: { verified: false },
  },
  "vendor-away": {
    case: 42,
    label: "the vendor away, its lists ten days old",
    verdict: V,
    on: "Turin",
  },
} as const satisfies Record<string, EvidenceWeather>;

export type EvidenceWeatherName = keyof typeof evidenceWeathers;

export const evidenceWeather = (name: EvidenceWeatherName): EvidenceWeather =>
  evidenceWeathers[name];
