import type { AttestationResult, Claims } from "../verifier/attestation-result.ts";
import type { Verification } from "../verifier/verification.ts";

const verdicts = {
  verified: "Verified",
  failed: "Failed",
  "could not verify": "Could not verify",
} as const;

const claimNames: readonly [keyof Claims, string][] = [
  ["hardware", "hardware"],
  ["executables", "executables"],
  ["configuration", "configuration"],
  ["instanceIdentity", "instance identity"],
];

const words: Record<number, string> = {
  0: "nothing is known",
  2: "affirmed",
  3: "affirmed: pinned",
  32: "warning",
  33: "warning: not recognized",
  36: "warning",
  96: "contradicted",
  99: "contradicted: a signature does not hold",
};

const second = (at: number) => new Date(at).toISOString().replace(/\.\d+Z$/, "Z");

/** A result for a terminal, the verdict first. */
export function resultLines(
  { verdict, claims, reasons, notes, isAlarm, verification }: AttestationResult,
  { at, absent }: { at: number; absent: readonly string[] },
): readonly string[] {
  const said = [...new Set(reasons.map(({ says }) => says))];
  return [
    `${verdicts[verdict]}: ${said.join("; ")}.`,
    ...(isAlarm ? ["ALARM: something that the vendor had signed was changed or forged."] : []),
    ...factLines(verification),
    ...claimNames.map(([claim, name]) => row(name, `${claims[claim]}, ${words[claims[claim]]}`)),
    ...(verification.is === "authentic"
      ? [
          row(
            "holds",
            `${second(verification.validity.from)} to ${second(verification.validity.until)}`,
          ),
        ]
      : []),
    row("checked at", second(at)),
    ...absent.map((name) => `Missing in the folder of endorsements: ${name}`),
    ...notes.map((note) => `Note: ${note}`),
  ];
}

const row = (name: string, value: string) => `  ${name.padEnd(19)}${value}`;

function factLines({ facts, tcb, product, digest }: Verification): readonly string[] {
  if (!facts) return [];
  const what =
    facts.tee === "tdx"
      ? [
          row("evidence", `Intel TDX quote, version ${facts.version}, ${facts.body}`),
          row("MRTD", facts.mrTd),
          ...facts.rtmr.map((value, at) => row(`RTMR${at}`, value)),
        ]
      : [
          row("evidence", `AMD SEV-SNP report, version ${facts.version}, ${product ?? "unknown"}`),
          row("MEASUREMENT", facts.measurement),
          row("report ID", facts.reportId),
        ];
  const level = tcb ? [row("TCB", `${tcb.status}, of ${tcb.date.slice(0, 10)}`)] : [];
  return [...what, ...level, row("signed bytes", `SHA-256 ${digest ?? ""}`)];
}
