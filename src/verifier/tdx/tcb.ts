import type { Certificate } from "../certificate.ts";
import { type Der, numberOf, octetsOf, oidOf, partsOf, readValue, tags } from "../der.ts";
import { type Problem, problem, type Shortfall } from "../reasons.ts";
import type { Level, QeIdentity, TcbInfo } from "./collateral.ts";
import type { TdxFacts } from "./quote.ts";

/** Intel's status words, from the best to the worst of those that can be accepted. */
export const tcbStatuses = [
  "UpToDate",
  "SWHardeningNeeded",
  "ConfigurationNeeded",
  "ConfigurationAndSWHardeningNeeded",
  "TDRelaunchAdvised",
  "TDRelaunchAdvisedConfigurationNeeded",
  "OutOfDate",
  "OutOfDateConfigurationNeeded",
] as const;
export type TcbStatus = (typeof tcbStatuses)[number];

/** The combined TCB status of platform, TDX module, and quoting enclave. */
export interface TcbStanding {
  status: TcbStatus;
  /** Every advisory of the levels that were matched, without duplicates. */
  advisories: readonly string[];
  /** The date of the platform's level. An older one is worse. */
  date: string;
  /** The number of Intel's TCB recovery by which this is measured. */
  evaluation: number;
  /**
   * The parts that are older than Intel's newest level. They explain the status and decide nothing.
   */
  short?: readonly Shortfall[];
}

type Levels = { tcbInfo: TcbInfo; qeIdentity: QeIdentity };

/**
 * The words that a platform's own level can have. The two words about a relaunch are derived from
 * two levels and never appear in a level.
 */
const platformStatuses: readonly string[] = tcbStatuses.filter((word) => !word.startsWith("TD"));

/**
 * The level of Intel's TCB info that the platform matches, merged with those of the TDX module and
 * the quoting enclave. A TD 1.5 has two versions: the one at the VM's start and the current one.
 * When only the one at the start is out of date, the host is patched, and the VM should be started
 * again.
 */
export function standing(
  facts: TdxFacts,
  pck: PckFacts,
  enclaveSvn: number,
  { tcbInfo, qeIdentity }: Levels,
): TcbStanding | Problem {
  const enclave = firstOf(
    qeIdentity.tcbLevels,
    ({ svn }) => svn <= enclaveSvn,
    "the quoting enclave",
  );
  if ("reason" in enclave) return enclave;
  const launch = levelAt(facts, Buffer.from(facts.teeTcbSvn, "hex"), pck, tcbInfo, enclave);
  if (facts.teeTcbSvn2 === undefined) return launch;
  const current = levelAt(facts, Buffer.from(facts.teeTcbSvn2, "hex"), pck, tcbInfo, enclave);
  if ("reason" in current) return current;
  if ("reason" in launch)
    return { ...launch, about: `${launch.about} that the VM started with (restart the VM)` };
  const wasOutOfDate = launch.status.startsWith("OutOfDate");
  if (!wasOutOfDate || current.status.startsWith("OutOfDate"))
    return { ...worse(launch, current), advisories: union(launch, current) };
  const status = current.status.startsWith("Configuration")
    ? "TDRelaunchAdvisedConfigurationNeeded"
    : "TDRelaunchAdvised";
  return { ...launch, status, advisories: union(launch, current) };
}

const union = (...levels: readonly { advisories: readonly string[] }[]) => [
  ...new Set(levels.flatMap(({ advisories }) => advisories)),
];

const worse = (a: TcbStanding, b: TcbStanding) =>
  tcbStatuses.indexOf(b.status) > tcbStatuses.indexOf(a.status) ? b : a;

/** The first level that matches counts, because levels are sorted from the best to the worst. */
function firstOf<T extends Level>(
  levels: readonly T[],
  isMet: (level: T) => boolean,
  about: string,
): T | Problem {
  const level = levels.find((candidate) => isMet(candidate));
  if (!level) return problem("tcb-not-supported", about);
  if (level.status === "Revoked") return problem("tcb-revoked", about);
  return level;
}

function levelAt(
  facts: TdxFacts,
  svns: Buffer,
  pck: PckFacts,
  info: TcbInfo,
  enclave: Level,
): TcbStanding | Problem {
  const module = moduleLevel(facts, svns, info);
  if ("reason" in module) return module;
  const version = svns[1] ?? 0;
  const platform = firstOf(
    info.tcbLevels,
    ({ sgx, pceSvn, tdx }) =>
      sgx.every(({ svn }, at) => (pck.svns[at] ?? -1) >= svn) &&
      pck.pceSvn >= pceSvn &&
      // The first two components are the TDX module's. When there are several versions of the
      // module, it has levels of its own.
      tdx.every(({ svn }, at) => (version > 0 && at < 2) || (svns[at] ?? -1) >= svn),
    "the platform",
  );
  if ("reason" in platform) return platform;
  const status = merged(platform.status, [module.status, enclave.status]);
  if (status === undefined) {
    const words = [platform.status, module.status, enclave.status].join(", ");
    return problem("tcb-status-unknown", words.slice(0, 200));
  }
  return {
    status,
    advisories: union(platform, module, enclave),
    date: platform.date,
    evaluation: info.evaluation,
  };
}

/** The newest level without a problem. */
const newestOf = <T extends Level>(levels: readonly T[]): T | undefined =>
  levels.find(({ status }) => status === "UpToDate") ?? levels[0];

/** The parts of a platform, as it runs now, that are older than Intel's newest levels. */
export function shortOf(
  { teeTcbSvn, teeTcbSvn2 = teeTcbSvn }: TdxFacts,
  pck: PckFacts,
  enclaveSvn: number,
  { tcbInfo, qeIdentity }: Levels,
): readonly Shortfall[] {
  const svns = [...Buffer.from(teeTcbSvn2, "hex")];
  const [svn = 0, version = 0] = svns;
  const module = version > 0 && tcbInfo.tdxModuleIdentities.find(({ id }) => id === idOf(version));
  const level = newestOf(tcbInfo.tcbLevels);
  const needed = level ? [...level.sgx, ...level.tdx] : [];
  const short: Shortfall[] = [];
  const compare = (
    part: string,
    updateTarget: string,
    has: number,
    needs = 0,
    since = level?.date ?? "",
  ) => has < needs && short.push({ part, has, needs, since, by: updateTarget });
  for (const [at, has] of [...pck.svns, ...svns].entries()) {
    const { type = "", category = "", svn: needs } = needed[at] ?? {};
    const part = type.slice(0, 40) || `${at < 16 ? "SGX" : "TDX"} component ${(at % 16) + 1}`;
    const hasOwnLevels = module && (at === 16 || at === 17);
    if (!hasOwnLevels) compare(part, bringerOf(type, category), has, needs);
  }
  compare("PCE", "PCE", pck.pceSvn, level?.pceSvn);
  const ofModule = module ? newestOf(module.tcbLevels) : undefined;
  const ofEnclave = newestOf(qeIdentity.tcbLevels);
  compare("TDX Module", "TDX module", svn, ofModule?.svn, ofModule?.date);
  compare("QE", "quoting enclave", enclaveSvn, ofEnclave?.svn, ofEnclave?.date);
  return short;
}

/**
 * The component that updates a part, by Intel's type and category for it, which older TCB info
 * lacks.
 */
function bringerOf(type: string, category: string): string {
  if (category === "BIOS") return "BIOS";
  if (/module/i.test(type)) return "TDX module";
  return /microcode/i.test(type) ? "microcode" : type.slice(0, 40) || "firmware";
}

const idOf = (version: number) => `TDX_${version.toString(16).padStart(2, "0").toUpperCase()}`;

const noBits = "0".repeat(16);

/**
 * The level of the TDX module. Whichever version is loaded, Intel must have signed it. Version 0
 * has no levels of its own.
 */
function moduleLevel(
  { mrSignerSeam, seamAttributes }: TdxFacts,
  svns: Buffer,
  { tdxModule, tdxModuleIdentities }: TcbInfo,
): Level | Problem {
  const [svn = 0, version = 0] = svns;
  const id = idOf(version);
  const identity =
    version === 0 ? undefined : tdxModuleIdentities.find((candidate) => candidate.id === id);
  if (version !== 0 && !identity) return problem("tdx-module", `version ${id}`);
  const { mrsigner, attributes } = identity ?? tdxModule;
  if (mrSignerSeam !== mrsigner) return problem("tdx-module", "its signer");
  if (seamAttributes !== noBits || attributes !== noBits)
    return problem("tdx-module", "its attributes");
  if (!identity) return { status: "UpToDate", date: "", advisories: [] };
  return firstOf(identity.tcbLevels, (level) => level.svn <= svn, "the TDX module");
}

/** Undefined when one of the words is unknown. */
function merged(platform: string, others: readonly string[]): TcbStatus | undefined {
  const status = tcbStatuses.find((word) => word === platform);
  const areKnown = others.every((word) => word === "UpToDate" || word === "OutOfDate");
  if (status === undefined || !platformStatuses.includes(platform) || !areKnown) return undefined;
  if (!others.includes("OutOfDate") || status.startsWith("OutOfDate")) return status;
  return status.startsWith("Configuration") ? "OutOfDateConfigurationNeeded" : "OutOfDate";
}

/**
 * Facts about a platform that Intel certifies besides its key (the SGX extension of the PCK
 * certificate).
 */
export type PckFacts = Exclude<ReturnType<typeof readPck>, Problem>;

const extension = "1.2.840.113741.1.13.1";

/** The facts of the extension in hex, or the name of the one that is missing. */
export function readPck({ extensions }: Certificate) {
  const all = pairsOf(readValue(extensions.get(extension), tags.sequence));
  if (!all) return problem("pck-extension", "platform");
  const tcb = pairsOf(all.get(`${extension}.2`));
  const svns = Array.from({ length: 16 }, (_, n) => numberOf(tcb?.get(`${extension}.2.${n + 1}`)));
  const pceSvn = numberOf(tcb?.get(`${extension}.2.17`));
  const known = svns.filter((svn) => svn !== undefined);
  if (known.length !== 16 || pceSvn === undefined)
    return problem("pck-extension", "security versions");
  const fmspc = octetsOf(all.get(`${extension}.4`));
  const pceId = octetsOf(all.get(`${extension}.3`));
  if (fmspc?.length !== 6) return problem("pck-extension", "FMSPC");
  if (pceId?.length !== 2) return problem("pck-extension", "PCEID");
  return { fmspc: fmspc.toString("hex"), pceId: pceId.toString("hex"), svns: known, pceSvn };
}

/** Parses a sequence of pairs of OID and value. Undefined when an OID occurs twice. */
function pairsOf(sequence: Der | undefined): ReadonlyMap<string, Der> | undefined {
  const pairs = new Map<string, Der>();
  const parts = partsOf(sequence);
  if (!parts) return undefined;
  for (const part of parts) {
    const [type, value, ...more] = partsOf(part) ?? [];
    const oid = oidOf(type);
    if (oid === undefined || !value || more.length > 0 || pairs.has(oid)) return undefined;
    pairs.set(oid, value);
  }
  return pairs;
}
