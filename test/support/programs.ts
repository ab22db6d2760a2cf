import { aptInstall, findProgram, mayUseApt } from "../../sandbox/find-program.ts";

/** Programs of other projects that tests run, by their package in Debian and Ubuntu: the names that each goes by. */
const programs = {
  chromium: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
  nginx: ["nginx"],
  prometheus: ["promtool"],
  "prometheus-alertmanager": ["prometheus-alertmanager", "alertmanager"],
  zsh: ["zsh"],
};

type Package = keyof typeof programs;

/** Its path; undefined where it isn't on the PATH: what needs it is skipped. */
export const programOf = (name: Package): string | undefined => findProgram(programs[name]);

const missing = () =>
  (Object.keys(programs) as Package[]).filter((name) => programOf(name) === undefined);

/**
 * Installs what is missing, as root on Debian or Ubuntu (up to five minutes each). Resolves to a sentence with the way to get what is
 * missing still, or undefined. Never throws.
 */
export async function installPrograms({ install = true }: { install?: boolean } = {}): Promise<
  string | undefined
> {
  // One by one: what apt doesn't have must not keep the others away
  if (install && mayUseApt()) for (const name of missing()) await aptInstall(name, 300_000);
  const still = missing();
  return still.length === 0
    ? undefined
    : `Tests that need what isn't on the PATH are skipped (Debian and Ubuntu: apt-get install ${still.join(" ")}).`;
}
