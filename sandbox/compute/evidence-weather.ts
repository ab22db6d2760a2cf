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

const on = (
  platform: EvidenceWeather["on"],
  number: number,
  verdict: Verdict,
  label: string,
  changes: Partial<EvidenceWeather> = {},
): EvidenceWeather => ({ on: platform, case: number, verdict, label, ...changes });

/** By their names, as switches and `edit.setEvidence` take them. A VM's own clock is no weather: that is case 41. */
export const evidenceWeathers = {
  clear: on("Genoa", 1, V, "genuine"),
  "clear-tdx": on("TDX", 1, V, "genuine, on Intel TDX"),
  "body-flipped": on("Genoa", 2, F, "a bit flipped in the body", { bytes: flipped(0x95) }),
  "signature-flipped": on("Genoa", 3, F, "a bit flipped in the signature", {
    bytes: flipped(0x2a8),
  }),
  "numbers-turned": on("Genoa", 4, F, "r and s big-endian", { bytes: turnedAround }),
  "cut-short": on("Genoa", 5, C, "cut short", { bytes: (report) => report.subarray(0, 1000) }),
  "base64-broken": on("TDX", 5, C, "broken base64", {
    text: (base64) => `${base64.slice(0, 99)}!?`,
  }),
  appended: on("Genoa", 6, V, "4 KiB behind it", {
    bytes: (report) => Buffer.concat([report, Buffer.alloc(4096)]),
  }),
  "unknown-version": on("Genoa", 7, C, "a version that nobody knows", {
    snp: { report: setTo(0, 6) },
  }),
  "other-root": on("TDX", 8, F, "another Intel's root", { isStranger: true }),
  "other-product": on("Genoa", 9, F, "under another product's ASK", {
    snp: { vek: { issuer: "SEV-Milan" } },
  }),
  "other-chip": on("Genoa", 10, F, "a VCEK of another chip", {
    snp: { extensions: { "4": Buffer.alloc(64, 0xc2) } },
  }),
  "other-firmware": on("Genoa", 11, F, "a VCEK of another firmware", {
    snp: { extensions: { "3.3": Buffer.from([2, 1, 22]) } },
  }),
  "other-key": on("Genoa", 12, F, "a VLEK where the report says VCEK", {
    snp: { kind: "VLEK", report: setTo(0x48, 0) },
  }),
  "no-ca": on("TDX", 13, F, "a PCK CA that is no CA", { tdx: { ca: { ca: { isCa: false } } } }),
  "signed-by-pck": on("TDX", 14, C, "TCB info signed by a PCK", {
    tdx: { signer: { subject: "Intel SGX PCK Certificate" } },
  }),
  revoked: on("TDX", 15, F, "a revoked PCK", { tdx: { pckCrl: { serials: [0x555] } } }),
  "ask-revoked": on("Genoa", 15, F, "a revoked ASK", { snp: { crl: { serials: [0x020002] } } }),
  "list-forged": on("TDX", 16, C, "a forged revocation list", { isListForged: true }),
  "lists-ran-out": on("Genoa", 17, C, "a revocation list that ran out", { hasRunOut: true }),
  "info-edited": on("TDX", 18, C, "TCB info with an edited status", {
    tcbInfo: (body) => body.replace('"OutOfDate"', '"UpToDate"'),
  }),
  "info-expired": on("TDX", 19, C, "TCB info that has ended", {
    tdx: { tcbInfo: (info) => void (info.nextUpdate = day(Date.now() - dayMs)) },
  }),
  "info-of-tomorrow": on("TDX", 19, C, "TCB info of the future", {
    tdx: { tcbInfo: (info) => void (info.issueDate = day(Date.now() + dayMs)) },
  }),
  "unknown-platform": on("TDX", 20, C, "a platform without collateral", {
    tdx: { fmspc: "00906ed50000" },
    isFolderClear: true,
  }),
  "certificate-ended": on("TDX", 21, C, "a PCK certificate that has ended", {
    tdx: { pck: { until: Date.now() - dayMs } },
  }),
  "unknown-module": on("TDX", 22, F, "a TDX module that Intel doesn't know", {
    tdx: { body: setTo(1, 9) },
  }),
  "module-outdated": on("TDX", 23, F, "an outdated TDX module", { tdx: { body: setTo(0, 4) } }),
  "platform-outdated": on("TDX", 24, F, "an outdated platform", {
    tdx: firstLevel({ tcbStatus: "OutOfDate" }),
  }),
  "level-revoked": on("TDX", 25, F, "a revoked level", {
    tdx: firstLevel({ tcbStatus: "Revoked" }),
  }),
  "level-unknown": on("TDX", 26, F, "a level that nobody knows", {
    tdx: firstLevel({ tcbStatus: "Splendid" }),
  }),
  debugged: on("Genoa", 27, F, "debugging on", { debug: true }),
  "debugged-tdx": on("TDX", 27, F, "debugging on, on Intel TDX", { debug: true }),
  "asked-by-host": on("Genoa", 28, F, "asked for by the host", {
    snp: { report: (report) => void report.fill(0xff, 0x30, 0x34) },
  }),
  "other-vmpl": on("Genoa", 28, F, "asked for at VMPL 3", { snp: { report: setTo(0x30, 3) } }),
  "migration-agent": on("Genoa", 29, F, "a migration agent allowed", {
    snp: { report: setTo(0x0a, 7) },
  }),
  "service-td": on("TDX", 29, F, "a service TD bound", {
    tdx: { isTd15: true, body: setTo(600, 1) },
  }),
  "chip-masked": on("Genoa", 30, F, "a masked chip", {
    snp: { report: (report) => void report.fill(0, 0x1a0, 0x1e0) },
  }),
  "below-minimum": on("Genoa", 31, F, "firmware below the minimum", {
    snp: { report: setTo(0x1f0 + 7, 3) },
  }),
  "newer-firmware": on("Genoa", 32, V, "firmware newer than committed", {
    snp: { report: setTo(0x38 + 7, 99) },
  }),
  "bound-to-nothing": on("Genoa", 33, V, "report data of zeros", {
    snp: { report: (report) => void report.fill(0, 0x50, 0x90) },
  }),
  "other-image": on("Genoa", 34, F, "another image", { image: "an image with a back door" }),
  unpinned: on("Genoa", 35, C, "no pin", { name: "nobody-pinned-this" }),
  "service-says-other": on("Genoa", 36, F, "another measurement in the service's word", {
    service: { measurement: "5e".repeat(48) },
  }),
  "old-report": on("Genoa", 37, C, "the report from before the restart", { replays: "its own" }),
  "others-report": on("Genoa", 38, F, "another VM's report", { replays: "another VM's" }),
  "service-says-yes": on("Turin", 39, F, "debugging on, and the service says verified", {
    debug: true,
    service: { verified: true },
  }),
  "service-says-no": on("Turin", 40, F, "genuine, and the service says not verified", {
    service: { verified: false },
  }),
  "vendor-away": on("Turin", 42, V, "the vendor away, its lists ten days old"),
} satisfies Record<string, EvidenceWeather>;

export type EvidenceWeatherName = keyof typeof evidenceWeathers;

export const evidenceWeather = (name: EvidenceWeatherName): EvidenceWeather =>
  evidenceWeathers[name];
