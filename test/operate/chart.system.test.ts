import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { findProgram } from "../../sandbox/find-program.ts";
import { root } from "../structure/sources.ts";
import { goFolder, goProgram, programOf } from "../support/programs.ts";
import type { Values } from "../support/render-chart.ts";
import { chartValues, usualCluster, valuesOfClusters } from "./cluster-values.ts";
import { chart, chartFolder, fileOf, manifestsIn, rendered } from "./deployed.ts";

const settings = { COMPUTE_API_URL: "https://compute.example" };
const go = goProgram();
const helm = findProgram(["helm"]);
const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-chart-"));
const program = path.join(folder, "render-chart");

beforeAll(() => {
  if (go === undefined) return;
  const source = path.join(root, "test/operate/render-chart.go");
  const { status, stderr } = spawnSync(go, ["build", "-o", program, source], {
    encoding: "utf8",
    // Debian's sources are no modules
    env: { ...process.env, GO111MODULE: "off", GOPATH: goFolder, GOFLAGS: "" },
  });
  expect(status, stderr).toBe(0);
}, 600_000);
afterAll(() => rmSync(folder, { recursive: true }));

interface Rendering {
  files?: Record<string, string>;
  refusal?: string;
}

/** Renders each of these values with Go's own templates. */
function renderWithGo(all: readonly Values[]): readonly Rendering[] {
  const releases = all.map((values) => ({ ...chart, revision: 1, values }));
  const { stdout, stderr } = spawnSync(program, [chartFolder], {
    encoding: "utf8",
    input: JSON.stringify(releases),
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Rendering[];
}

function manifestsOf({ files = {}, refusal }: Rendering) {
  expect(refusal).toBeUndefined();
  return Object.entries(files)
    .filter(([name]) => name.endsWith(".yaml"))
    .flatMap(([, text]) => manifestsIn(text));
}

function renderWithHelm(helmProgram: string, values: Values) {
  const { status, stdout, stderr } = spawnSync(
    helmProgram,
    ["template", chart.release, chartFolder, "--namespace", chart.namespace, "--values", "-"],
    { encoding: "utf8", input: JSON.stringify(values) },
  );
  expect(status, stderr).toBe(0);
  return manifestsIn(stdout);
}

/** Comparable texts: toYaml quotes as its library does, so that checksums of settings differ. */
const plain = (manifests: ReturnType<typeof manifestsIn>) =>
  manifests
    .map((manifest) =>
      stringify(manifest, { sortMapEntries: true, aliasDuplicateObjects: false }).replaceAll(
        /checksum\/settings: .*/g,
        "",
      ),
    )
    .toSorted();

describe.skipIf(go === undefined)("the chart, rendered by Go's templates and sprig", () => {
  it("is what the light tests render, for every cluster", () => {
    const all = Object.entries(valuesOfClusters);
    const renderings = renderWithGo(all.map(([, values]) => values));
    for (const [at, [name, values]] of all.entries()) {
      const light = plain(rendered(values));
      expect(plain(manifestsOf(renderings[at] ?? {})), name).toEqual(light);
      // Where there is Helm, it must agree, too
      if (helm) expect(plain(renderWithHelm(helm, values)), name).toEqual(light);
    }
  });

  it("writes settings whose values are no plain words as they are", () => {
    const odd = {
      COMPUTE_API_URL: "https://compute.example/?a=1&b=<2>",
      LOG_LEVEL: "yes",
      A: "",
      B: " 1e3: #\n'\"{{ ",
    };
    const [rendering = {}] = renderWithGo([{ ...chartValues, settings: odd }]);
    const maps = manifestsOf(rendering).filter(
      ({ metadata }) => metadata.name === "gatehouse-settings",
    );
    expect(maps).toMatchObject([{ data: odd }]);
  });

  it.each([
    [{ replicaCount: 2 }, "(root): Additional property replicaCount is not allowed"],
    [{ http: { ingresAnnotations: {} } }, "http: Additional property ingresAnnotations is not"],
    [{ monitoring: { rule: true } }, "monitoring: Additional property rule is not allowed"],
    [{ probes: { liveness: { timeout: 5 } } }, "probes.liveness: Additional property timeout is"],
    [
      { podSecurityContext: { runAsUsr: 1 } },
      "podSecurityContext: Additional property runAsUsr is",
    ],
    [{ affinity: { nodeAfinity: {} } }, "affinity: Additional property nodeAfinity is not allowed"],
    [{ worker: { replicas: "2" } }, "worker.replicas: Invalid type. Expected: integer, given: str"],
    [{ http: { enabled: true } }, "http.host is empty: name the host that Slack's request URL has"],
    [
      { settings: { ...settings, REDIS_URL: "redis://r" } },
      "settings.REDIS_URL is a secret, and Helm keeps",
    ],
    [
      { settings: { ...settings, SOURCE_SECRET_A: "s" } },
      "settings.SOURCE_SECRET_A is a secret, and Helm",
    ],
    [{ extraEnv: [{ name: "DATA_DIR" }] }, "extraEnv: DATA_DIR is set by the chart itself"],
  ])("is refused with %o in a sentence", (values, sentence) => {
    const [rendering] = renderWithGo([{ ...chartValues, ...values }]);
    expect(rendering?.refusal).toContain(sentence);
  });

  it("takes a key away where a value is null", () => {
    const podSecurityContext = { runAsUser: null, runAsGroup: null, fsGroup: null };
    const [some, none] = renderWithGo([
      { ...chartValues, podSecurityContext },
      { ...chartValues, podSecurityContext: null, containerSecurityContext: null },
    ]);
    expect(JSON.stringify(manifestsOf(some ?? {}))).not.toMatch(/"(runAsUser|runAsGroup|fsGroup)"/);
    expect(JSON.stringify(manifestsOf(none ?? {}))).not.toContain('"securityContext"');
  });

  it("has alerts that fire in their stories by Prometheus' own count", ({ skip }) => {
    const promtool = programOf("prometheus");
    if (promtool === undefined) throw skip("there is no promtool here");
    const [rendering = {}] = renderWithGo([usualCluster]);
    const rules = manifestsOf(rendering).find(({ kind }) => kind === "PrometheusRule");
    expect(rules?.spec).toEqual(parse(fileOf("deploy/prometheus/alerts.yml")));
    // In place of deploy/prometheus/alerts.yml, beside its stories
    writeFileSync(path.join(folder, "alerts.yml"), stringify(rules?.spec));
    writeFileSync(
      path.join(folder, "alerts.test.yml"),
      fileOf("deploy/prometheus/alerts.test.yml"),
    );
    for (const words of ["check rules alerts.yml", "test rules alerts.test.yml"]) {
      const run = spawnSync(promtool, words.split(" "), { cwd: folder, encoding: "utf8" });
      expect(run.status, `${words}: ${run.stdout}${run.stderr}`).toBe(0);
    }
  });
});
