import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { runAttestation } from "../../src/cli/attestation.ts";
import { vendorRoots } from "../../src/verifier/roots.ts";
import { evidenceOf, intelOf, readVectorFile, vectorOf } from "../verifier/vectors.ts";

const vectorFolder = join(import.meta.dirname, "../verifier/vectors");
const genoa = vectorOf("snp-genoa-v5");
const tdx = vectorOf("tdx-v5-uptodate-refreshed");
const pinOf = (vector: typeof genoa) => String(vector.parsed?.["measurement"]);
const tupleOf = ({ parsed }: typeof genoa) =>
  [parsed?.["mrTd"], ...((parsed?.["rtmr"] ?? []) as string[]).slice(0, 3)].join(",");

/** A folder of endorsements as an operator fills it, and the terminal. */
async function terminal() {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-endorsements-"));
  const put = async (name: string, content: Buffer | string) => {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    return path;
  };
  const { parsed } = genoa;
  await put(
    `amd/Genoa/vcek/${String(parsed?.["chipId"])}-${String(parsed?.["reportedTcb"])}.der`,
    readVectorFile(genoa.vek ?? ""),
  );
  await put("amd/Genoa/vcek.crl", readVectorFile("amd/genoa-crl.der"));
  const intel = intelOf(tdx.collateral ?? "");
  await put("intel/tcb/90c06f000000.json", intel.tcbInfo?.body ?? "");
  await put("intel/tcb/90c06f000000.pem", intel.tcbInfo?.chain ?? "");
  await put("intel/tdx-qe.json", intel.qeIdentity?.body ?? "");
  await put("intel/tdx-qe.pem", intel.qeIdentity?.chain ?? "");
  await put("intel/pck-platform.crl", intel.pckCrl ?? "");
  await put("intel/root.crl", intel.rootCrl ?? "");
  return {
    folder,
    put,
    async check(file: string, ...words: string[]) {
      let said = "";
      const write = (text: string) => void (said += text);
      const all = ["check", file, "--endorsements", folder, ...words];
      return { code: await runAttestation(all, { write }), said };
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const inLines = (text: string, length: number, eol = "\n") =>
  text.replaceAll(new RegExp(`.{${length}}`, "g"), `$&${eol}`) + eol;

const separated = (bytes: Buffer, by: string, before = "") =>
  [...bytes].map((byte) => `${before}${byte.toString(16).padStart(2, "0")}`).join(by);

type DumpLine = (offset: string, bytes: Buffer, text: string) => string;
const xxdLine: DumpLine = (offset, bytes, text) =>
  `${offset}: ${(bytes.toString("hex").match(/.{1,4}/g) ?? []).join(" ")}  ${text}`;
const hexdumpLine: DumpLine = (offset, bytes, text) =>
  `${offset}  ${separated(bytes.subarray(0, 8), " ")}  ${separated(bytes.subarray(8), " ")}  |${text}|`;
const odLine: DumpLine = (offset, bytes) => `${offset.slice(2)} ${separated(bytes, " ")}`;

/** Lines of 16 bytes; those that repeat the one before are one `*`, as hexdump and od write it. */
function dump(bytes: Buffer, line: DumpLine): string {
  const rows = Array.from({ length: bytes.length / 16 }, (_, n) =>
    bytes.subarray(16 * n, 16 * n + 16),
  );
  const lines = rows.map((row, n) => {
    const text = row.toString("latin1").replaceAll(/[^ -~]/g, ".");
    const isRepeated = line !== xxdLine && n > 0 && row.equals(rows[n - 1] ?? row);
    return isRepeated ? "*" : line((16 * n).toString(16).padStart(8, "0"), row, text);
  });
  return `${lines.filter((one, n) => one !== "*" || lines[n - 1] !== "*").join("\n")}\n`;
}

/** The wrapper around the hardware's report, with the data behind it that the report is bound to. */
function hclReport(report: Buffer): Buffer {
  const header = Buffer.alloc(32);
  header.write("HCLA", "latin1");
  header.writeUInt32LE(2, 4);
  header.writeUInt32LE(2_600, 8);
  const room = Buffer.concat([report, Buffer.alloc(1_184)]).subarray(0, 1_184);
  return Buffer.concat([
    header,
    room,
    Buffer.alloc(20),
    Buffer.from('{"keys":[]}'),
    Buffer.alloc(900),
  ]);
}

const pemOf = (der: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${inLines(der.toString("base64"), 64)}-----END CERTIFICATE-----\n`;
const { ark, ask } = vendorRoots.amd.Genoa;
const chain = pemOf(ask) + pemOf(ark);

describe("attestation check in a terminal", () => {
  it("ends with 0 for a genuine, pinned report, and says what was checked and until when it holds", async () => {
    await using at = await terminal();
    const file = join(vectorFolder, genoa.evidence);
    const { code, said } = await at.check(file, "--at", genoa.at, "--pin", pinOf(genoa));
    expect(said).toMatch(/^Verified: AMD's signature holds; the measurement is pinned\.\n/);
    expect(said).toContain("  hardware           2, affirmed\n");
    expect(said).toContain("  holds              2026-02-17T23:01:36Z to 2026-10-31T20:30:00Z\n");
    expect(said).toContain("Note: Not fresh:");
    expect(said).toContain("Note: Firmware level not judged");
    expect(code).toBe(0);
  });

  it("reads base64, hex, and the file that vm attest attaches", async () => {
    await using at = await terminal();
    const base64 = evidenceOf(tdx).toString("base64");
    const files = [
      await at.put("quote.txt", `${base64}\n`),
      await at.put("quote.hex", evidenceOf(tdx).toString("hex")),
      await at.put("attached.json", JSON.stringify({ vm: {}, report: { report: base64 } })),
      await at.put("answer.json", JSON.stringify({ report: base64, verified: true })),
    ];
    const ended = await Promise.all(
      files.map((file) => at.check(file, "--at", tdx.at, "--pin", tupleOf(tdx))),
    );
    for (const { code, said } of ended) {
      expect(said).toContain("Verified: Intel's signature holds; the firmware is current;");
      expect(code).toBe(0);
    }
  });

  it.each<[string, (bytes: Buffer) => Buffer | string]>([
    ["hex in lines, as xxd -p writes it", (bytes) => inLines(bytes.toString("hex"), 60)],
    ["hex in lines of Windows", (bytes) => inLines(bytes.toString("hex"), 60, "\r\n")],
    ["hex in upper case with 0x", (bytes) => `0X${bytes.toString("hex").toUpperCase()}`],
    ["hex with colons", (bytes) => separated(bytes, ":")],
    ["hex with spaces", (bytes) => separated(bytes, " ")],
    ["an array of C", (bytes) => `{ ${separated(bytes, ", ", "0x")} }`],
    [
      "what xxd -i writes",
      (bytes) =>
        `unsigned char report[] = {\n  ${separated(bytes, ", ", "0x")}\n};\nunsigned int report_len = 1184;\n`,
    ],
    ["what xxd shows", (bytes) => dump(bytes, xxdLine)],
    ["what hexdump -C shows", (bytes) => `${dump(bytes, hexdumpLine)}000004a0\n`],
    ["what od shows", (bytes) => `${dump(bytes, odLine)}0004a0\n`],
    ["hex in a JSON string", (bytes) => JSON.stringify(bytes.toString("hex"))],
    ["hex in JSON", (bytes) => JSON.stringify({ report: inLines(bytes.toString("hex"), 60) })],
    [
      "JSON with another name",
      (bytes) => JSON.stringify({ id: "7", raw: bytes.toString("base64") }),
    ],
    ["a list of bytes", (bytes) => JSON.stringify([...bytes])],
    ["a Buffer of Node.js", (bytes) => JSON.stringify(bytes)],
    ["base64 in lines", (bytes) => inLines(bytes.toString("base64"), 76)],
    ["base64 for addresses", (bytes) => bytes.toString("base64url")],
    [
      "PEM",
      (bytes) =>
        `-----BEGIN SNP REPORT-----\n${bytes.toString("base64")}\n-----END SNP REPORT-----\n`,
    ],
    [
      "a text of PowerShell",
      (bytes) => Buffer.from(`\uFEFF${bytes.toString("hex")}\r\n`, "utf16le"),
    ],
    ["a gzip archive", gzipSync],
    ["what Azure keeps in the vTPM", hclReport],
    ["the same in base64", (bytes) => hclReport(bytes).toString("base64")],
  ])("reads evidence in other forms of the same bytes: %s", async (_, change) => {
    await using at = await terminal();
    const file = await at.put("evidence", change(evidenceOf(genoa)));
    const { code, said } = await at.check(file, "--at", genoa.at, "--pin", pinOf(genoa));
    expect(said).toMatch(/^Verified: /);
    expect(code).toBe(0);
  });

  it("says what to do about a TD report, alone or as Azure keeps it", async () => {
    await using at = await terminal();
    const report = Buffer.alloc(1024);
    report[0] = 0x81;
    for (const bytes of [report, hclReport(report)]) {
      const { code, said } = await at.check(await at.put("td", bytes), "--at", genoa.at);
      expect(said).toMatch(/^Could not verify: it is a TD report, .* have a quote made of it\./);
      expect(code).toBe(2);
    }
    const short = hclReport(evidenceOf(genoa)).subarray(0, 600);
    const cut = await at.check(await at.put("cut", short), "--at", genoa.at);
    expect(cut.said).toMatch(/^Could not verify: the report is cut short/);
  });

  it.each<[string, (der: Buffer) => Buffer | string]>([
    ["DER", (der) => der],
    ["PEM", pemOf],
    ["PEM with its chain", (der) => `${chain}${pemOf(der)}`],
    ["base64", (der) => inLines(der.toString("base64"), 64)],
    ["hex", (der) => inLines(der.toString("hex"), 60)],
    ["hex with colons", (der) => separated(der, ":")],
    [
      "the JSON of Azure's THIM",
      (der) => JSON.stringify({ vcekCert: pemOf(der), certificateChain: chain }),
    ],
    ["JSON with DER in base64", (der) => JSON.stringify({ vcek: der.toString("base64") })],
  ])("takes the certificate of --vek as %s", async (_, change) => {
    await using at = await terminal();
    await rm(join(at.folder, "amd/Genoa/vcek"), { recursive: true });
    const vek = await at.put("vek", change(readVectorFile(genoa.vek ?? "")));
    const file = join(vectorFolder, genoa.evidence);
    const { said } = await at.check(file, "--at", genoa.at, "--pin", pinOf(genoa), "--vek", vek);
    expect(said).toMatch(/^Verified: /);
  });

  it("takes the values of --pin and --report-data in hex as tools write it", async () => {
    await using at = await terminal();
    const file = join(vectorFolder, genoa.evidence);
    const pin = Buffer.from(pinOf(genoa), "hex");
    const data = evidenceOf(genoa).subarray(0x50, 0x90);
    for (const written of [
      (bytes: Buffer) => `0x${bytes.toString("hex").toUpperCase()}`,
      (bytes: Buffer) => separated(bytes, ":"),
      (bytes: Buffer) => inLines(bytes.toString("hex"), 60),
    ]) {
      const words = ["--pin", written(pin), "--report-data", written(data)];
      expect((await at.check(file, "--at", genoa.at, ...words)).said).toMatch(/^Verified: /);
    }
  });

  it("looks where gatehouse.yml says when it isn't told otherwise", async () => {
    await using at = await terminal();
    let said = "";
    const write = (text: string) => void (said += text);
    const words = [
      "check",
      join(vectorFolder, genoa.evidence),
      "--at",
      genoa.at,
      "--pin",
      pinOf(genoa),
    ];
    expect(await runAttestation(words, { write, endorsements: () => at.folder })).toBe(0);
    expect(await runAttestation(words, { write })).toBe(2);
    expect(said).toContain("the chip's certificate is missing");
  });

  it("ends with 1 and names what contradicts", async () => {
    await using at = await terminal();
    const file = join(vectorFolder, genoa.evidence);
    const other = await at.check(file, "--at", genoa.at, "--pin", "ab".repeat(48));
    expect(other.said).toMatch(/^Failed: the measurement matches no pin\.\n/);
    expect(other.code).toBe(1);
    const bytes = evidenceOf(genoa);
    bytes[0x90] = (bytes[0x90] ?? 0) ^ 1;
    const changed = await at.check(await at.put("changed.bin", bytes), "--at", genoa.at);
    expect(changed.said).toMatch(/^Failed: the report's signature does not hold\.\n/);
    expect(changed.code).toBe(1);
  });

  it("ends with 2 and names what is missing, by its file where it is one", async () => {
    await using at = await terminal();
    const file = join(vectorFolder, vectorOf("tdx-v4-gcp-unbound").evidence);
    const none = await at.check(file, "--at", genoa.at);
    expect(none.said).toMatch(/^Could not verify: .*Intel's TCB info is missing/);
    expect(none.said).toContain(
      "Missing in the folder of endorsements: intel/tcb/00806f050000.json",
    );
    expect(none.code).toBe(2);
    const late = join(vectorFolder, genoa.evidence);
    const expired = await at.check(late, "--at", "2026-11-01T00:00:00Z", "--pin", pinOf(genoa));
    expect(expired.said).toMatch(
      /^Could not verify: AMD's revocation list for Genoa has expired\./,
    );
    const unpinned = await at.check(late, "--at", genoa.at);
    expect(unpinned.said).toMatch(/^Could not verify: no measurement is pinned for this VM\./);
    const noise = await at.check(await at.put("noise.txt", "not base64!"), "--at", genoa.at);
    expect(noise.said).toMatch(/^Could not verify: the raw report is not base64 or hex\./);
    expect([expired.code, unpinned.code, noise.code]).toEqual([2, 2, 2]);
    for (const other of [readVectorFile(genoa.vek ?? ""), Buffer.from("89504e470d0a1a0a", "hex")])
      expect((await at.check(await at.put("other", other), "--at", genoa.at)).said).toMatch(
        /^Could not verify: the raw report is neither a TDX quote nor an SNP report\./,
      );
    const empty = await at.put("empty.json", JSON.stringify({ vm: "web-2", id: "0a".repeat(48) }));
    expect((await at.check(empty, "--at", genoa.at)).said).toMatch(/is not base64 or hex\./);
  });

  it("judges AMD's firmware by a minimum", async () => {
    await using at = await terminal();
    const file = join(vectorFolder, genoa.evidence);
    const words = ["--at", genoa.at, "--pin", pinOf(genoa), "--minimum"];
    const enough = await at.check(file, ...words, "Genoa:bootloader=10,microcode=27");
    expect([enough.code, enough.said.includes("not judged")]).toEqual([0, false]);
    const more = await at.check(file, ...words, "Genoa:microcode=28");
    expect(more.said).toContain(
      "the current firmware is below the minimum: microcode 27 is below 28 (update the microcode or BIOS)",
    );
    expect(more.code).toBe(1);
    expect((await at.check(file, ...words, "Genoa:ram=3")).code).toBe(2);
  });

  it("alarms when a file of the vendor's was changed", async () => {
    await using at = await terminal();
    const intel = intelOf(tdx.collateral ?? "");
    await at.put(
      "intel/tcb/90c06f000000.json",
      intel.tcbInfo?.body.replace("UpToDate", "Revoked") ?? "",
    );
    const file = join(vectorFolder, tdx.evidence);
    const { code, said } = await at.check(file, "--at", tdx.at, "--pin", tupleOf(tdx));
    expect(said).toContain(
      "Could not verify: the signature on Intel's TCB info does not hold.\nALARM:",
    );
    expect(code).toBe(2);
  });

  it("accepts by name: a status until a day, a product, another VMPL", async () => {
    await using at = await terminal();
    const milan = vectorOf("snp-milan-v3-vlek");
    await copyFile(join(vectorFolder, "amd/milan-crl.der"), await at.put("amd/Milan/vlek.crl", ""));
    const words = [
      "--at",
      milan.at,
      "--pin",
      pinOf(milan),
      "--vek",
      join(vectorFolder, milan.vek ?? ""),
    ];
    const file = join(vectorFolder, milan.evidence);
    expect((await at.check(file, ...words)).code).toBe(1);
    const allowed = ["--allow", "known-broken-product", "--allow", "chip-masked", "--vmpl", "1"];
    const { code, said } = await at.check(file, ...words, ...allowed);
    expect(said).toMatch(/^Verified:/);
    expect(said).toContain("  hardware           32, warning\n");
    expect(code).toBe(0);
  });

  it("gives the whole result to programs", async () => {
    await using at = await terminal();
    const file = join(vectorFolder, genoa.evidence);
    const { said } = await at.check(file, "--at", genoa.at, "--pin", pinOf(genoa), "--json");
    expect(JSON.parse(said)).toMatchObject({
      at: "2026-04-20T00:00:00.000Z",
      verdict: "verified",
      claims: { hardware: 2, executables: 3, configuration: 2, instanceIdentity: 0 },
      verification: { is: "authentic", facts: { tee: "snp", measurement: pinOf(genoa) } },
    });
  });

  it("ends with 64 and says how it is called, when it is not called like that", async () => {
    let said = "";
    const write = (text: string) => void (said += text);
    expect(await runAttestation(["check"], { write })).toBe(64);
    expect(said).toMatch(
      /^Name the file to check\nusage: node gatehouse\.mjs attestation check <file>/,
    );
    for (const words of [
      ["check", "a", "--at", "yesterday"],
      ["check", "a", "--pin", "abc"],
      ["check", "a", "--allow", "everything"],
      ["check", "a", "--accept", "OutOfDate"],
      ["check", "no-such-file"],
      ["watch"],
    ])
      expect([2, 64]).toContain(await runAttestation(words, { write }));
  });
});
