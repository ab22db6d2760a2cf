import type { Patch } from "../faults/stage/patch.ts";

/** One check of the verifier taken away, and the case that must notice. */
export interface Mutation extends Patch {
  /** The name of a case. */
  noticedBy: string;
}

const chain = "src/verifier/certificate.ts";
const lists = "src/verifier/revocation.ts";
const quote = "src/verifier/tdx/verify-quote.ts";
const collateral = "src/verifier/tdx/collateral.ts";
const levels = "src/verifier/tdx/tcb.ts";
const report = "src/verifier/snp/verify-report.ts";
const reportBytes = "src/verifier/snp/report.ts";
const time = "src/verifier/examination.ts";

type Row = readonly [file: string, noticedBy: string, was: string, is: string];

const rows: readonly Row[] = [
  // Chains
  [
    chain,
    "TDX: issuer's name differs in its bytes",
    'if (!certificate.issuer.equals(issuer.subject)) return "chain-name";',
    "",
  ],
  [chain, "PCK CA without CA bit", "if (!issuer.basic?.isCa || ", "if ("],
  [chain, "TDX: CA that may not sign certificates", "!issuer.usage?.maySignCertificates", "false"],
  [
    chain,
    "TDX: root above which no CA may stand",
    'if (issuer.basic.pathLength < below) return "chain-not-ca";',
    "",
  ],
  [
    chain,
    "TDX: PCK signed in another way",
    'if (!scheme.isAlgorithm(certificate.algorithm)) return "chain-algorithm";',
    "",
  ],
  [
    chain,
    "TDX: PCK signed by another key",
    "return scheme.isSigned(certificate.tbs, issuer.publicKey, certificate.signature)",
    "return true",
  ],
  [chain, "TDX: PCK with another algorithm inside", "|| !inner.whole.equals(algorithm.whole)", ""],
  [
    chain,
    "TDX: PCK with a critical extension that nobody knows",
    "if (isCritical && oid !== basicConstraints && oid !== keyUsage) return undefined;",
    "",
  ],
  [
    quote,
    "sandbox root of Intel in production",
    'if (!root.der.equals(roots.intel)) exam.add("chain-root", "the PCK certificate");',
    "",
  ],
  [quote, "TDX: chain with a certificate more", "|| all.length !== 3", ""],
  [quote, "TDX: PCK of another name", 'leaf.commonName === "Intel SGX PCK Certificate"', "true"],
  [quote, "TDX: CA of another name", "pckCaOf(ca) !== undefined", "true"],
  [quote, "TDX: root of another name", 'root.commonName === "Intel SGX Root CA"', "true"],
  [
    quote,
    "TDX: PCK that is a CA",
    "if (leaf.basic?.isCa || leaf.usage?.maySignCertificates)",
    "if (false)",
  ],
  [
    chain,
    "PCK expired",
    'exam.lasts("cert", commonName, { from: notBefore, until: notAfter });',
    "",
  ],
  [time, "VCEK not valid yet", "if (!(this.now >= from))", "if (false)"],
  [time, "VCEK expired", "else if (!(this.now <= until))", "else if (false)"],
  [time, "clock that is no number", "Number.isFinite(now) && now >= earliestClock", "true"],
  // Lists
  [lists, "TDX: PCK list of another issuer's name", "!name.whole.equals(issuer.subject) || ", ""],
  [lists, "TDX: CA that may not sign lists", "|| !issuer.usage?.maySignLists", ""],
  [lists, "TDX: list signed in another way", "!scheme.isAlgorithm(algorithm.whole) || ", ""],
  [
    lists,
    "PCK list of another signer",
    "|| !scheme.isSigned(tbs.whole, issuer.publicKey, bits)",
    "",
  ],
  [
    lists,
    "TDX: list that covers only some",
    "extensions?.every((each) => !isTrue(partsOf(each)?.[1])) ?? false",
    "true",
  ],
  [
    lists,
    "SNP: list with bytes behind it",
    "readValue(der, tags.sequence)) ?? [];\n  const bits",
    "{ tag: 0x30, content: der.subarray(4, 4 + der.readUInt16BE(2)), whole: der }) ?? [];\n  const bits",
  ],
  [
    lists,
    "TDX: list larger than any is",
    'if (der.length > mostBytes) return "crl-malformed";',
    "",
  ],
  [
    chain,
    "TDX: certificate larger than any is",
    "if (der.length > mostBytes) return undefined;",
    "",
  ],
  [
    "src/verifier/der.ts",
    "TDX: certificate with more parts than any has",
    "values.length < most ? valueAt(bytes, at) : undefined",
    "valueAt(bytes, at)",
  ],
  [lists, "TDX: list of thousands", "partsOf(list, tags.sequence, Infinity)", "partsOf(list)"],
  [
    lists,
    "TDX: PCK list with a lower number than before",
    'if (of !== undefined) exam.isNewest("crl", description, of, { number, from });',
    "",
  ],
  [
    lists,
    "TDX: root list with a lower number than before",
    'if (of !== undefined) exam.isNewest("crl", description, of, { number, from });',
    "",
  ],
  [
    quote,
    "TDX: list of a stranger's CA, which no later one has to follow",
    "root.der.equals(roots.intel) && linkProblem(ca, root, intelScheme, 1) === undefined",
    "true",
  ],
  [
    report,
    "SNP: list with a lower number than before",
    "const of = `list of ${product}, ${kind}`;",
    "const of = undefined;\n  void kind;",
  ],
  [
    collateral,
    "TDX: TCB info with a lower evaluation number than before",
    'exam.isNewest("collateral", description, of, { number: BigInt(value.evaluation), from });',
    "",
  ],
  [
    time,
    "TDX: list with a higher number than before, and an earlier day",
    "return edition.number < other.number;",
    "return edition.from < other.from;",
  ],
  [
    time,
    "TDX: list without a number, older than before",
    "return edition.from < other.from;",
    "return false;",
  ],
  [lists, "PCK list missing", 'exam.add("crl-missing", description) ?? none', "none"],
  [lists, "PCK list of another signer", "exam.add(list, description) ?? none", "none"],
  [lists, "PCK list expired", 'exam.lasts("crl", description, { from, until });', ""],
  [
    quote,
    "PCK CA revoked",
    'if (revoked.has(ca.serial.toString("hex"))) exam.add("revoked", ca.commonName);',
    "",
  ],
  [
    quote,
    "PCK revoked",
    'if (revokedPcks.has(leaf.serial.toString("hex"))) exam.add("revoked", leaf.commonName);',
    "",
  ],
  [lists, "AMD's list missing", 'exam.add("crl-missing", description) ?? none', "none"],
  [lists, "AMD's list with a bit flipped", "exam.add(list, description) ?? none", "none"],
  [lists, "AMD's list expired", 'exam.lasts("crl", description, { from, until });', ""],
  [
    report,
    "ASK revoked",
    'if (revoked.has(serial.toString("hex"))) exam.add("revoked", commonName);',
    "void serial, commonName;",
  ],
  [report, "SNP: ARK revoked", "of [issuer, ark])", "of [issuer])"],
  // Collateral
  [collateral, "TCB info signed by a PCK", '|| signer.commonName !== "Intel SGX TCB Signing"', ""],
  [collateral, "TDX: TCB info under another root", "|| !root?.der.equals(roots.intel)", "|| !root"],
  [collateral, "TDX: TCB signer that is a CA", "signer.basic?.isCa || ", ""],
  [
    collateral,
    "TDX: TCB signer signed by another key",
    "return linkProblem(signer, root, intelScheme, 0) === undefined ? signer : undefined;",
    "return signer;",
  ],
  [
    collateral,
    "TDX: TCB signer revoked",
    'if (revoked.has(signer.serial.toString("hex"))) return exam.add("collateral-chain", description);',
    "",
  ],
  [
    collateral,
    "TCB info edited",
    '|| !isSignedRaw("sha256", Buffer.from(text, "utf8"), key, bytes)',
    "",
  ],
  [
    collateral,
    "TDX: TCB signer expired",
    'exam.lasts("collateral", `the signer of ${description}`, certified, { isRenewed: false });',
    "",
  ],
  [collateral, "TDX: TCB info of enclaves", "header.id !== id || ", ""],
  [collateral, "TDX: TCB info of another version", "|| header.version !== version", ""],
  [collateral, "TCB info expired", 'exam.lasts("collateral", description, { from, until });', ""],
  // Platform
  [
    quote,
    "TDX: FMSPC differs",
    'if (fmspc !== info.fmspc) exam.add("fmspc", `${info.fmspc}, not ${fmspc}`);',
    "",
  ],
  [
    quote,
    "TDX: PCEID differs",
    'if (pceId !== info.pceId) exam.add("pceid", `${info.pceId}, not ${pceId}`);',
    "",
  ],
  [
    quote,
    "TDX: QE report's signature changed",
    '|| !isSignedRaw("sha256", enclave.signed, pckKey, enclaveSignature)',
    "",
  ],
  [
    quote,
    "TDX: QE vouches for another key",
    'if (!enclave.reportData.equals(vouched)) exam.add("qe-report-data");',
    "",
  ],
  [
    quote,
    "TDX: QE vouches with something behind the hash",
    "enclave.reportData.equals(vouched)",
    "enclave.reportData.subarray(0, 32).equals(vouched.subarray(0, 32))",
  ],
  [
    quote,
    "TDX: authentication data of 100 bytes",
    "sha256(point, authData)",
    "sha256(point, authData.subarray(0, 32))",
  ],
  [quote, "TDX: QE of another signer", "if (mrSigner !== identity.mrsigner)", "if (false)"],
  [quote, "TDX: QE of another product", "if (productId !== identity.isvprodid)", "if (false)"],
  [
    quote,
    "TDX: QE with other MISCSELECT",
    "if (!isMasked(miscSelect, identity.miscselectMask, identity.miscselect))",
    "if (false)",
  ],
  [
    quote,
    "TDX: QE with other attributes",
    "if (!isMasked(attributes, identity.attributesMask, identity.attributes))",
    "if (false)",
  ],
  [
    quote,
    "TDX: QE with debugging on, which its identity allows",
    "if ((enclave.attributes[0] ?? 0) & 2)",
    "if (false)",
  ],
  [
    quote,
    "bit flipped in the quote's MRTD",
    '|| !isSignedRaw("sha256", signed, key, signature)',
    "",
  ],
  // Module and levels
  [
    levels,
    "TDX module of an unknown version",
    "if (version !== 0 && !identity) return",
    "if (false) return",
  ],
  [
    levels,
    "TDX module of another signer",
    "if (mrSignerSeam !== mrsigner) return",
    "if (false) return",
  ],
  [
    levels,
    "TDX module with attributes",
    "if (seamAttributes !== noBits || attributes !== noBits)",
    "if (false)",
  ],
  [levels, "TDX module out of date", "level.svn <= svn", "level.svn <= 255"],
  [
    levels,
    "TDX: eighth SVN below",
    "sgx.every(({ svn }, at) => (pck.svns[at] ?? -1) >= svn) &&",
    "",
  ],
  [levels, "TDX: PCESVN below", "pck.pceSvn >= pceSvn &&", ""],
  [levels, "TDX: microcode below", "|| (svns[at] ?? -1) >= svn", "|| true"],
  [
    levels,
    "TDX: third module, whose SVN is measured by its own levels",
    "(version > 0 && at < 2) || ",
    "",
  ],
  [levels, "TDX: first module of an old level", "version > 0 && at < 2", "at < 2"],
  [levels, "quoting enclave out of date", "svn <= enclaveSvn", "svn <= 255"],
  [
    levels,
    "platform's level revoked",
    'if (level.status === "Revoked") return problem("tcb-revoked", about);',
    "",
  ],
  [
    levels,
    "no level met",
    "levels.find((candidate) => isMet(candidate))",
    "levels.find((candidate) => isMet(candidate)) ?? levels[0]",
  ],
  [levels, "TDX: QE's word unknown", "|| !areKnown", ""],
  [
    levels,
    "status word unknown",
    "const status = tcbStatuses.find((word) => word === platform);",
    'const status = tcbStatuses.find((word) => word === platform) ?? "UpToDate";\n  if (status === "UpToDate") return status;',
  ],
  [
    levels,
    "TDX: configuration needed and module out of date",
    'return status.startsWith("Configuration") ? "OutOfDateConfigurationNeeded" : "OutOfDate";',
    "return status;",
  ],
  [
    levels,
    "TDX: module worse now than at the start",
    "return { ...worse(launch, current), advisories: union(launch, current) };",
    "return launch;",
  ],
  [
    levels,
    "TDX: module updated while the VM ran",
    '|| current.status.startsWith("OutOfDate")',
    "|| true",
  ],
  [
    levels,
    "TDX: module of an unknown version now",
    'if ("reason" in current) return current;',
    'if ("reason" in current) return launch;',
  ],
  // SNP
  [report, "SNP: ARK of another name", "ark.commonName === `ARK-${product}`", "true"],
  [chain, "SNP: ARK of another name", 'if (!isNamed) exam.add("chain-name", commonName);', ""],
  [chain, "SNP: ARK that didn't sign itself", "[root, root, 0, areNamed[2]],", ""],
  [chain, "SNP: ASK signed by itself", "[ca, root, 1, areNamed[1]],", ""],
  [chain, "SNP: VCEK that AMD didn't sign", "[leaf, ca, 0, areNamed[0]],", ""],
  [report, "SNP: VCEK that is a CA", "if (leaf.basic || leaf.usage)", "if (false)"],
  [
    chain,
    "VCEK expired",
    'exam.lasts("cert", commonName, { from: notBefore, until: notAfter });',
    "",
  ],
  [
    report,
    "SNP: VCEK on P-256",
    'if (!key) exam.add("chain-leaf", `the ${facts.signer}`);\n  else if (!',
    "if (key && !",
  ],
  [
    report,
    "bit flipped in the report's measurement",
    'else if (!isSignedRaw("sha384", signed, key, signature))',
    "else if (false)",
  ],
  [report, "VLEK where the report says VCEK", "if (facts.signer !== vek.kind)", "if (false)"],
  [report, "SNP: certificate of another product", "vekProduct !== product || ", ""],
  [
    report,
    "SNP: processor of another product",
    "|| (reported !== undefined && reported !== product)",
    "",
  ],
  [report, "SNP: processor of an unknown kind", "if (facts.cpuid && !reported)", "if (false)"],
  [report, "VCEK of another TCB", "if (certified !== value)", "if (false)"],
  [report, "VCEK of another chip", 'facts.chipId !== vek.hwid.padEnd(128, "0")', "false"],
  [
    report,
    "SNP: more chip ID than the certificate has (Turin)",
    'facts.chipId !== vek.hwid.padEnd(128, "0")',
    "!facts.chipId.startsWith(vek.hwid)",
  ],
  [report, "no VCEK", 'exam.add("vek-missing", needed) ?? reported', "reported"],
  [
    report,
    "SNP: structure of another product",
    'if (structVersion !== (productName === "Turin" ? 1 : 0))\n    return problem("vek-extension", "structure");',
    "",
  ],
  [
    reportBytes,
    "SNP: bit of the policy that is always set",
    "if ((policy & (1n << 17n)) === 0n)",
    "if (false)",
  ],
  [
    reportBytes,
    "SNP: signed by no key",
    'if (key === maskedSigner) problems.push(problem("report-unsigned"));',
    "",
  ],
  [reportBytes, "padding of s not zero", "[0x2e8 + 48, 0x330],", ""],
  [reportBytes, "padding of r not zero", "[0x2a0 + 48, 0x2e8],", ""],
  [reportBytes, "bytes behind the signature not zero", "[0x330, reportBytes],", ""],
  [reportBytes, "report of version 6", "version > 5", "version > 6"],
];

export const mutations: readonly Mutation[] = rows.map(([file, noticedBy, was, is]) => ({
  file,
  noticedBy,
  was,
  is,
}));
