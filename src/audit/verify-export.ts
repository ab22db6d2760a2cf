import type { Anchor } from "./anchors.ts";
import { isSignature } from "./checkpoint.ts";
import {
  type AuditExport,
  digestOfExport,
  type ExportedRecord,
  exportShape,
  signedExportText,
} from "./export-shape.ts";
import { judgeChain, type Problem, type Verdict } from "./verdict.ts";
import { createWalk, type Step } from "./walk.ts";

/**
 * Verifies an export without Redis and without a network. `json` is the file's text or what it parses to. `trustedKeys`
 * (base64, SPKI): then only signatures by these count, and the file must bear one of them.
 */
export function verifyExport(
  json: unknown,
  known: { anchors?: readonly Anchor[]; trustedKeys?: readonly string[] } = {},
): Verdict {
  const file = parseExport(json);
  if (!file) return broken(0, "this isn't an audit export, or it was changed beyond reading");
  const { anchors = [], trustedKeys } = known;
  const begun = { seq: file.from - 1, hash: file.before };
  const walk = createWalk({
    chain: file.chain,
    before: begun,
    anchors,
    checkpoints: file.checkpoints,
    ...(trustedKeys ? { trustedKeys } : {}),
  });
  for (const record of file.records) walk.step(stepOf(record));
  const found = walk.end(file.to);
  const first = found.problem ?? fileProblem(file, begun, trustedKeys);
  const unsealed = { count: 0, oldestMs: 0 };
  return judgeChain({ ...found, ...(first ? { problem: first } : {}), unsealed });
}

function parseExport(json: unknown): AuditExport | undefined {
  try {
    const value: unknown = typeof json === "string" ? JSON.parse(json) : json;
    const parsed = exportShape.safeParse(value);
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

function stepOf({ without, record, salt, ...seal }: ExportedRecord): Step {
  const { id, at } = seal;
  return {
    seal,
    entry: record === undefined ? undefined : { id, at, record },
    salt,
    isWithheld: without === "withheld" && record === undefined,
  };
}

/** What the chain itself can't tell: everything beside the records. */
function fileProblem(
  file: AuditExport,
  begun: { seq: number; hash: string },
  trustedKeys: readonly string[] | undefined,
): Problem | undefined {
  const { digest, signature, ...rest } = file;
  const { signedBy } = file;
  const last = file.records.at(-1) ?? begun;
  const isHead = file.head.seq === last.seq && file.head.hash === last.hash && file.to === last.seq;
  if (!isHead) return problem(file.from, "the head is not the end of its records");
  if (digestOfExport(rest) !== digest) return problem(file.from, "the file was changed");
  if (signedBy !== null || signature !== undefined) {
    const isRight = isSignature(signedExportText(digest), signedBy ?? "", signature ?? "");
    if (!isRight) return problem(file.from, "the file's signature is wrong");
  }
  if (!trustedKeys || (signedBy !== null && trustedKeys.includes(signedBy))) return undefined;
  return problem(file.from, "no key that is trusted here has signed the file");
}

function problem(seq: number, says: string): Problem {
  return { seq, kind: "file", says };
}

function broken(seq: number, says: string): Verdict {
  return {
    is: "broken",
    problem: problem(seq, says),
    sealed: 0,
    erased: 0,
    withheld: 0,
    unsealed: { count: 0, oldestMs: 0 },
    anchors: 0,
    signed: { seq: 0, keys: [] },
  };
}
