import { extension, integer, octets, tlv } from "../../sandbox/evidence/der-writer.ts";
import { ecdsaSigning, pssSigning } from "../../sandbox/evidence/mint-certificates.ts";
import { createIntelKeys, mintTdx } from "../../sandbox/evidence/mint-tdx.ts";
import { type Case, createJudging, dayMs, flipped, mintedAt, type Mints } from "./judging.ts";

const V = "verified";
const F = "failed";
const C = "could not verify";

/** For bytes of a hash: what they are set to they might be before. */
const invert = (at: number) => (bytes: Buffer) => void (bytes[at] = ~(bytes[at] ?? 0));
const setTo = (at: number, value: number) => (bytes: Buffer) => void (bytes[at] = value);
const svns = (changed: Record<number, number>) =>
  [3, 3, 2, 2, 4, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 13].map((svn, at) => changed[at] ?? svn);
const critical = extension("2.5.29.28", Buffer.from("3000", "hex"), true);

/** One check each that nothing else would make up for; what is taken away from the verifier is noticed by one of these. */
export function checkCases(mints: Mints): readonly Case[] {
  const { tdx, snp, tdxAfter, snpAfter, genuine } = createJudging(mints);
  const { intel, amd } = mints;
  const stranger = createIntelKeys();
  const strangers = mintTdx(stranger, mintedAt);
  const fail = (
    code: string,
    name: string,
    judge: Case["judge"],
    more: Partial<Case> = {},
  ): Case => ({ name, verdict: F, code, judge, ...more });
  const cannot = (
    code: string,
    name: string,
    judge: Case["judge"],
    more: Partial<Case> = {},
  ): Case => ({ name, verdict: C, code, judge, ...more });
  const alarm = (code: string, name: string, judge: Case["judge"]): Case =>
    cannot(code, name, judge, { isAlarm: true });
  const good = (name: string, judge: Case["judge"], note?: string): Case => ({
    name,
    verdict: V,
    judge,
    ...(note === undefined ? {} : { note }),
  });
  return [
    // The chain in a quote
    fail("chain-length", "TDX: chain without its root", tdx({ chain: (all) => all.slice(0, 2) })),
    fail(
      "chain-length",
      "TDX: chain with a certificate more",
      tdx({ chain: (all) => [...all, ...all.slice(2)] }),
    ),
    fail(
      "chain-name",
      "TDX: PCK of another name",
      tdx({ pck: { subject: "Intel SGX TCB Signing" } }),
    ),
    fail(
      "chain-name",
      "TDX: CA of another name",
      tdx({
        ca: { subject: "Intel CA" },
        pck: { issuer: "Intel CA" },
        pckCrl: { issuer: "Intel CA" },
      }),
    ),
    fail(
      "chain-name",
      "TDX: root of another name",
      tdx({
        root: { subject: "Intel CA", issuer: "Intel CA" },
        ca: { issuer: "Intel CA" },
        signer: { issuer: "Intel CA" },
        rootCrl: { issuer: "Intel CA" },
      }),
    ),
    fail(
      "chain-name",
      "TDX: issuer's name differs in its bytes",
      tdx({ pck: { issuerOrganization: "Elsewhere" } }),
    ),
    fail(
      "chain-not-ca",
      "TDX: CA that may not sign certificates",
      tdx({ ca: { ca: { usage: 0x02 } } }),
    ),
    fail(
      "chain-not-ca",
      "TDX: root above which no CA may stand",
      tdx({ root: { ca: { pathLength: 0 } } }),
    ),
    fail("chain-signature", "TDX: PCK signed by another key", tdx({ pck: { signer: intel.root } })),
    fail("chain-signature", "TDX: CA signed by another key", tdx({ ca: { signer: intel.pck } })),
    fail(
      "chain-algorithm",
      "TDX: PCK signed in another way",
      tdx({
        pck: {
          signing: { ...ecdsaSigning, algorithm: Buffer.from("300a06082a8648ce3d040303", "hex") },
        },
      }),
    ),
    fail(
      "chain-malformed",
      "TDX: PCK with another algorithm inside",
      tdx({ pck: { inner: pssSigning.algorithm } }),
    ),
    fail(
      "chain-malformed",
      "TDX: PCK with a critical extension that nobody knows",
      tdx({ pck: { extensions: [critical] } }),
    ),
    fail("chain-leaf", "TDX: PCK that is a CA", tdx({ pck: { ca: { pathLength: 0 } } })),
    fail("pck-extension", "TDX: PCK without its extension", tdx({ pck: { extensions: [] } })),
    fail("pck-extension", "TDX: PCK without an SVN", tdx({ svns: svns({}).slice(0, 15) })),
    cannot("pceid", "TDX: PCEID differs", tdx({ pceId: "0001" })),
    cannot("fmspc", "TDX: FMSPC differs", tdx({ fmspc: "00a06f000001" })),

    // Lists
    alarm(
      "crl-issuer",
      "TDX: PCK list of another issuer's name",
      tdx({ pckCrl: { organization: "Elsewhere" } }),
    ),
    alarm(
      "crl-issuer",
      "TDX: CA that may not sign lists",
      tdx({ ca: { ca: { pathLength: 0, usage: 0x04 } } }),
    ),
    alarm("crl-issuer", "SNP: ARK that may not sign lists", snp({ ark: { ca: { usage: 0x04 } } })),
    cannot("crl-malformed", "TDX: list without an end", tdx({ pckCrl: { until: undefined } })),
    cannot(
      "crl-malformed",
      "TDX: list that covers only some",
      tdx({ pckCrl: { extensions: [critical] } }),
    ),
    alarm(
      "crl-signature",
      "TDX: list signed in another way",
      tdx({ pckCrl: { signing: { ...ecdsaSigning, algorithm: pssSigning.algorithm } } }),
    ),
    cannot(
      "crl-malformed",
      "TDX: list larger than any is",
      tdx({ pckCrl: { extensions: [extension("2.5.29.99", Buffer.alloc(1024 * 1024))] } }),
    ),
    good(
      "TDX: list of thousands",
      tdx({ pckCrl: { serials: Array.from({ length: 3000 }, (_, n) => 0x10000 + n) } }),
    ),
    fail(
      "chain-malformed",
      "TDX: certificate larger than any is",
      tdx({ pck: { extensions: [extension("2.5.29.99", Buffer.alloc(16 * 1024))] } }),
    ),
    fail(
      "chain-malformed",
      "TDX: certificate with more parts than any has",
      tdx({
        pck: {
          extensions: Array.from({ length: 70 }, (_, n) =>
            extension(`2.5.29.${n + 40}`, octets(Buffer.from([1]))),
          ),
        },
      }),
    ),
    // Over time
    cannot(
      "crl-superseded",
      "TDX: PCK list with a lower number than before",
      tdxAfter({ pckCrl: { number: 9 } }, { pckCrl: { number: 8 } }),
    ),
    cannot(
      "crl-superseded",
      "TDX: root list with a lower number than before",
      tdxAfter({ rootCrl: { number: 9 } }, { rootCrl: { number: 8, from: mintedAt - dayMs } }),
    ),
    cannot(
      "crl-superseded",
      "SNP: list with a lower number than before",
      snpAfter({ crl: { number: 9 } }, { crl: { number: 8 } }),
    ),
    cannot(
      "crl-superseded",
      "TDX: list without a number, older than before",
      tdxAfter(
        { pckCrl: { number: 0, from: mintedAt - dayMs } },
        { pckCrl: { number: 0, from: mintedAt - 2 * dayMs } },
      ),
    ),
    good(
      "TDX: list with a higher number than before, and an earlier day",
      tdxAfter(
        { pckCrl: { number: 8, from: mintedAt - dayMs } },
        { pckCrl: { number: 9, from: mintedAt - 2 * dayMs } },
      ),
    ),
    good(
      "TDX: list of a stranger's CA, which no later one has to follow",
      tdxAfter({ ca: { signer: stranger.root }, pckCrl: { number: 99 } }, {}),
    ),
    cannot(
      "collateral-superseded",
      "TDX: TCB info with a lower evaluation number than before",
      tdxAfter({ tcbInfo: (info) => void (info.tcbEvaluationDataNumber = 99) }, {}),
    ),
    alarm("crl-signature", "SNP: list of another signer", snp({ crl: { signer: amd.ask } })),
    cannot(
      "crl-malformed",
      "SNP: list with bytes behind it",
      snp(
        {},
        {
          amd: (all) => ({
            ...all,
            crl: Buffer.concat([all.crl ?? Buffer.alloc(0), Buffer.from([5, 0])]),
          }),
        },
      ),
    ),
    fail(
      "revoked",
      "TDX: PCK on an old list",
      tdx({ pckCrl: { serials: [1, 0x555], until: mintedAt - dayMs } }),
    ),
    fail("revoked", "SNP: ARK revoked", snp({ crl: { serials: [0x020000] } })),
    good("SNP: another serial revoked", snp({ crl: { serials: [0x020001, 0] } })),
    cannot(
      "crl-not-yet-valid",
      "SNP: list of the future",
      snp({ crl: { from: mintedAt + dayMs } }),
    ),
    cannot(
      "crl-not-yet-valid",
      "TDX: root list of the future",
      tdx({ rootCrl: { from: mintedAt + dayMs } }),
    ),

    // What Intel says of a platform
    alarm("collateral-chain", "TDX: TCB signer revoked", tdx({ rootCrl: { serials: [4] } })),
    alarm(
      "collateral-chain",
      "TDX: TCB info under another root",
      tdx({}, { intel: (all) => ({ ...all, tcbInfo: strangers.endorsements.tcbInfo }) }),
    ),
    alarm(
      "collateral-chain",
      "TDX: TCB signer of another issuer's name",
      tdx({ signer: { issuerOrganization: "Elsewhere" } }),
    ),
    alarm(
      "collateral-chain",
      "TDX: TCB signer signed by another key",
      tdx({ signer: { signer: intel.ca } }),
    ),
    alarm("collateral-chain", "TDX: TCB signer that is a CA", tdx({ signer: { ca: {} } })),
    cannot(
      "collateral-malformed",
      "TDX: QE identity without a chain",
      tdx(
        {},
        {
          intel: (all) => ({ ...all, qeIdentity: { body: all.qeIdentity?.body ?? "", chain: "" } }),
        },
      ),
    ),
    cannot(
      "collateral-malformed",
      "TDX: TCB info that is no answer",
      tdx(
        {},
        { intel: (all) => ({ ...all, tcbInfo: { body: "{}", chain: all.tcbInfo?.chain ?? "" } }) },
      ),
    ),
    cannot(
      "collateral-expired",
      "TDX: TCB signer expired",
      tdx({ signer: { until: mintedAt - dayMs } }),
    ),
    cannot(
      "collateral-kind",
      "TDX: TCB info of enclaves",
      tdx({ tcbInfo: (info) => void (info.id = "SGX") }),
    ),
    cannot(
      "collateral-kind",
      "TDX: TCB info of another version",
      tdx({ tcbInfo: (info) => void (info.version = 4) }),
    ),
    cannot(
      "collateral-kind",
      "TDX: identity of another enclave",
      tdx({ qeIdentity: (it) => void (it.id = "QE") }),
    ),
    cannot(
      "collateral-kind",
      "TDX: a level that can't be read is not skipped",
      tdx({ tcbInfo: (info) => void Object.assign(info.tcbLevels[0] ?? {}, { tcb: {} }) }),
    ),
    cannot(
      "collateral-not-yet-valid",
      "TDX: QE identity of the future",
      tdx({ qeIdentity: (it) => void (it.issueDate = "2026-06-01T00:00:01Z") }),
    ),

    // The quoting enclave
    fail(
      "qe-report-signature",
      "TDX: QE report changed",
      genuine("tdx-v4-uptodate", { evidence: flipped(48 + 584 + 4 + 134 + 260) }),
    ),
    fail(
      "qe-report-signature",
      "TDX: QE report's signature changed",
      genuine("tdx-v4-uptodate", { evidence: flipped(48 + 584 + 4 + 134 + 400) }),
    ),
    fail(
      "qe-report-data",
      "TDX: attestation key changed",
      genuine("tdx-v4-uptodate", { evidence: flipped(48 + 584 + 4 + 64 + 5) }),
    ),
    fail("qe-report-data", "TDX: QE vouches for another key", tdx({ enclave: invert(320) })),
    fail(
      "qe-report-data",
      "TDX: QE vouches with something behind the hash",
      tdx({ enclave: setTo(352, 1) }),
    ),
    good("TDX: authentication data of 100 bytes", tdx({ authData: Buffer.alloc(100, 9) })),
    fail("qe-identity", "TDX: QE of another signer", tdx({ enclave: setTo(128, 1) })),
    fail("qe-identity", "TDX: QE of another product", tdx({ enclave: setTo(256, 1) })),
    fail("qe-identity", "TDX: QE with other MISCSELECT", tdx({ enclave: setTo(16, 1) })),
    fail("qe-identity", "TDX: QE with other attributes", tdx({ enclave: setTo(49, 1) })),
    fail(
      "qe-debug",
      "TDX: QE with debugging on, which its identity allows",
      tdx({
        enclave: setTo(48, 0x13),
        qeIdentity: (it) => void (it["attributesMask"] = "F9FFFFFFFFFFFFFF0000000000000000"),
      }),
    ),
    fail(
      "quote-signature",
      "TDX: header changed",
      genuine("tdx-v4-uptodate", { evidence: flipped(30) }),
    ),

    // Module and levels
    good("TDX: first module, measured with the platform", tdx({ body: setTo(1, 0) })),
    fail(
      "tcb-status",
      "TDX: first module of an old level",
      tdx({ body: (body) => void body.fill(Buffer.from([4, 0]), 0, 2) }),
      { says: "OutOfDate" },
    ),
    good(
      "TDX: third module, whose SVN is measured by its own levels",
      tdx({ body: (body) => void body.fill(3, 0, 2) }),
    ),
    fail(
      "tdx-module",
      "TDX: signer that Intel says is another",
      tdx({
        tcbInfo: (info) =>
          void Object.assign(info.tdxModuleIdentities[0] ?? {}, { mrsigner: "1".repeat(96) }),
      }),
    ),
    fail("tcb-status", "TDX: PCESVN below", tdx({ svns: svns({ 16: 12 }) }), {
      says: "OutOfDate (INTEL-SA-00001): update the PCE (PCE 12, needs 13 as of 2024-11-13)",
    }),
    fail("tcb-status", "TDX: eighth SVN below", tdx({ svns: svns({ 7: 4 }) }), {
      says: "OutOfDate",
    }),
    fail("tcb-status", "TDX: microcode below", tdx({ body: setTo(2, 2) }), { says: "OutOfDate" }),
    fail("tcb-not-supported", "TDX: PCESVN below every level", tdx({ svns: svns({ 16: 11 }) }), {
      says: "the platform is below every level that Intel supports: update the PCE (PCE 11, needs 13 as of 2024-11-13)",
    }),
    fail("tcb-not-supported", "TDX: module below every level", tdx({ body: setTo(0, 1) }), {
      says: "the TDX module is below every level that Intel supports: update the TDX module (TDX Module 1, needs 6 as of 2024-11-13)",
    }),
    fail(
      "tcb-not-supported",
      "TDX: microcode below every level, and above it a level that is revoked",
      tdx({
        body: setTo(2, 1),
        tcbInfo: (info) =>
          void info.tcbLevels.unshift({
            ...structuredClone(info.tcbLevels[0] ?? { tcb: {}, tcbDate: "" }),
            tcbDate: "2025-01-01T00:00:00Z",
            tcbStatus: "Revoked",
          }),
      }),
      {
        says: "the platform is below every level that Intel supports: update the microcode (TDX Late Microcode Update 1, needs 3 as of 2024-11-13)",
      },
    ),
    fail(
      "tcb-not-supported",
      "TDX: module below every level when the VM started, and current by now",
      tdx({ isTd15: true, body: setTo(0, 1) }),
      {
        says: "the TDX module that the VM started with (restart the VM) is below every level that Intel supports",
      },
    ),
    fail("tcb-not-supported", "TDX: QE below every level", tdx({ enclave: setTo(258, 1) }), {
      says: "the quoting enclave is below every level that Intel supports: update the quoting enclave (QE 1, needs 4 as of 2024-11-13)",
    }),
    fail(
      "tcb-revoked",
      "TDX: module's level revoked",
      tdx({
        tcbInfo: (info) =>
          void Object.assign(info.tdxModuleIdentities[0]?.tcbLevels[0] ?? {}, {
            tcbStatus: "Revoked",
          }),
      }),
      { says: "the TDX module" },
    ),
    fail(
      "tcb-revoked",
      "TDX: QE's level revoked",
      tdx({
        qeIdentity: (it) => void Object.assign(it.tcbLevels[0] ?? {}, { tcbStatus: "Revoked" }),
      }),
      { says: "the quoting enclave" },
    ),
    fail(
      "tcb-status-unknown",
      "TDX: QE's word unknown",
      tdx({ qeIdentity: (it) => void Object.assign(it.tcbLevels[0] ?? {}, { tcbStatus: "Fine" }) }),
    ),
    fail(
      "tcb-status-unknown",
      "TDX: a relaunch is no word of a level",
      tdx({
        tcbInfo: (info) =>
          void Object.assign(info.tcbLevels[0] ?? {}, { tcbStatus: "TDRelaunchAdvised" }),
      }),
    ),
    fail(
      "tcb-status",
      "TDX: configuration needed and module out of date",
      tdx({
        body: setTo(0, 5),
        tcbInfo: (info) =>
          void Object.assign(info.tcbLevels[0] ?? {}, { tcbStatus: "ConfigurationNeeded" }),
      }),
      { says: "OutOfDateConfigurationNeeded" },
    ),
    fail(
      "tcb-status",
      "TDX: hardening needed",
      tdx({
        tcbInfo: (info) =>
          void Object.assign(info.tcbLevels[0] ?? {}, { tcbStatus: "SWHardeningNeeded" }),
      }),
      { says: "SWHardeningNeeded" },
    ),
    fail(
      "tcb-status",
      "TDX: module updated while the VM ran",
      tdx({ isTd15: true, body: setTo(0, 5) }),
      { says: "TDRelaunchAdvised (INTEL-SA-00002), at its level of 2024-11-13" },
    ),
    fail(
      "tcb-status",
      "TDX: module worse now than at the start",
      tdx({ isTd15: true, body: setTo(584, 5) }),
      {
        says: "OutOfDate (INTEL-SA-00002): update the TDX module (TDX Module 5, needs 6 as of 2024-11-13)",
      },
    ),
    fail(
      "tcb-status",
      "TDX: module out of date at both times",
      tdx({
        isTd15: true,
        body: (body) => {
          body[0] = 5;
          body[584] = 5;
        },
      }),
      {
        says: "OutOfDate (INTEL-SA-00002): update the TDX module (TDX Module 5, needs 6 as of 2024-11-13)",
      },
    ),
    fail(
      "tdx-module",
      "TDX: module of an unknown version now",
      tdx({ isTd15: true, body: setTo(585, 9) }),
    ),
    {
      ...good(
        "TDX: relaunch advised, named by policy",
        tdx(
          { isTd15: true, body: setTo(0, 5) },
          {
            policy: {
              statuses: [
                { status: "TDRelaunchAdvised", advisories: ["INTEL-SA-00002"], until: mintedAt },
              ],
            },
          },
        ),
      ),
      note: "restart it",
    },

    // What is in a quote
    good("TDX: SEPT_VE_DISABLE off", tdx({ body: setTo(123, 0) }), "SEPT_VE_DISABLE is off"),
    good("TDX: LASS on", tdx({ body: setTo(123, 0x18) })),
    cannot(
      "quote-layout",
      "TDX: certificates' size is wrong",
      genuine("tdx-v4-uptodate", { evidence: flipped(48 + 584 + 4 + 134 + 450 + 32 + 2) }),
    ),
    cannot(
      "evidence-too-long",
      "more than 64 KiB",
      tdx({}, { evidence: (bytes) => Buffer.concat([bytes, Buffer.alloc(65_536)]) }),
    ),
    cannot("evidence-missing", "no raw report", tdx({}, { encoded: () => undefined })),
    good(
      "base64 of URLs, in lines",
      tdx({}, { encoded: (bytes) => bytes.toString("base64url").replaceAll(/(.{76})/g, "$1\n") }),
    ),
    cannot(
      "quote-body",
      "TDX: body of an unknown kind",
      genuine("tdx-v5-uptodate", { evidence: flipped(48, 3) }),
    ),
    cannot("evidence-unknown", "no byte", snp({}, { evidence: () => Buffer.alloc(0) })),
    cannot(
      "evidence-td-report",
      "TDX: a report that nobody made a quote of",
      tdx({}, { evidence: () => Buffer.concat([Buffer.from([0x81]), Buffer.alloc(1_023)]) }),
    ),
    good("base16", tdx({}, { encoded: (bytes) => bytes.toString("hex") })),

    // The chain of a report
    fail("chain-leaf", "SNP: VCEK on P-256", snp({ vek: { keys: intel.pck } })),
    fail("chain-leaf", "SNP: VCEK that is a CA", snp({ vek: { ca: {} } })),
    fail("chain-signature", "SNP: ARK that didn't sign itself", snp({ ark: { signer: amd.ask } })),
    fail("chain-signature", "SNP: ASK signed by itself", snp({ ask: { signer: amd.ask } })),
    fail("chain-signature", "SNP: VCEK signed by the ARK", snp({ vek: { signer: amd.ark } })),
    fail("chain-signature", "SNP: VCEK that AMD didn't sign", genuine("snp-forged-vcek")),
    fail(
      "chain-algorithm",
      "SNP: VCEK signed in another way",
      snp({ vek: { signing: ecdsaSigning, signer: intel.root } }),
    ),
    fail(
      "chain-not-ca",
      "SNP: ASK that may not sign certificates",
      snp({ ask: { ca: { usage: 0x02 } } }),
    ),
    fail(
      "chain-name",
      "SNP: ARK of another name",
      snp({
        ark: { subject: "ARK", issuer: "ARK" },
        ask: { issuer: "ARK" },
        crl: { issuer: "ARK" },
      }),
    ),
    fail(
      "chain-name",
      "SNP: ASK of another name",
      snp({ ask: { subject: "SEV" }, vek: { issuer: "SEV" } }),
    ),
    fail("chain-name", "SNP: VCEK of another name", snp({ vek: { subject: "SEV-OTHER" } })),
    fail(
      "chain-root",
      "SNP: VCEK whose issuer's name differs in its bytes",
      snp({ vek: { issuerOrganization: "Elsewhere" } }),
    ),
    fail(
      "chain-malformed",
      "SNP: VCEK that is no certificate",
      snp({}, { amd: (all) => ({ ...all, vek: Buffer.from("3000", "hex") }) }),
    ),

    // What binds a report to its chip
    fail(
      "vek-extension",
      "SNP: structure of another product",
      snp({ extensions: { "1": integer(1) } }),
      { says: "structure" },
    ),
    fail("vek-extension", "SNP: no chip ID", snp({ extensions: { "4": undefined } }), {
      says: "chip ID",
    }),
    fail("vek-extension", "SNP: no microcode", snp({ extensions: { "3.8": undefined } }), {
      says: "microcode",
    }),
    fail(
      "vek-extension",
      "SNP: chip ID in an OCTET STRING",
      snp({ extensions: { "4": octets(Buffer.alloc(64, 0xc1)) } }),
      { says: "chip ID" },
    ),
    fail(
      "product",
      "SNP: certificate of another product",
      snp({ extensions: { "2": tlv(0x16, Buffer.from("Milan-B0")) } }),
    ),
    fail("product", "SNP: processor of another product", snp({ report: setTo(0x189, 1) })),
    cannot(
      "product-unknown",
      "SNP: processor of an unknown kind",
      snp({ report: setTo(0x189, 0xff) }),
    ),
    good(
      "SNP: Siena under Genoa's roots",
      snp({ extensions: { "2": tlv(0x16, Buffer.from("Siena")) } }),
    ),
    ...["3.1", "3.2", "3.3", "3.8"].map((end) =>
      fail(
        "vcek-tcb",
        `SNP: certificate of another version (${end})`,
        snp({ extensions: { [end]: integer(99) } }),
      ),
    ),
    fail(
      "vcek-tcb",
      "SNP: certificate of another FMC (Turin)",
      snp({ product: "Turin", extensions: { "3.9": integer(99) } }),
    ),
    good("SNP: Turin", snp({ product: "Turin" })),
    fail(
      "vcek-hwid",
      "SNP: more chip ID than the certificate has (Turin)",
      snp({ product: "Turin", report: setTo(0x1a0 + 20, 1) }),
    ),
    fail("vcek-tcb", "SNP: genuine VCEK of another Turin", genuine("snp-wrong-vcek-turin")),
    good(
      "SNP: current firmware above what is certified",
      snp({
        report: (report) => {
          report[0x38 + 7] = 99;
          report[0x1e0 + 7] = 99;
        },
      }),
    ),
    good("SNP: version 2, which names no processor", snp({ report: setTo(0, 2) })),
    good("SNP: VCEK in the table behind the report", (verifier) => {
      let vek: Buffer = Buffer.alloc(0);
      return snp(
        {},
        {
          amd: (all) => ((vek = all.vek ?? vek), { crl: all.crl }),
          evidence: (bytes) => {
            const entry = Buffer.alloc(48);
            entry.write("63da758de6644564adc5f4b93be8accd", 0, "hex");
            entry.writeUInt32LE(48, 16);
            entry.writeUInt32LE(vek.length, 20);
            return Buffer.concat([bytes, entry, vek]);
          },
        },
      )(verifier);
    }),

    // What a report says of itself
    fail(
      "report-policy",
      "SNP: bit of the policy that is always set",
      snp({ report: setTo(0x0a, 1) }),
    ),
    fail("report-unsigned", "SNP: signed by no key", snp({ report: setTo(0x48, 7 << 2) })),
    cannot(
      "report-signer",
      "SNP: signed by a key of an unknown kind",
      snp({ report: setTo(0x48, 3 << 2) }),
    ),
    good(
      "SNP: fields of its owner, which nobody pins",
      snp({ report: (bytes) => void bytes.fill(1, 0xc0, 0x140) }),
      "Neither pinned nor checked: HOST_DATA, ID_KEY_DIGEST, AUTHOR_KEY_DIGEST",
    ),
    good(
      "TDX: fields of its owner, which nobody pins",
      tdx({ body: (bytes) => void bytes.fill(1, 184, 328) }),
      "Neither pinned nor checked: MRCONFIGID, MROWNER, MROWNERCONFIG",
    ),
    good("SNP: bits of the platform that nobody knows", snp({ report: setTo(0x41, 0xff) })),
    fail("known-broken-product", "SNP: Milan", snp({ product: "Milan" })),
    good(
      "SNP: Milan, named by policy",
      snp({ product: "Milan" }, { policy: { allows: ["known-broken-product"] } }),
      "Milan",
    ),
    good(
      "SNP: VMPL 1, which policy says",
      snp({ report: setTo(0x30, 1) }, { policy: { vmpl: 1 } }),
    ),
    good(
      "SNP: service names the measurement",
      snp({}, { context: { service: { verified: true, measurement: "ab".repeat(48) } } }),
      "isn't used",
    ),
  ];
}
