import { statSync } from "node:fs";
import path from "node:path";
import type { Config } from "../../config/config.ts";
import { type Finding, ill, well } from "../../messages/finding.ts";

const othersMayWrite = 0o002;
const sticky = 0o1000;

/**
 * Whether everyone on this machine may replace a file, because of its own mode or that of its
 * folder.
 */
function whoeverMayReplace(file: string): "it" | "its folder" | undefined {
  try {
    if ((statSync(file).mode & othersMayWrite) !== 0) return "it";
    const { mode } = statSync(path.dirname(file));
    return (mode & othersMayWrite) !== 0 && (mode & sticky) === 0 ? "its folder" : undefined;
  } catch {
    // The code that reads the file reports when it can't be read.
    return undefined;
  }
}

/** Judges the files that decide whom Gatehouse trusts: secrets, authorities, and the policy. */
export function judgeFiles({ files, policyFile, callerProblems }: Config): readonly Finding[] {
  // Reading this getter opens the files of API callers, so that `files` has them. Problems inside
  // those files are reported by the check of the API.
  void callerProblems;
  const all = [
    ...[...files].map(([name, file]) => [name.replace(/(_FILE)?$/, "_FILE"), file.path] as const),
    ...(policyFile.missingAt === undefined ? [["GATEHOUSE_CONFIG", policyFile.path] as const] : []),
  ];
  const open = all.flatMap(([variable, file]) => {
    const replaceable = whoeverMayReplace(file);
    if (replaceable === undefined) return [];
    const mend = `Take that from others: chmod o-w ${replaceable === "it" ? file : path.dirname(file)}`;
    return [
      ill(
        `${variable}: everyone on this machine may write ${replaceable === "it" ? file : `into the folder of ${file}`}`,
        `${mend}.`,
      ),
    ];
  });
  return open.length > 0
    ? open
    : [well("files of secrets and of the policy: others can't write them")];
}
