import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The first of these programs on the PATH, as a whole path. */
export function findProgram(
  names: readonly string[],
  path = process.env["PATH"] ?? "",
): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== "");
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((file) => isProgram(file));
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** May we install with apt here: root on Debian, Ubuntu or one of their children. */
export function mayUseApt(): boolean {
  if (
    process.platform !== "linux" ||
    process.getuid?.() !== 0 ||
    findProgram(["apt-get"]) === undefined
  )
    return false;
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  return /^(ID|ID_LIKE)=.*\b(debian|ubuntu)\b/m.test(release);
}

/** Installs one package quietly; undefined, or why it didn't work. */
export async function aptInstall(name: string, limitMs: number): Promise<string | undefined> {
  const run = promisify(execFile);
  const options = {
    timeout: limitMs,
    maxBuffer: 16 * 1024 * 1024,
    // RUNLEVEL=1: the package's own service isn't started, we start ours
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
  };
  try {
    await run("apt-get", ["update", "-qq", "-o", "DPkg::Lock::Timeout=60"], options);
    const install = [
      "install",
      "-y",
      "-qq",
      "--no-install-recommends",
      "-o",
      "DPkg::Lock::Timeout=60",
      name,
    ];
    await run("apt-get", install, options);
    return undefined;
  } catch (error) {
    const output =
      error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
    return output.trim().split("\n").at(-1) || "it took too long";
  }
}
