import { existsSync } from "node:fs";
import path from "node:path";
import { aptInstall, findProgram, mayUseApt } from "../../sandbox/find-program.ts";

/** Programs of other projects that tests run, by their package in Debian and Ubuntu: the names that each goes by. */
const programs = {
  "golang-go": ["go"],
  chromium: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
  nginx: ["nginx"],
  prometheus: ["promtool"],
  "prometheus-alertmanager": ["prometheus-alertmanager", "alertmanager"],
  zsh: ["zsh"],
  systemd: ["systemctl"],
  dbus: ["dbus-daemon"],
};

/** Where Debian and Ubuntu put the sources of Go's packages. */
export const goFolder = "/usr/share/gocode";

/** Sources that test/operate/render-chart.go is built with, by their package: what Helm is made of. */
const goSources = {
  "golang-github-masterminds-sprig-dev": "github.com/Masterminds/sprig",
  "golang-github-xeipuuv-gojsonschema-dev": "github.com/xeipuuv/gojsonschema",
  "golang-k8s-sigs-yaml-dev": "sigs.k8s.io/yaml",
};

type Package = keyof typeof programs;

/** Its path; undefined where it isn't on the PATH: what needs it is skipped. */
export const programOf = (name: Package): string | undefined => findProgram(programs[name]);

const missingSources = () =>
  Object.entries(goSources)
    .filter(([, folder]) => !existsSync(path.join(goFolder, "src", folder)))
    .map(([name]) => name);

/** The path of Go where it can build the renderer of charts; undefined elsewhere: what needs it is skipped. */
export const goProgram = (): string | undefined =>
  missingSources().length === 0 ? programOf("golang-go") : undefined;

const missing = () => [
  ...(Object.keys(programs) as Package[]).filter((name) => programOf(name) === undefined),
  ...missingSources(),
];

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
