import { aptInstall, findProgram, mayUseApt } from "../../sandbox/find-program.ts";

const names = ["prometheus-alertmanager", "alertmanager"];

/** Where the real Alertmanager is: on the PATH; else, as root on Debian or Ubuntu, from apt. Undefined, said in a line, where it can't be. */
export async function ensureAlertmanager(): Promise<string | undefined> {
  const found = findProgram(names);
  if (found !== undefined) return found;
  const failure = mayUseApt() ? await aptInstall("prometheus-alertmanager", 300_000) : "not tried";
  const installed = failure === undefined ? findProgram(names) : undefined;
  if (installed === undefined)
    console.warn(
      "Skipped: no Alertmanager was found. Install it so that `alertmanager` is on the PATH (Debian and Ubuntu: apt-get install prometheus-alertmanager).",
    );
  return installed;
}
