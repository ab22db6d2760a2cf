import { rm, writeFile } from "node:fs/promises";
import type { ClientCertificate } from "../config/compute-tls.ts";
import { UserError } from "../errors.ts";
import { counted } from "../messages/markdown.ts";
import { withRedis } from "../redis/redis.ts";
import { privateFile, readRegularLines, readRegularSync } from "../regular-file.ts";
import { type Given, UsageError, printableLine, runProgram } from "../text/terminal.ts";
import { type Anchor, openAnchors } from "../audit/anchors.ts";
import { cutTrail, lastSealBefore } from "../audit/archive.ts";
import { erasePersonAndReport } from "./erase-person.ts";
import { eraseRecords } from "../audit/erase.ts";
import { type ExcerptVerdict, excerptLines, isExcerpt, verifyExcerpt } from "../audit/excerpt.ts";
import { exportAudit, isExportStart, verifyExport, verifyExportLines } from "../audit/export.ts";
import { verdictLines } from "../audit/render.ts";
import { findSigningKey } from "../audit/signing-key.ts";
import { Trail } from "../audit/trail.ts";
import { type OnVerified, type TrailVerdict, verifyAudit } from "../audit/verify.ts";

export const auditUsage = `usage: node gatehouse.mjs audit <what>
  verify [file]                 check that the trail (or an export) is as sealed; names the first bad record
      --anchor <seq:hash>       a posted or logged head to compare with; repeatable
      --against <export>        for an excerpt, like the file of /gatehouse night: the export to compare it with;
                                without it, the trail in Redis
  export [file]                 export the whole sealed trail as JSON, to a file or the terminal
  head                          the end of the chain, as seq:hash
  archive <file> --before <YYYY-MM-DD> --who <you> --why <reason>
                                exports the whole trail, verifies the file, then cuts off what is older than that day
                                (90 days at least); from then on verify begins after it, by a signed marker
  erase <id…> --who <you> --why <reason>
                                permanently erases their contents; the chain still verifies
  erase --person <ID> [--name <name>…] --who <you> --why <reason>
                                removes someone who left from the trail and from all else in Redis: a pseudonym takes the
                                place of the ID, and of each name; run it again if it was interrupted
  record-gap --who <you> --why <reason>
                                after a restored backup: records what is lost, by the heads kept here and each --anchor;
                                from then on verify names it, with who and why, and ends with 3`;

/** The largest file that is read as a whole: an excerpt, or an export that was formatted anew. */
const mostBytes = 512 * 1024 * 1024;

interface AuditTerminal {
  /** Resolves with how to reach the trail. It isn't asked in order to verify a file. */
  access: () => AuditAccess | Promise<AuditAccess>;
  /** Gets text that ends with a line break. */
  write: (text: string) => void;
  /** Gets what isn't a result. */
  complain?: (text: string) => void;
}

interface AuditAccess {
  redisUrl: string | undefined;
  /** REDIS_NAMESPACE. */
  namespace?: string | undefined;
  /** The client certificate for Redis over TLS. */
  redisCertificate?: ClientCertificate | undefined;
  /** The folder where a process keeps its anchors and its key. */
  dataDir?: string | undefined;
}

const word = { type: "string" } as const;
const flags = {
  anchor: { ...word, multiple: true },
  against: word,
  who: word,
  why: word,
  before: word,
  person: word,
  name: { ...word, multiple: true },
} as const;
type Values = Given<typeof flags>["values"];

/**
 * `audit …` in a terminal. Resolves with 0 intact, 1 broken, 2 can't tell, 3 intact except for
 * losses that someone recorded, 64 wrong arguments.
 */
export function runAudit(words: readonly string[], terminal: AuditTerminal): Promise<number> {
  const { write, complain = write } = terminal;
  const program = { usage: auditUsage, options: flags, failed: 2, complain };
  return runProgram(words, program, async ({ values, positionals: [verb, ...rest] }) => {
    const anchors = (values.anchor ?? []).map(anchorOf);
    const file = verb === "verify" ? rest[0] : undefined;
    const isExport = file !== undefined && (await beginsAsExport(file));
    const text = file === undefined || isExport ? undefined : readText(file);
    const { against } = values;
    const excerpt = text !== undefined && isExcerpt(text) ? text : undefined;
    if (against !== undefined && excerpt === undefined)
      throw new UsageError("--against is for an excerpt of the trail");
    if (excerpt !== undefined && against !== undefined) {
      const verify = (onVerified: OnVerified) => verifyFile(against, anchors, onVerified);
      return reportExcerpt(await verifyExcerpt(excerpt, verify), terminal);
    }
    if (file !== undefined && excerpt === undefined)
      return report(await verifyFile(file, anchors), terminal);
    if (!["verify", "export", "head", "archive", "erase", "record-gap"].includes(verb ?? ""))
      throw new UsageError(
        verb ? `There is no "audit ${verb}"` : "Say what to do with the audit trail",
      );
    const access = await terminal.access();
    const { redisUrl, dataDir, namespace } = access;
    if (!redisUrl && excerpt !== undefined)
      throw new UserError(
        "An excerpt is compared with the whole trail",
        "add --against and an export of the trail, or set REDIS_URL",
      );
    if (!redisUrl) throw new UserError("REDIS_URL is missing", "set it to the address of Redis");
    const how = { namespace, certificate: () => access.redisCertificate };
    return withRedis(redisUrl, how, async (redis, key) => {
      const trail = new Trail(redis, key);
      if (verb === "export") return toFile(trail, rest[0], { ...terminal, dataDir });
      if (verb === "head") return head(trail, { write, complain });
      if (verb === "archive") return archive(trail, rest[0], values, { ...terminal, dataDir });
      if (verb === "erase" && values.person === undefined)
        return erase(trail, rest, values, terminal);
      const kept = dataDir ? openAnchors(dataDir, trail.key.namespace).all : [];
      const verify = (onVerified?: OnVerified) =>
        verifyAudit({
          redis,
          key,
          anchors: [...kept, ...anchors],
          ...(onVerified && { onVerified }),
        });
      if (excerpt !== undefined)
        return reportExcerpt(await verifyExcerpt(excerpt, verify), terminal);
      const { person, name: names = [], who, why } = values;
      if (verb === "erase" && person !== undefined) {
        if (!who || !why || rest.length > 0)
          throw new UsageError("Name --person, --who, and --why, and no records");
        return erasePersonAndReport(trail, { person, names, who, why }, { verify, write });
      }
      const verdict = await verify();
      if (verb === "record-gap") return recordGap(trail, verdict, values, terminal);
      return report(verdict, terminal);
    });
  });
}

/** Parses a head as it is posted to the channel: `120:9f86…`. */
function anchorOf(text: string): Anchor {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? [];
  if (seq && hash) return { seq: Number(seq), hash, at: 0 };
  throw new UserError(`${text} is not a head`, "it looks like 120:9f86d081…");
}

/** Verifies an export: line by line, or as a whole where its lines aren't those of Gatehouse. */
async function verifyFile(
  file: string,
  anchors: readonly Anchor[],
  onVerified?: OnVerified,
): Promise<TrailVerdict> {
  if (!(await beginsAsExport(file))) return verifyExport(readText(file), anchors, onVerified);
  return verifyExportLines(() => readRegularLines(file), anchors, onVerified);
}

async function beginsAsExport(file: string): Promise<boolean> {
  let start = "";
  for await (const line of readRegularLines(file)) {
    if (start !== "") return isExportStart(`${start}${line}\n`);
    start = `${line}\n`;
  }
  return false;
}

const readText = (file: string) => readRegularSync(file, mostBytes).toString("utf8");

function report(verdict: TrailVerdict, { write }: Pick<AuditTerminal, "write">): number {
  write(`${verdictLines(verdict).join("\n")}\n`);
  if (verdict.standing === "intact") return verdict.recorded.length > 0 ? 3 : 0;
  return verdict.standing === "broken" ? 1 : 2;
}

/**
 * Reports an excerpt, then the trail that it was compared with. A broken trail proves nothing after
 * its break, and a recorded loss isn't hidden by acts that are proven.
 */
function reportExcerpt(verdict: ExcerptVerdict, terminal: AuditTerminal): number {
  terminal.write(`${excerptLines(verdict).map(printableLine).join("\n")}\n`);
  const whole = report(verdict.whole, terminal);
  if (verdict.standing === "broken" || whole === 1) return 1;
  return verdict.standing === "unsure" ? 2 : whole;
}

/** Writes an export. The export is recorded in the trail; the file ends before that record. */
async function toFile(
  trail: Trail,
  file: string | undefined,
  { write, dataDir }: Pick<AuditTerminal, "write"> & Pick<AuditAccess, "dataDir">,
): Promise<number> {
  const signingKey = dataDir ? findSigningKey(dataDir) : undefined;
  const exported = await exportAudit({ redis: trail.redis, key: trail.key, signingKey });
  const { from, to, text } = exported;
  await trail.append({ what: "audit-export", who: "terminal", from, to });
  if (file === undefined) for await (const part of text) write(part);
  else {
    await writeFile(file, text, privateFile);
    write(`${counted(exported.written, "record")} written to ${file}\n`);
  }
  return 0;
}

const fromDay = /^\d{4}-\d{2}-\d{2}$/;

/** Nothing is cut off unless the file has it and verifies. */
async function archive(
  trail: Trail,
  file: string | undefined,
  { before = "", who, why }: Values,
  { write, dataDir }: Pick<AuditTerminal, "write"> & Pick<AuditAccess, "dataDir">,
): Promise<number> {
  const at = fromDay.test(before) ? Date.parse(before) : Number.NaN;
  if (file === undefined || Number.isNaN(at) || !who || !why)
    throw new UsageError("Name a new file, --before (YYYY-MM-DD), --who, and --why");
  const signingKey = dataDir ? findSigningKey(dataDir) : undefined;
  if (!signingKey)
    throw new UserError(
      "There is no signing key here, and the cut must be signed",
      "run it with the DATA_DIR of a gateway",
    );
  const last = await lastSealBefore(trail, at);
  const exported = await exportAudit({ redis: trail.redis, key: trail.key, signingKey });
  await writeFile(file, exported.text, { ...privateFile, flag: "wx", flush: true });
  const kept = dataDir ? openAnchors(dataDir, trail.key.namespace).all : [];
  let isInFile = false;
  const verdict = await verifyFile(file, kept, ({ seq, hash }) => {
    isInFile ||= seq === last.seq && hash === last.hash;
  });
  if (verdict.standing !== "intact" || !isInFile) {
    const code = report(verdict, { write });
    await rm(file);
    write("Nothing was cut off, and the file was removed: find out what is wrong first.\n");
    return code || 1;
  }
  await cutTrail(trail, { last, signingKey, who, why });
  const many = counted(exported.written, "record");
  write(`${many} written to ${file} and verified. Those up to ${last.seq} are cut off: keep it.\n`);
  return 0;
}

async function head(
  trail: Trail,
  { write, complain }: Required<Pick<AuditTerminal, "write" | "complain">>,
): Promise<number> {
  const seal = await trail.head();
  if (seal) write(`${seal.seq}:${seal.hash}\n`);
  else complain("Nothing is sealed yet.\n");
  return seal ? 0 : 2;
}

async function erase(
  trail: Trail,
  ids: readonly string[],
  { who, why }: Values,
  { write }: AuditTerminal,
): Promise<number> {
  if (ids.length === 0 || !who || !why) throw new UsageError("Name the records, --who, and --why");
  const { erased } = await eraseRecords({ redis: trail.redis, key: trail.key, ids, who, why });
  write(`${erased} erased. Redis forgets them on disk at its next BGREWRITEAOF or BGSAVE.\n`);
  return 0;
}

/**
 * Records losses. Only what is missing can be recorded: a changed record isn't a loss, and the
 * trail stays broken.
 */
async function recordGap(
  trail: Trail,
  { problems }: TrailVerdict,
  { who, why }: Values,
  { write }: AuditTerminal,
): Promise<number> {
  if (!who || !why) throw new UsageError("Say --who and --why");
  const other = problems.find(({ loss }) => loss === undefined);
  if (other)
    throw new UserError(
      `Record ${other.seq}: ${other.sentence} (${other.kind})`,
      "A restored backup doesn't explain that, so nothing was recorded: find out who wrote to Redis.",
    );
  const lost = problems.flatMap(({ loss }) => loss ?? []);
  if (lost.length === 0) {
    write("No loss is left to record.\n");
    return 0;
  }
  await trail.append({ what: "audit-gap-recorded", who, why, lost });
  write(`Recorded: ${problems.map(({ sentence }) => sentence).join("; ")}.\n`);
  return 0;
}
