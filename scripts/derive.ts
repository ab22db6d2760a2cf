// npm run derive: writes the derived files; with --check it only names stale ones.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { commands, features, policyTerms } from "../src/features/index.ts";
import { version } from "../src/config/version.ts";
import { isChange, verbsOf } from "../src/registry/define.ts";
import { rootsOf } from "../src/registry/help.ts";
import { renderExamplePolicy } from "./example-policy.ts";
import { renderManifest, withTable } from "./manifest.ts";
import { renderPolicyJsonSchema } from "./policy-json-schema.ts";
import { renderRights } from "./rights-table.ts";

const hasHome = features.some((feature) => feature.showsHome);

const files = [
  { path: "manifest.yml", make: () => renderManifest(commands, { hasHome }) },
  // Only its table is derived: a missing README stays missing
  {
    path: "README.md",
    make: (now: string | undefined) => (now === undefined ? undefined : withTable(now, commands)),
  },
  {
    path: "docs/rights.md",
    make: (now: string | undefined) => (now === undefined ? undefined : renderRights(commands)),
  },
  { path: "gatehouse.example.yml", make: () => renderExamplePolicy(policyTerms) },
  { path: "gatehouse.schema.json", make: () => renderPolicyJsonSchema(policyTerms) },
  {
    path: "src/cli/change-words.json",
    make: () => `${JSON.stringify(wordsOfChanges(), undefined, 2)}\n`,
  },
  // Where an operator's image is named, by the version of package.json
  ...[
    { path: "deploy/helm/gatehouse/Chart.yaml", place: /(?<=^(?:appV|v)ersion: )\S+/gm },
    { path: "deploy/kubernetes/base/kustomization.yaml", place: /(?<=^ +newTag: )\S+/gm },
    { path: "docs/operate.md", place: /(?<=registry\.example\/gatehouse:)\S+/g },
  ].map(({ path, place }) => ({
    path,
    make: (now: string | undefined) => now?.replaceAll(place, version),
  })),
  // Helm reads nothing outside of a chart's folder
  {
    path: "deploy/helm/gatehouse/alerts.yml",
    make: (now: string | undefined) => (now === undefined ? undefined : alerts),
  },
  // An operator installs the SDK that the tests trace into, because newer ones may not fit together.
  {
    path: "docs/operate.md",
    make: (now: string | undefined) =>
      now?.replaceAll(
        /(?<= )(@opentelemetry\/[\w-]+)@[\d.]+/g,
        (_, name: string) => `${name}@${versionOf(name)}`,
      ),
  },
];

/** The verbs of all commands that change something, by their first word, in the order of help. */
function wordsOfChanges(): Readonly<Record<string, readonly string[]>> {
  const changes = commands.filter(isChange);
  return Object.fromEntries(
    rootsOf(changes).map((root) => [
      root,
      changes
        .filter(({ name }) => name.startsWith(`${root} `))
        .map((command) => verbsOf(command)[0] ?? ""),
    ]),
  );
}

function versionOf(name: string): string {
  const { devDependencies }: { devDependencies: Readonly<Record<string, string>> } =
    JSON.parse(packageFile);
  const found = devDependencies[name];
  if (found === undefined) throw new Error(`${name} is not in package.json`);
  return found;
}

const packageFile = await readFile(new URL("../package.json", import.meta.url), "utf8");
const alerts = await readFile(new URL("../deploy/prometheus/alerts.yml", import.meta.url), "utf8");
const isCheck = process.argv.includes("--check");
for (const { path, make } of files) {
  const now = await readFile(path, "utf8").catch(() => undefined);
  const wanted = make(now);
  if (wanted === undefined || now === wanted) continue;
  if (isCheck) {
    process.stderr.write(`${path} is stale: run "npm run derive"\n`);
    process.exitCode = 1;
  } else {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, wanted);
    process.stdout.write(`${path} is written\n`);
  }
}
