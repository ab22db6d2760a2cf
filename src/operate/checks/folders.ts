import { randomBytes } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import type { Policy } from "../../config/policy-file.ts";
import { codeOf } from "../../errors.ts";
import { privateFile } from "../../regular-file.ts";
import { asSentence, type Finding, ill, note, well } from "../../messages/finding.ts";

const ourUser = () => process.getuid?.() ?? 0;

/** The code of the error that `act` throws. Undefined when it throws none. */
function problemOf(act: () => unknown): string | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

/** Types of file systems in which the kernel shows itself: proc, sysfs, cgroup, and the like. */
const kernelTypes: ReadonlySet<number> = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x1cd1, 0x64626720, 0x74726163, 0x73636673, 0x62656570,
]);

/** Stands where a code of an error does: no error says so, and `mkdir` never returns there. */
const ofKernel = "it shows the kernel, and keeps no files";

/** Why no folder can be made or used there, whoever asks. Undefined when files are kept there. */
export function problemOfPlace(folder: string): string | undefined {
  const { type } = statfsSync(existsSync(folder) ? folder : nearestAbove(folder));
  return kernelTypes.has(type) ? ofKernel : undefined;
}

/** Writes a file there in the same way as the ledger, and removes it. */
export function writeProbe(folder: string): void {
  const file = path.join(folder, `lock-${randomBytes(8).toString("hex")}.probe`);
  try {
    writeFileSync(file, "a line like those of the ledger\n", { ...privateFile, flush: true });
  } finally {
    rmSync(file, { force: true });
  }
}

const problemOfAccess = (folder: string) =>
  problemOf(() => accessSync(folder, constants.W_OK | constants.X_OK));

/**
 * The code of the error that would prevent creating a folder. Undefined when it could be created.
 */
const problemOfMaking = (folder: string) => {
  const above = nearestAbove(folder);
  const ofPlace = problemOfPlace(above);
  if (ofPlace !== undefined) return ofPlace;
  return statSync(above).isDirectory() ? problemOfAccess(above) : "ENOTDIR";
};

function nearestAbove(folder: string): string {
  const above = path.dirname(folder);
  return existsSync(above) ? above : nearestAbove(above);
}

/** The next step when a directory can't be created or written, by the code of the error. */
export function wayOut(code: string, user = ourUser()): string {
  const file = "a part of its path is a file: name a directory";
  const missing =
    "a part of its path is missing, or is a link to nothing: make it, or name another directory";
  const right = `let user ${user} write there (chown ${user}), or name another directory; in a container, give it a volume`;
  const ways: Readonly<Record<string, string>> = {
    ENOSPC: "free space on its disk, or inodes (df -h, df -i), or name a directory on another one",
    EDQUOT: `raise the disk quota of user ${user}, or free what counts to it`,
    EROFS:
      "mount its file system writable, or name another directory; in a container, give it a volume",
    ENOTDIR: file,
    EEXIST: file,
    ENOENT: missing,
    ELOOP: missing,
    EIO: "its disk fails: the kernel's log says how; name a directory on another one",
    EACCES: right,
    EPERM: right,
    [ofKernel]: "name a directory on a disk; in a container, give it a volume",
  };
  return ways[code] ?? "name a directory that this process may write, on a local disk with space";
}

type FoundInDirectory = ReturnType<typeof lookAtDirectory>;
type OnlyBroken = "isHidden" | "ledgerProblem";
export type DirectoryFacts = Omit<FoundInDirectory, OnlyBroken> &
  Partial<Pick<FoundInDirectory, OnlyBroken>>;

/**
 * Looks at DATA_DIR. It leaves nothing behind, and doesn't disturb a process that uses the
 * directory.
 */
export function lookAtDirectory(folder: string) {
  const unreachable = problemOf(() => statSync(folder)) === "EACCES";
  const isThere = existsSync(folder);
  const ledger = path.join(folder, "ledger");
  const { bavail, bsize } = statfsSync(isThere ? folder : nearestAbove(folder));
  return {
    folder,
    /** Undefined when the directory doesn't exist yet. */
    owner: isThere ? statSync(folder).uid : undefined,
    user: ourUser(),
    /**
     * True when a folder above can't be entered by this user, so that nobody can tell whether it
     * exists.
     */
    isHidden: unreachable,
    /**
     * The code of the error that writing a file in it met, or that would prevent creating it when
     * it doesn't exist.
     */
    problem:
      problemOfPlace(folder) ??
      (isThere ? problemOf(() => writeProbe(folder)) : problemOfMaking(folder)),
    /**
     * The error code for the ledger's folder inside, if it exists: a folder that another user
     * created belongs to that user.
     */
    ledgerProblem: existsSync(ledger) ? problemOf(() => writeProbe(ledger)) : undefined,
    freeBytes: bavail * bsize,
  };
}

const leastBytes = 100 * 1024 * 1024;

export function judgeDirectory(facts: DirectoryFacts): readonly Finding[] {
  const { folder, owner, user, isHidden, problem, ledgerProblem, freeBytes } = facts;
  const isOurs = owner === undefined || owner === user;
  const whose = isOurs ? "" : `; it belongs to user ${owner}, this is user ${user}`;
  const done = owner === undefined ? "made" : "written";
  if (isHidden)
    return [
      ill(
        `DATA_DIR: ${folder} can't be reached (EACCES): user ${user} may not enter a folder above it`,
        `Let user ${user} enter each folder of its path (chmod o+x), or name another directory.`,
      ),
    ];
  if (problem === undefined && ledgerProblem !== undefined)
    return [
      ill(
        `DATA_DIR: ${path.join(folder, "ledger")} can't be written (${ledgerProblem})`,
        ["EACCES", "EPERM"].includes(ledgerProblem)
          ? `Another user ran Gatehouse there: give it all to user ${user} (chown -R ${user} ${folder}).`
          : asSentence(wayOut(ledgerProblem, user)),
      ),
    ];
  if (problem !== undefined) {
    const problemWords = `DATA_DIR: ${folder} can't be ${done} (${problem})${whose}`;
    return [ill(problemWords, asSentence(wayOut(problem, user)))];
  }
  const free = `${Math.floor(freeBytes / 1024 / 1024)} MiB free`;
  return [
    well(`${folder}: can be ${done}${whose}`),
    freeBytes >= leastBytes
      ? well(free)
      : ill(`DATA_DIR: ${free}`, "Make room: without it nothing is sent, and all changes freeze."),
  ];
}

export type FolderFacts = NonNullable<ReturnType<typeof lookAtFolder>>;

/**
 * Looks at the folder of endorsements, if the policy names one. `beside` is the folder of the
 * policy file.
 */
export function lookAtFolder({ endorsements, refresh }: Policy["attestation"], beside = "") {
  if (endorsements === undefined) return undefined;
  const folder = path.resolve(beside, endorsements);
  let isEmpty = false;
  const problem = problemOf(() => (isEmpty = readdirSync(folder).length === 0));
  const isFilled = refresh !== undefined;
  const filling = problem === "ENOENT" ? problemOfMaking : problemOfAccess;
  return {
    folder,
    user: ourUser(),
    /** Whether attestation.refresh fills it. */
    isFilled,
    isEmpty,
    /** The code of the error that reading it met. */
    problem,
    /**
     * The code of the error that would prevent attestation.refresh from writing into it or creating
     * it.
     */
    problemOfFilling: isFilled ? filling(folder) : undefined,
  };
}

const fill =
  "fill it (node gatehouse.mjs attestation import), or let attestation.refresh fill it; docs/attestation.md names the files";

/** Judges whether the folder can be used from here. */
export function judgeFolder(facts: FolderFacts | undefined): readonly Finding[] {
  if (facts === undefined) return [];
  const { folder, user, isFilled, isEmpty, problem, problemOfFilling } = facts;
  const place = "attestation.endorsements";
  const isAway = problem === "ENOENT";
  const folderFindings = (finding: typeof ill, state: string, fix: string) => [
    finding(`${place}: ${state}`, fix, place.split(".")),
  ];
  const nothing = "no VM can be verified";
  if (problem !== undefined && !isAway) {
    const isForbidden = problem === "EACCES";
    const fix = isForbidden ? `let user ${user} read it, and what is in it` : wayOut(problem, user);
    return folderFindings(ill, `${folder} can't be read (${problem}): ${nothing}`, asSentence(fix));
  }
  if (!isFilled && isAway)
    return folderFindings(
      ill,
      `${folder} isn't there: ${nothing}`,
      asSentence(`make it and ${fill}`),
    );
  if (!isFilled && isEmpty)
    return folderFindings(note, `${folder} is empty: ${nothing}`, asSentence(fill));
  if (problemOfFilling !== undefined) {
    const why = `(${problemOfFilling})`;
    const fix = asSentence(wayOut(problemOfFilling, user));
    return isAway
      ? folderFindings(
          ill,
          `${folder} isn't there, and attestation.refresh can't make it ${why}`,
          fix,
        )
      : folderFindings(note, `attestation.refresh can't fill ${folder} from here ${why}`, fix);
  }
  const later = "attestation.refresh makes it when the first evidence comes.";
  return isAway
    ? folderFindings(note, `${folder} isn't there yet`, later)
    : [well(`${place}: ${folder} can be read`)];
}
