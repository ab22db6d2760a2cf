import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runAttestation } from "../../src/cli/attestation.ts";
import {
  decodeAnswer,
  decodeChain,
  decodeDer,
  formOf,
} from "../../src/verifier/endorsement-form.ts";
import { quickest } from "../support/quickest.ts";
import { intelOf, readVectorFile, vectorOf } from "../verifier/vectors.ts";

const vectorFolder = join(import.meta.dirname, "../verifier/vectors");
const genoa = vectorOf("snp-genoa-v5");
const tdx = vectorOf("tdx-v5-uptodate-refreshed");
const genoaPin = String(genoa.parsed?.["measurement"]);
const tdxPin = [
  tdx.parsed?.["mrTd"],
  ...((tdx.parsed?.["rtmr"] ?? []) as string[]).slice(0, 3),
].join(",");

const vcek = `amd/Genoa/vcek/${String(genoa.parsed?.["chipId"])}-${String(genoa.parsed?.["reportedTcb"])}.der`;
const intel = intelOf(tdx.collateral ?? "");
const files: Record<string, Buffer | string> = {
  [vcek]: readVectorFile(genoa.vek ?? ""),
  "amd/Genoa/vcek.crl": readVectorFile("amd/genoa-crl.der"),
  "intel/tcb/90c06f000000.json": intel.tcbInfo?.body ?? "",
  "intel/tcb/90c06f000000.pem": intel.tcbInfo?.chain ?? "",
  "intel/tdx-qe.json": intel.qeIdentity?.body ?? "",
  "intel/tdx-qe.pem": intel.qeIdentity?.chain ?? "",
  "intel/pck-platform.crl": intel.pckCrl ?? "",
  "intel/pck-platform.pem": intel.tcbInfo?.chain ?? "",
  "intel/root.crl": intel.rootCrl ?? "",
};
const lists = Object.keys(files).filter((name) => name.endsWith(".crl"));
const ders = [...lists, vcek];
const chains = ["intel/tcb/90c06f000000.pem", "intel/tdx-qe.pem"];
const answers = ["intel/tcb/90c06f000000.json", "intel/tdx-qe.json"];

let filled = "";
beforeAll(async () => {
  filled = await mkdtemp(join(tmpdir(), "gatehouse-forms-"));
  for (const [name, content] of Object.entries(files)) {
    // oxlint-disable-next-line no-await-in-loop -- nine small files
    await mkdir(dirname(join(filled, name)), { recursive: true });
    // oxlint-disable-next-line no-await-in-loop -- nine small files
    await writeFile(join(filled, name), content);
  }
});
afterAll(() => rm(filled, { recursive: true, force: true }));

type Change = (content: Buffer) => Buffer | string;

/** `attestation check` of the genuine evidence that needs the file, once the file is in another form. */
async function check(name: string, change: Change) {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-form-"));
  await cp(filled, folder, { recursive: true });
  await writeFile(join(folder, name), change(await readFile(join(folder, name))));
  const [{ evidence, at }, pin] = name.startsWith("amd") ? [genoa, genoaPin] : [tdx, tdxPin];
  let said = "";
  const words = ["check", join(vectorFolder, evidence), "--endorsements", folder];
  const code = await runAttestation([...words, "--at", at, "--pin", pin], {
    write: (text) => void (said += text),
  });
  await rm(folder, { recursive: true });
  return { code, said };
}

const label = (name: string) => (name.endsWith(".crl") ? "X509 CRL" : "CERTIFICATE");
const pem = (name: string, der: Buffer, eol = "\n") =>
  [
    `-----BEGIN ${label(name)}-----`,
    ...(der.toString("base64").match(/.{1,64}/g) ?? []),
    `-----END ${label(name)}-----`,
    "",
  ].join(eol);
const bom = "\uFEFF";
const certificatesOf = (chain: string) => chain.split(/(?<=-----END CERTIFICATE-----\n)/);

/** The first file in each form, and the others, which are decoded alike, in the first form of all. */
const eachForm = <Form extends readonly unknown[]>(
  names: readonly string[],
  forms: readonly Form[],
) =>
  names.flatMap((name, at) =>
    (at === 0 ? forms : forms.slice(0, 1)).map((form) => [name, ...form] as const),
  );

describe("an endorsement in a form that holds the same bytes", () => {
  const ofDer: [form: string, change: (name: string, der: Buffer) => Buffer | string][] = [
    ["PEM", pem],
    ["PEM with CRLF", (name, der) => pem(name, der, "\r\n")],
    ["PEM with a byte order mark", (name, der) => bom + pem(name, der, "\r\n")],
    ["PEM in UTF-16", (name, der) => Buffer.from(bom + pem(name, der), "utf16le")],
    ["PEM with words around it", (name, der) => `# openssl crl\n${pem(name, der)}\n\n`],
    ["PEM, percent-encoded", (name, der) => encodeURIComponent(pem(name, der))],
    ["base64", (_, der) => `${der.toString("base64")}\n`],
    ["base64 in lines", (_, der) => der.toString("base64").replaceAll(/.{64}/g, "$&\r\n")],
    ["hex", (_, der) => der.toString("hex")],
    ["a gzip archive", (_, der) => gzipSync(der)],
  ];
  it.each(eachForm(ders, ofDer))("counts: %s as %s", async (name, _, change) => {
    const { code, said } = await check(name, (der) => change(name, der));
    expect(said).toMatch(/^Verified: /);
    expect(code).toBe(0);
  });

  const ofChain: [form: string, change: (text: string) => Buffer | string][] = [
    ["percent-encoded, as it comes in a header", encodeURIComponent],
    [
      "percent-encoded with its header's name",
      (text) => `TCB-Info-Issuer-Chain: ${encodeURIComponent(text)}\r\n`,
    ],
    ["form-encoded", (text) => encodeURIComponent(text).replaceAll("%20", "+")],
    ["with CRLF and a byte order mark", (text) => bom + text.replaceAll("\n", "\r\n")],
    ["with words between", (text) => text.replaceAll("-----BEGIN", "subject=CN = x\n-----BEGIN")],
    ["in UTF-16", (text) => Buffer.from(bom + text, "utf16le")],
    ["with its root first", (text) => certificatesOf(text).toReversed().join("")],
  ];
  it.each(eachForm(chains, ofChain))("counts: %s %s", async (name, _, change) => {
    expect((await check(name, (text) => change(text.toString()))).said).toMatch(/^Verified: /);
  });

  const ofAnswer: [form: string, change: (text: string) => Buffer | string][] = [
    ["with a byte order mark and CRLF at its end", (text) => `${bom}${text}\r\n`],
    ["in UTF-16", (text) => Buffer.from(bom + text, "utf16le")],
    ["in a gzip archive", gzipSync],
    ["in base64", (text) => Buffer.from(text).toString("base64")],
  ];
  it.each(eachForm(answers, ofAnswer))("counts: %s %s", async (name, _, change) => {
    expect((await check(name, (text) => change(text.toString()))).said).toMatch(/^Verified: /);
  });

  it("is imported as what it holds", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-form-"));
    const medium = await mkdtemp(join(tmpdir(), "gatehouse-form-"));
    await cp(filled, medium, { recursive: true });
    const root = await readFile(join(medium, "intel/root.crl"));
    await writeFile(join(medium, "intel/root.crl"), pem("root.crl", root, "\r\n"));
    const chain = await readFile(join(medium, "intel/tdx-qe.pem"), "utf8");
    await writeFile(join(medium, "intel/tdx-qe.pem"), encodeURIComponent(chain));
    let said = "";
    const words = ["import", medium, "--endorsements", folder, "--at", tdx.at];
    await runAttestation(words, { write: (text) => void (said += text) });
    expect(said).toMatch(/intel\/root\.crl: imported\n/);
    expect(said).toMatch(/intel\/tdx-qe\.json: imported\n/);
    expect(await readFile(join(folder, "intel/root.crl"))).toEqual(root);
    expect(await readFile(join(folder, "intel/tdx-qe.pem"), "utf8")).toContain("-----BEGIN CERT");
    await rm(folder, { recursive: true });
    await rm(medium, { recursive: true });
  });
});

describe("a file that is no endorsement at all", () => {
  const html = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>\n";
  const everywhere: [what: string, content: Buffer | string, named: RegExp][] = [
    ["an HTML page", html, /an HTML page/],
    ["an XML page", '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', /XML or HTML/],
    ["a JSON error", '{"error": {"code": 404, "message": "not found"}}', /JSON/],
    ["a text", "404 page not found\n", /a text/],
    ["half a gzip archive", gzipSync("nothing").subarray(0, 15), /a gzip archive|no text/],
    ["an HTML page in a gzip archive", gzipSync(html), /an HTML page/],
    ["a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", /PRIVATE KEY/],
    ["white space", " \n", /empty/],
    ["nothing", "", /Missing in the folder/],
  ];
  it.each([ders, answers, chains].flatMap((names) => eachForm(names, everywhere)))(
    "is named, and is no alarm: %s, %s",
    async (name, _, content, named) => {
      const { code, said } = await check(name, () => content);
      expect(said).toMatch(/^Could not verify: /);
      expect(said).toMatch(named);
      expect(said).not.toMatch(/ALARM|does not hold|forged/);
      expect(code).toBe(2);
    },
  );

  it.each([
    ...ders.map((name) => [name, /cut short/] as const),
    ...answers.map((name) => [name, /JSON that is cut short/] as const),
    ...chains.map((name) => [name, /PEM that is cut short/] as const),
  ])("is named where it was cut off: %s", async (name, named) => {
    const { code, said } = await check(name, (content) => content.subarray(0, 200));
    expect(said).toMatch(/^Could not verify: /);
    expect(said).toMatch(named);
    expect(said).not.toContain("ALARM");
    expect(code).toBe(2);
  });

  it.each(
    chains.flatMap((name) => [
      [name, "1 certificate", (text: string) => certificatesOf(text)[0] ?? ""] as const,
      [name, "3 certificates", (text: string) => text + (certificatesOf(text)[1] ?? "")] as const,
    ]),
  )("is named where it isn't the whole chain alone: %s with %s", async (name, many, change) => {
    const { code, said } = await check(name, (text) => change(text.toString()));
    expect(said).toMatch(/^Could not verify: the chain of /);
    expect(said).toContain(`which has ${many} and not 2, can't be read`);
    expect(said).not.toContain("ALARM");
    expect(code).toBe(2);
  });

  it.each(lists)("is named where it has bytes behind its end: %s", async (name) => {
    const { said } = await check(name, (der) => Buffer.concat([der, Buffer.from("\n")]));
    expect(said).toMatch(/longer than it says/);
    expect(said).not.toContain("ALARM");
  });

  it("is named by attestation status, with its file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gatehouse-form-"));
    await cp(filled, folder, { recursive: true });
    for (const name of ["intel/root.crl", "intel/tdx-qe.pem", vcek])
      // oxlint-disable-next-line no-await-in-loop -- three small files
      await writeFile(join(folder, name), html);
    let said = "";
    const words = ["status", "--endorsements", folder, "--at", tdx.at];
    await runAttestation(words, { write: (text) => void (said += text) });
    expect(said).toMatch(
      /BAD {2}the revocation list, which is an HTML page, can't be read .*root\.crl/,
    );
    expect(said).toMatch(
      /BAD {2}the chain of .*, which is an HTML page, can't be read .*tdx-qe\.json/,
    );
    expect(said).toMatch(/BAD {2}.*its file is an HTML page .*vcek/);
    await rm(folder, { recursive: true });
  });
});

describe("a signature that doesn't hold", () => {
  it.each([...lists, ...answers])("is an alarm in every form: %s", async (name) => {
    const flip: Change = (content) => {
      const at = name.endsWith(".json") ? content.indexOf("pcesvn") + 9 : content.length - 20;
      const place = name.includes("qe.json") ? content.indexOf("isvprodid") + 11 : at;
      content[place] = (content[place] ?? 0) ^ 1;
      return content;
    };
    const plain = await check(name, flip);
    expect(plain.said).toMatch(/ALARM: a vendor-signed file was altered or forged/);
    expect(plain.code).toBe(2);
    const encoded = await check(name, (content) => Buffer.from(flip(content)).toString("base64"));
    expect(encoded.said).toMatch(/ALARM: a vendor-signed file was altered or forged/);
  });

  it("is an alarm of a chain that isn't Intel's", async () => {
    const other = intelOf(tdx.collateral ?? "").tcbInfo?.chain ?? "";
    const [, root = ""] = other.split(/(?<=-----END CERTIFICATE-----\n)/);
    expect((await check("intel/tdx-qe.pem", () => root + root)).said).toContain("ALARM");
  });
});

describe("decoding", () => {
  const der = readVectorFile("amd/genoa-crl.der");

  it("leaves what it doesn't know as it is", () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from("00", "hex"), Buffer.from("hello"), der]) {
      expect(decodeDer(bytes, "X509 CRL")).toBe(bytes);
      expect(decodeChain(bytes.subarray(0, 5))).not.toContain("BEGIN");
    }
    const two = Buffer.from(pem("a.crl", der) + pem("a.crl", der));
    expect(decodeDer(two, "X509 CRL")).toBe(two);
    expect(decodeDer(Buffer.from(pem("a.der", der)), "X509 CRL").toString()).toContain("BEGIN");
    expect(decodeAnswer(Buffer.from('{"a": 1}'))).toBe('{"a": 1}');
  });

  it("says nothing of one whole value of DER", () => {
    expect(formOf(der)).toBeUndefined();
    expect(formOf(Buffer.from("3000", "hex"))).toBeUndefined();
  });

  it("takes no time over a megabyte of what looks like its beginning", () => {
    const hostile = Buffer.from("-----BEGIN X509 CRL-----".repeat(40_000));
    const tookMs = quickest(() => {
      decodeDer(hostile, "X509 CRL");
      decodeChain(hostile);
      decodeAnswer(hostile);
      formOf(hostile);
    });
    expect(tookMs).toBeLessThan(1_000);
  });
});
