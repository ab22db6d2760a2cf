import { aptInstall, findProgram, mayUseApt } from "../../sandbox/find-program.ts";

/** Where the browser of the tests is, or a sentence with the ways to get one. */
export type Chromium = { path: string } | { missing: string };

/** From the PATH; else, as root on Debian or Ubuntu, from apt (up to five minutes). Never throws. */
export async function ensureChromium({
  install = true,
}: { install?: boolean } = {}): Promise<Chromium> {
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const found = findProgram(names);
  if (found !== undefined) return { path: found };
  const failure = install && mayUseApt() ? await aptInstall("chromium", 300_000) : "not tried";
  const installed = failure === undefined ? findProgram(names) : undefined;
  if (installed !== undefined) return { path: installed };
  return {
    missing:
      "No browser was found: install Chromium so that `chromium` is on the PATH (Debian and Ubuntu: apt-get install chromium).",
  };
}
