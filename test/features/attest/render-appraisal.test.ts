import { describe, expect, it } from "vitest";
import { appraise } from "../../../src/attestation/appraise.ts";
import {
  type FleetRow,
  renderAttestation,
  renderFleet,
  reportFile,
} from "../../../src/features/attest/render-appraisal.ts";
import { wayOut } from "../../../src/features/attest/way-out.ts";
import { strictPolicy } from "../../../src/verifier/appraisal-policy.ts";
import {
  good,
  measurement,
  now,
  otherMeasurement,
  pinFor,
  reportOf,
  snp,
  tdx,
} from "../../attestation/reports.ts";

const dayMs = 86_400_000;
const debugged = () => snp((report) => (report[0x0a] = (report[0x0a] ?? 0) | 0x08));

describe("an attestation in Slack", () => {
  it("says the verdict first, then why, what was checked by whom and until when, and the service's word beside it", () => {
    const shown = renderAttestation({ name: "web-1" }, appraise(good()));
    expect(shown.text).toBe("Verified: web-1. AMD's signature holds. The measurement is pinned.");
    expect(shown.blocks).toMatchObject([
      {
        text: {
          text: "✅ *Verified*: `web-1`\n• AMD's signature holds.\n• The measurement is pinned.",
        },
      },
      {
        fields: [
          { text: "*Checked by Gatehouse*\nAMD SEV-SNP report, version 5, Genoa" },
          { text: expect.stringMatching(/^\*Holds until\*\n<!date/) },
          { text: "*Measurement*\n`abab…abab` as on the VM" },
          { text: "*Pins*\n`abab…abab`: matches" },
          {
            text: expect.stringMatching(
              /^\*The compute service says\*\nverified · AMD · EPYC 9654 · firmware 1.55.37, made <!date.*, 1 min ago$/,
            ),
          },
        ],
      },
      { type: "context" },
    ]);
  });

  it("says no although the service says yes, and shows its word beside ours", () => {
    const shown = JSON.stringify(
      renderAttestation({ name: "web-1" }, appraise(good({ evidence: debugged() }))).blocks,
    );
    expect(shown).toContain("🔴 *Failed*: `web-1`");
    expect(shown).toContain("Debugging is on: the host can read the VM's memory.");
    expect(shown).toContain("*The compute service says*\\nverified");
  });

  it("says of a failure what to do, and not until when it holds; of whole other values no count of bytes", () => {
    const said = (of: Parameters<typeof good>[0]) =>
      JSON.stringify(renderAttestation({ name: "web-1" }, appraise(good(of))).blocks);
    const other = said({ pins: [otherMeasurement] });
    expect(other).toContain("If it should run this, change its pin (one in gatehouse.yml wins)");
    expect(other).toContain('*Difference*: abab…abab instead of 0f0e…0d0c"');
    expect(other).toContain("The service's own verdict (verified) isn't used.");
    expect(other).not.toMatch(/Holds until|of 48 bytes/);
    const isDebugged = said({ evidence: debugged() });
    expect(isDebugged).toContain("Stop the VM, and have it started without debugging.");
    expect(isDebugged).not.toContain("Holds until");
  });

  it("names the component that is too old, its level and the one needed, and what brings it", () => {
    const module = tdx((body) => void (body[0] = 5));
    const shown = renderAttestation({ name: "web-1" }, appraise(good({ evidence: module })));
    expect(shown.text).toBe(
      "Failed: web-1. Intel calls the platform OutOfDate (INTEL-SA-00002): update the TDX module (TDX Module 5, needs 6 as of 2024-11-13).",
    );
    expect(JSON.stringify(shown.blocks)).toContain("Whoever runs the host must update it.");
    const microcode = appraise(good({ evidence: tdx((body) => void (body[2] = 2)) }));
    expect(microcode.reasons).toEqual([
      "Intel calls the platform OutOfDate (INTEL-SA-00001): update the microcode (TDX Late Microcode Update 2, needs 3 as of 2024-11-13)",
    ]);
    const minimumTcb = [{ product: "Genoa" as const, tcb: { bootloader: 11, microcode: 90 } }];
    const firmware = appraise(good({ policy: { ...strictPolicy, minimumTcb } }));
    expect(firmware.reasons.slice(0, 2)).toEqual([
      "the current firmware is below the minimum: bootloader 10 is below 11 (update the BIOS)",
      "the current firmware is below the minimum: microcode 84 is below 90 (update the microcode or BIOS)",
    ]);
    expect(firmware.reasons).toContain(
      "the launch firmware is below the minimum: bootloader 10 is below 11 (then restart the VM)",
    );
  });

  it("names it, too, where the platform is below every level, which no policy accepts", () => {
    const statuses = [
      { status: "OutOfDate" as const, advisories: ["INTEL-SA-00001"], until: now + dayMs },
    ];
    const evidence = tdx((body) => void (body[2] = 1));
    const judged = appraise(good({ evidence, policy: { ...strictPolicy, statuses } }));
    expect(judged).toMatchObject({
      verdict: "failed",
      reasons: [
        "the platform is below every level that Intel supports: update the microcode (TDX Late Microcode Update 1, needs 3 as of 2024-11-13)",
      ],
      result: { short: [{ by: "microcode", has: 1, needs: 3 }] },
    });
    expect(wayOut(judged)).toBe(
      "Whoever runs the host must update it: no policy can accept this level",
    );
  });

  it("says what is missing and what to do about it", () => {
    const over = { endorsements: {}, absent: ["amd/Genoa/vcek.crl"] };
    const shown = renderAttestation({ name: "web-1" }, appraise(good(over)));
    expect(shown.text).toMatch(/^Could not verify: web-1\. The chip's certificate is missing/);
    expect(JSON.stringify(shown.blocks)).toContain(
      "Missing in the folder of endorsements: amd/Genoa/vcek.crl; docs/attestation.md says",
    );
  });

  it("says what to do where something is missing", () => {
    const way = (over: Parameters<typeof good>[0]) => wayOut(appraise(good(over)));
    expect(way({ hasEndorsements: false, endorsements: {} })).toMatch(/^`attestation.endorse/);
    expect(way({ endorsements: {}, absent: ["amd/Genoa/vcek.crl"] })).toMatch(
      /^Missing in the folder of endorsements: amd\/Genoa\/vcek\.crl;/,
    );
    expect(way({ now: now + 31 * dayMs, says: { timestamp: "" } })).toMatch(/^Renew the/);
    expect(way({ pins: [] })).toBe(
      `If this is what should run, pin it: \`/gatehouse pins propose\` asks others to approve it, or write it under \`attestation.pins\` in gatehouse.yml: ${measurement}`,
    );
    expect(way({ evidence: tdx(), pins: [] })).toContain(`: ${pinFor(tdx())}`);
    expect(way({})).toBeUndefined();
  });

  it("raises an alarm where somebody changed what a vendor had signed", () => {
    const evidence = snp();
    const crl = Buffer.from(evidence.endorsements.amd?.crl ?? "");
    crl[crl.length - 5] = (crl[crl.length - 5] ?? 0) ^ 1;
    const endorsements = { amd: { ...evidence.endorsements.amd, crl } };
    const shown = renderAttestation({ name: "a" }, appraise(good({ evidence, endorsements })));
    expect(shown.text).toMatch(/^Could not verify: a\./);
    expect(JSON.stringify(shown.blocks)).toContain("🚨 A vendor-signed file was altered");
  });

  it("raises none for a file that is no list at all: it is named, and what to do about it", () => {
    const evidence = snp();
    const crl = Buffer.from("<html><body>503 Service Unavailable</body></html>");
    const endorsements = { amd: { ...evidence.endorsements.amd, crl } };
    const shown = renderAttestation({ name: "a" }, appraise(good({ evidence, endorsements })));
    expect(shown.text).toBe(
      "Could not verify: a. AMD's revocation list for Genoa, which is an HTML page, can't be read.",
    );
    const words = JSON.stringify(shown.blocks);
    expect(words).not.toContain("🚨");
    expect(words).toContain("Replace it in the folder of endorsements");
  });
});

describe("a fleet", () => {
  const named = (name: string) => ({ id: `vm-${name}`, name, projectId: "p", projectName: "prod" });
  const rowOf = (name: string, input = good()): FleetRow => ({
    vm: named(name),
    appraisal: appraise(input),
  });
  const fleet = [
    rowOf("a-good"),
    rowOf("b-off", good({ vm: { attestation: { enabled: false } }, pins: [] })),
    rowOf("c-unpinned", good({ pins: [] })),
    rowOf("e-debug", good({ evidence: debugged() })),
    rowOf("d-other", good({ pins: [otherMeasurement] })),
    { vm: named("f-gone"), appraisal: undefined, unread: "not found" },
  ];

  it("is a table, the worst first, with the days that each result still holds", () => {
    const { message } = renderFleet("prod-*", fleet, now);
    expect(message.text).toBe(
      "Attestation of prod-∗: 🔴 2 failed, ❔ 1 could not verify, ❔ 1 not read, ⚪ 1 attestation off, ✅ 1 verified",
    );
    const text = JSON.stringify(message.blocks);
    const names = ["d-other", "e-debug", "c-unpinned", "f-gone", "b-off", "a-good"];
    const places = names.map((name) => text.indexOf(` ${name}"`));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(text).toContain("debugging is on: the host can read the VM's memory");
  });

  it("is a line for each VM that isn't fine, where a table would cut why", () => {
    const why = `the compute service gave no report (503)${"; the host is being moved".repeat(5)}`;
    const lost = { vm: named("f-gone"), appraisal: undefined, unread: why };
    const { message } = renderFleet("prod-*", [...fleet.slice(0, 5), lost], now);
    const texts = message.blocks.flatMap((block) =>
      block.type === "section" ? [block.text?.text ?? ""] : [],
    );
    expect(texts.slice(1)).toEqual([
      "🔴 *d-other*: the measurement matches no pin",
      "🔴 *e-debug*: debugging is on: the host can read the VM's memory",
      "❔ *c-unpinned*: no measurement is pinned for this VM",
      `❔ *f-gone*: ${why}`,
    ]);
    const table = JSON.stringify(message.blocks.find(({ type }) => type === "data_table"));
    expect(table).toMatch(/ b-off"[^]* a-good"/);
    expect(table).not.toMatch(/d-other|f-gone/);
    const all = Array.from({ length: 40 }, (_, n) => ({ ...lost, vm: named(`vm-${n}`) }));
    const many = renderFleet("*", all, now).message.blocks;
    expect(many.filter(({ type }) => type === "section")).toHaveLength(16);
    expect(JSON.stringify(many)).not.toContain("are shown");
  });

  it("groups the VMs that wait for the same update", () => {
    const old = (at: number) =>
      good({ evidence: tdx((body) => void (body[at] = 2 + (at === 0 ? 3 : 0))) });
    const waiting = ["a", "b", "c", "d"].map((name) => rowOf(name, old(0)));
    const { message } = renderFleet("*", [...waiting, rowOf("e", old(2))], now);
    const text = JSON.stringify(message.blocks);
    expect(text).toContain(
      "⬆️ *Waiting for TDX module (TDX Module 6 as of 2024-11-13)*: a, b, c and 1 more\\n⬆️ *Waiting for microcode (TDX Late Microcode Update 3 as of 2024-11-13)*: e",
    );
  });

  it("is a CSV with whole values", () => {
    const { content } = renderFleet("prod-*", fleet, now);
    const rows = content.trimEnd().split(/\r?\n/);
    expect(rows).toHaveLength(7);
    const last = rows.at(-1) ?? "";
    expect(last).toMatch(/^"a-good","prod","vm-a-good","verified","AMD's signature holds; /);
    expect(last).toContain(
      `,"30","${new Date(now + 30 * dayMs).toISOString()}","${measurement}","verified",`,
    );
    expect(last).toMatch(/,"AMD SEV-SNP report, version 5, Genoa","[0-9a-f]{64}"$/);
  });
});

describe("the raw report", () => {
  it("comes as a file, with what was made of it", () => {
    const report = reportOf(snp());
    const vm = { id: "vm-1", name: "../web 1", attestation: { enabled: true, measurement } };
    const { name, content } = reportFile(vm, report, appraise(good()), now);
    expect(name).toBe("attestation-..-web-1-2026-06-01T000000Z.json");
    expect(JSON.parse(content)).toMatchObject({ vm, report, appraisal: { verdict: "verified" } });
  });
});
