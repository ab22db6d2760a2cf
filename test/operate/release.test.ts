import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../structure/sources.ts";

const fileOf = (name: string) => readFileSync(path.join(root, name), "utf8");
const { version, files } = JSON.parse(fileOf("package.json")) as {
  version: string;
  files: string[];
};
const changelog = fileOf("CHANGELOG.md");
const sections = [...changelog.matchAll(/^## (\S+)/gm)].map(([, name = ""]) => name);
const number = version.replace(/-dev$/, "");

/** A copy of what a release is made from. */
function startRelease(): Disposable & { at(name: string): string; release(): [number, string] } {
  const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-release-"));
  const at = (name: string) => path.join(folder, name);
  const named = files.filter((name) => name !== "npm-shrinkwrap.json");
  for (const name of [
    ...named,
    "package.json",
    "package-lock.json",
    "sandbox/package.json",
    "README.md",
    "LICENSE",
    ".ci/release",
  ])
    cpSync(path.join(root, name), at(name), { recursive: true });
  return {
    at,
    release() {
      const { status, stdout, stderr } = spawnSync(at(".ci/release"), { encoding: "utf8" });
      return [status ?? -1, `${stdout}${stderr}`];
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
}

describe("the version", () => {
  it("is not that of a release before, and what changed since stands under Unreleased", () => {
    expect(version).toMatch(/^\d+\.\d+\.\d+(-dev)?$/);
    if (version.endsWith("-dev")) {
      expect(sections[0]).toBe("Unreleased");
      expect(sections).not.toContain(number);
    } else expect(sections[0]).toBe(version);
  });

  it("is the one in the lockfile, and wherever deploy/ names the image", () => {
    expect(JSON.parse(fileOf("package-lock.json"))).toMatchObject({
      version,
      packages: { "": { version } },
    });
    const kustomization = parse(fileOf("deploy/kubernetes/base/kustomization.yaml")) as object;
    expect(kustomization).toMatchObject({ images: [{ name: "gatehouse", newTag: version }] });
    expect(parse(fileOf("deploy/helm/gatehouse/Chart.yaml"))).toMatchObject({
      version,
      appVersion: version,
    });
  });
});

describe("npm run release", () => {
  it("makes nothing of a version between releases, and says what one takes", () => {
    using copy = startRelease();
    for (const name of ["package.json", "package-lock.json"])
      writeFileSync(copy.at(name), fileOf(name).replace(version, `${number}-dev`));
    expect(copy.release()).toEqual([
      1,
      `${number}-dev is what comes between two releases. For one: npm version --no-git-tag-version ${number}, npm run derive, ` +
        "and its section in CHANGELOG.md; afterward the same with the next number and -dev.\n",
    ]);
    expect(existsSync(copy.at("dist"))).toBe(false);
  });

  it("takes no version that CHANGELOG.md doesn't name", () => {
    using copy = startRelease();
    const next = fileOf("package.json").replace(version, "99.0.0");
    writeFileSync(copy.at("package.json"), next);
    expect(copy.release()).toEqual([1, "CHANGELOG.md has no section for 99.0.0.\n"]);
  });

  it("makes a tarball that starts, and from which the image, compose.yaml, and deploy/ work", () => {
    using copy = startRelease();
    for (const name of ["package.json", "package-lock.json"])
      writeFileSync(copy.at(name), fileOf(name).replaceAll(`"${version}"`, `"${number}"`));
    writeFileSync(copy.at("CHANGELOG.md"), changelog.replace("## Unreleased", `## ${number}`));
    const [status, said] = copy.release();
    expect(status, said).toBe(0);
    const made = readdirSync(copy.at("dist")).toSorted();
    const tarball = `gatehouse-${number}.tgz`;
    expect(made).toEqual(["SHA256SUMS", `gatehouse-${number}.cdx.json`, tarball]);
    expect(existsSync(copy.at("npm-shrinkwrap.json"))).toBe(false);

    mkdirSync(copy.at("unpacked"));
    const unpack = ["xzf", copy.at(`dist/${tarball}`), "-C", copy.at("unpacked")];
    expect(spawnSync("tar", unpack).status).toBe(0);
    const shipped = copy.at("unpacked/package");
    const textOf = (name: string) => readFileSync(path.join(shipped, name), "utf8");
    symlinkSync(path.join(root, "node_modules"), path.join(shipped, "node_modules"));
    const started = spawnSync(process.execPath, ["gatehouse.mjs", "--version"], { cwd: shipped });
    expect(started.stdout.toString()).toContain(`gatehouse ${number}`);

    // What docker build is given, and what it copies of that
    const let_in = [...textOf(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, name = ""]) => name);
    const copied = [...textOf("Dockerfile").matchAll(/^COPY (.+) \S+$/gm)]
      .flatMap(([, words = ""]) => words.split(" "))
      .map((word) => [word, globSync(word.replace(/^\.\//, ""), { cwd: shipped })] as const);
    expect(copied.filter(([word, found]) => found.length === 0 && !word.endsWith("*"))).toEqual([]);
    const found = copied.flatMap(([, names]) => names);
    expect(found).toContain("npm-shrinkwrap.json");
    expect(found.filter((name) => !let_in.includes(name))).toEqual([]);
    const { services } = parse(textOf("compose.yaml"), { merge: true }) as {
      services: Record<string, { build?: string }>;
    };
    expect(services["gateway"]?.build).toBe(".");
    for (const name of [".env.example", "gatehouse.example.yml", "manifest.yml", "LICENSE"])
      expect(existsSync(path.join(shipped, name)), name).toBe(true);
    const all = globSync("deploy/**/*.*", { cwd: root }).filter(
      (name) => !name.endsWith("gatehouse.yml"),
    );
    expect(all.filter((name) => !existsSync(path.join(shipped, name)))).toEqual([]);
    const sources = readdirSync(shipped).filter((name) =>
      /^(test|sandbox|demo|\.git|\.env$)/.test(name),
    );
    expect(sources).toEqual([]);
    expect(textOf("package.json")).not.toContain("workspaces");
    const bill = readFileSync(copy.at(`dist/gatehouse-${number}.cdx.json`), "utf8");
    const { packages } = JSON.parse(textOf("npm-shrinkwrap.json")) as { packages: object };
    for (const listed of [Object.keys(packages).join(" "), bill]) {
      expect(listed).toContain("@slack/bolt");
      expect(listed).not.toMatch(/sandbox|\bws\b/);
    }
  }, 120_000);
});
