import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Debian's next release, for what this one has only in an older version. */
export const nextSuite = "trixie";

/** Unpacks packages into a folder, as root on Debian; nothing is installed. `suite`: another release than this machine's. */
export async function unpackPackages(
  names: readonly string[],
  folder: string,
  { suite }: { suite?: string } = {},
): Promise<void> {
  const at = (name: string) => path.join(folder, "apt", name);
  for (const name of ["lists/partial", "cache/archives/partial", "packages"])
    await mkdir(at(name), { recursive: true });
  const apt = (...words: string[]) => run("apt-get", words, { cwd: at("packages") });
  const options = ["-qq", "-o", "APT::Sandbox::User=root"];
  if (suite !== undefined) {
    const [own = ""] = readFileSync("/etc/apt/sources.list.d/debian.sources", "utf8").split("\n\n");
    const sources = own.replaceAll(/^Suites: .*$/gm, `Suites: ${suite}`);
    await writeFile(at("next.sources"), `${sources}\n`);
    const places = {
      "Dir::Etc::sourcelist": at("next.sources"),
      "Dir::Etc::sourceparts": "-",
      "Dir::State::lists": at("lists"),
      "Dir::Cache": at("cache"),
    };
    for (const [name, value] of Object.entries(places)) options.push("-o", `${name}=${value}`);
    await apt("update", ...options);
  }
  await apt("download", ...names, ...options);
  for (const file of await readdir(at("packages")))
    await run("dpkg-deb", ["-x", path.join(at("packages"), file), folder]);
}
