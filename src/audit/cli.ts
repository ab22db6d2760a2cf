import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { messageOf, UserError } from "../errors.ts";
import { type Log, silentLog } from "../log.ts";
import { connectRedis, createKeys, type Keys, type RedisClient } from "../redis.ts";
import { type Anchor, openAnchors, readAnchor } from "./anchors.ts";
import { findSigningKey } from "./checkpoint.ts";
import { eraseRecords } from "./erase.ts";
import { exportAudit, exportText } from "./export.ts";
import { verdictLines } from "./render.ts";
import { createTrail } from "./trail.ts";
import type { Verdict } from "./verdict.ts";
import { verifyExport } from "./verify-export.ts";
import { verifyAudit } from "./verify.ts";

export const auditUsage = `usage: node src/main.ts audit <what>
  verify [file]                 is the trail (or an export) as it was sealed? names the first bad record
      --anchor <seq:hash>       a head that was posted or logged, to compare with; may be repeated
      --from <seq>              begin here, and take what is before for granted
  export [file]                 the whole sealed trail as one JSON file, or to the terminal
  head                          the end of the chain, as seq:hash
  erase <id…> --who <you> --why <reason>
                                takes the content of these records away for good; the chain still verifies`;

/** 0 all is well, 1 the chain is bad, 2 it can't be told. */
export type AuditExitCode = 0 | 1 | 2;

export interface AuditTerminal {
  /** Not needed to verify a file. */
  redisUrl: string | undefined;
  namespace?: string;
  /** Where a process keeps its anchors and its key. */
  dataDir?: string;
  /** Writes to the terminal; what it gets ends with a line break. */
  write: (text: string) => void;
  log?: Log;
}

/** `audit …` in a terminal. Never throws: what went wrong is written and is exit code 2. */
export async function runAudit(
  words: readonly string[],
  terminal: AuditTerminal,
): Promise<AuditExitCode> {
  try {
    const { values, positionals } = parseWords(words);
    const [verb, ...rest] = positionals;
    const anchors = (values.anchor ?? []).map(anchorOf);
    if (verb === "verify" && rest[0] !== undefined) {
      return report(verifyExport(readFileSync(rest[0], "utf8"), { anchors }), terminal);
    }
    const from = values.from === undefined ? 1 : wholeNumber(values.from);
    switch (verb) {
      case "verify":
        return await withRedis(terminal, (redis, key) => {
          const kept = terminal.dataDir ? openAnchors(terminal.dataDir, key.namespace).all : [];
          return verify(redis, key, [...kept, ...anchors], from, terminal);
        });
      case "export":
        return await withRedis(terminal, (redis, key) => toFile(redis, key, rest[0], terminal));
      case "head":
        return await withRedis(terminal, (redis, key) => head(redis, key, terminal));
      case "erase":
        return await withRedis(terminal, (redis, key) =>
          erase(redis, key, rest, { who: values.who, why: values.why }, terminal),
        );
      default:
        throw new UserError(
          verb ? `There is no "audit ${verb}"` : "What about the audit trail?",
          auditUsage,
        );
    }
  } catch (error) {
    const hint = error instanceof UserError && error.hint ? `\n${error.hint}` : "";
    terminal.write(`${messageOf(error)}${hint}\n`);
    return 2;
  }
}

function parseWords(words: readonly string[]) {
  return parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      anchor: { type: "string", multiple: true },
      from: { type: "string" },
      who: { type: "string" },
      why: { type: "string" },
    },
  });
}

function anchorOf(text: string): Anchor {
  const anchor = readAnchor(text);
  if (!anchor) throw new UserError(`${text} is not a head`, "it looks like 120:9f86d081…");
  return anchor;
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UserError(`${text} is not the number of a record`);
}

async function withRedis(
  { redisUrl, namespace, log = silentLog() }: AuditTerminal,
  act: (redis: RedisClient, key: Keys) => Promise<AuditExitCode>,
): Promise<AuditExitCode> {
  if (!redisUrl) throw new UserError("REDIS_URL is missing", "set it to the address of Redis");
  const redis = await connectRedis(redisUrl, "commands", log);
  try {
    return await act(redis, createKeys(namespace));
  } finally {
    redis.disconnect();
  }
}

async function verify(
  redis: RedisClient,
  key: Keys,
  anchors: readonly Anchor[],
  from: number,
  terminal: AuditTerminal,
): Promise<AuditExitCode> {
  return report(await verifyAudit({ redis, key, anchors, from }), terminal);
}

function report(verdict: Verdict, { write }: AuditTerminal): AuditExitCode {
  write(`${verdictLines(verdict).join("\n")}\n`);
  return verdict.is === "intact" ? 0 : verdict.is === "broken" ? 1 : 2;
}

/** Who took a copy stands in the trail too; the copy itself ends before that. */
async function toFile(
  redis: RedisClient,
  key: Keys,
  file: string | undefined,
  { write, dataDir }: AuditTerminal,
): Promise<AuditExitCode> {
  const signingKey = dataDir ? findSigningKey(dataDir) : undefined;
  const exported = await exportAudit({ redis, key, signingKey });
  const { from, to } = exported;
  await createTrail(redis, key).append({ what: "audit-export", who: "terminal", from, to });
  if (file === undefined) write(exportText(exported));
  else {
    writeFileSync(file, exportText(exported), { mode: 0o600 });
    write(`${exported.records.length.toLocaleString("en")} records written to ${file}\n`);
  }
  return 0;
}

async function head(
  redis: RedisClient,
  key: Keys,
  { write }: AuditTerminal,
): Promise<AuditExitCode> {
  const seal = await createTrail(redis, key).head();
  write(seal ? `${seal.seq}:${seal.hash}\n` : "Nothing is sealed yet.\n");
  return seal ? 0 : 2;
}

async function erase(
  redis: RedisClient,
  key: Keys,
  ids: readonly string[],
  { who, why }: { who: string | undefined; why: string | undefined },
  { write }: AuditTerminal,
): Promise<AuditExitCode> {
  if (ids.length === 0 || !who || !why)
    throw new UserError("Which records, who and why?", auditUsage);
  const { erased } = await eraseRecords({ redis, key, ids, who, why });
  write(`${erased} erased. Redis forgets them on disk at its next BGREWRITEAOF or BGSAVE.\n`);
  return 0;
}
