import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { codeOf } from "../../errors.ts";
import { wayOut } from "../hold-directory.ts";
import { asSentence, type Finding, ill, well } from "./finding.ts";

export interface DirectoryFacts {
  folder: string;
  /** Undefined: not there yet. */
  owner: number | undefined;
  user: number;
  /** The code of the error that a file in it met; that of making the directory where it isn't there. */
  problem: string | undefined;
  freeBytes: number;
}

/** Leaves nothing behind, and doesn't disturb a process that has the directory. */
export function lookAtDirectory(folder: string): DirectoryFacts {
  const isThere = existsSync(folder);
  const nearest = isThere ? folder : nearestAbove(folder);
  const { bavail, bsize } = statfsSync(nearest);
  return {
    folder,
    owner: isThere ? statSync(folder).uid : undefined,
    user: process.getuid?.() ?? 0,
    problem: isThere ? problemOfWriting(folder) : problemOfMaking(nearest),
    freeBytes: bavail * bsize,
  };
}

export function nearestAbove(folder: string): string {
  const above = path.dirname(folder);
  return existsSync(above) ? above : nearestAbove(above);
}

function problemOfWriting(folder: string): string | undefined {
  try {
    const probe = mkdtempSync(path.join(folder, "doctor-"));
    try {
      writeFileSync(path.join(probe, "probe"), "a line like those of the ledger\n", {
        flush: true,
      });
    } finally {
      rmSync(probe, { recursive: true });
    }
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

/** The code of the error that making a directory in `above` would meet. */
export function problemOfMaking(above: string): string | undefined {
  try {
    if (!statSync(above).isDirectory()) return "ENOTDIR";
    accessSync(above, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

const leastBytes = 100 * 1024 * 1024;

export function judgeDirectory(facts: DirectoryFacts): readonly Finding[] {
  const { folder, owner, user, problem, freeBytes } = facts;
  const whose =
    owner === undefined || owner === user
      ? ""
      : `; it belongs to user ${owner}, this is user ${user}`;
  const free = `${Math.floor(freeBytes / 1024 / 1024)} MiB free`;
  if (problem !== undefined)
    return [
      ill(
        `DATA_DIR: ${folder} can't be ${owner === undefined ? "made" : "written"} (${problem})${whose}`,
        asSentence(wayOut(problem, user)),
      ),
    ];
  return [
    well(`${folder}: can be ${owner === undefined ? "made" : "written"}${whose}`),
    freeBytes >= leastBytes
      ? well(free)
      : ill(`DATA_DIR: ${free}`, "Make room: without it nothing is sent, and all changes freeze."),
  ];
}
