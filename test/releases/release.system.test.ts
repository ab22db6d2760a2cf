import { execFile, execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../structure/sources.ts";
import { hears } from "../stories/words.ts";
import { lastReleaseFile, lastReleaseProblem } from "../support/last-release.ts";
import { portsOf, startNode } from "../support/start-program.ts";
import { startWorldForPrograms } from "../support/start-world.ts";
import { until } from "../support/until.ts";

const fileOf = (name: string) => readFileSync(path.join(root, name), "utf8");
const { version, files } = JSON.parse(fileOf("package.json")) as {
  version: string;
  files: string[];
};
const changelog = fileOf("CHANGELOG.md");
const sections = [...changelog.matchAll(/^## (\S+)/gm)].map(([, name = ""]) => name);
/** Two formats of a version: of a release or its candidate, and of what comes between two. */
const ofRelease = /^\d+\.\d+\.\d+(-rc\.\d+)?$/;
const between = /^(\d+\.\d+\.\d+(?:-rc\.\d+)?)[-.]dev$/;

/** A repository with what a release is made from, under another version. */
function startRelease(its: string) {
  const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-release-"));
  const at = (name: string) => path.join(folder, name);
  const git = (...words: string[]) => execFileSync("git", words, { cwd: folder, encoding: "utf8" });
  const named = files.filter((name) => name !== "npm-shrinkwrap.json");
  for (const name of [
    ...named,
    "package.json",
    "package-lock.json",
    "sandbox/package.json",
    "README.md",
    "LICENSE",
    ".ci/release",
    ".gitignore",
  ])
    cpSync(path.join(root, name), at(name), { recursive: true });
  const name = (next: string) => {
    for (const file of ["package.json", "package-lock.json"])
      writeFileSync(at(file), fileOf(file).replaceAll(`"${version}"`, `"${next}"`));
  };
  name(its);
  writeFileSync(at("CHANGELOG.md"), `# Changelog\n\n## ${its}\n`);
  git("init", "--quiet");
  git("config", "user.name", "Ada");
  git("config", "user.email", "ada@example.com");
  return {
    at,
    git,
    /** Gives it another version. */
    name,
    /** Writes CHANGELOG.md with a section for each of these, the newest first. */
    change(...headings: readonly string[]): void {
      const written = headings.map((section) => `## ${section}\n\n- Something.\n`);
      writeFileSync(at("CHANGELOG.md"), `# Changelog\n\n${written.join("\n")}`);
    },
    /** Commits everything, and resolves with the commit's name. */
    commit(): string {
      git("add", "--all");
      git("commit", "--quiet", "--message", `Release ${its}`);
      return git("rev-parse", "HEAD").trim();
    },
    release(): [number, string] {
      const { status, stdout, stderr } = spawnSync(at(".ci/release"), { encoding: "utf8" });
      return [status ?? -1, `${stdout}${stderr}`];
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
}

describe("the version", () => {
  it("is that of the newest section of CHANGELOG.md, or comes between two releases", () => {
    const [, next] = between.exec(version) ?? [];
    if (next === undefined) expect(version).toMatch(ofRelease);
    expect(sections.length).toBeGreaterThan(0);
    if (next === undefined) expect(sections[0]).toBe(version);
    for (const section of sections) expect(section).toMatch(/^Unreleased$|^\d/);
    expect(sections.lastIndexOf("Unreleased")).toBeLessThan(next === undefined ? 0 : 1);
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

describe("what was released", () => {
  it("stays in CHANGELOG.md as it was: what changed since then is unreleased", ({ skip }) => {
    const problem = lastReleaseProblem();
    if (problem !== undefined) throw skip(problem);
    const released = (text: string) => text.slice(text.search(/^## \d/m));
    const then = released(lastReleaseFile("CHANGELOG.md"));
    expect(released(changelog).endsWith(then)).toBe(true);
  });
});

describe("npm run release", () => {
  it("makes nothing of what comes between two releases, and says where to read what a release takes", () => {
    using copy = startRelease("1.0.0-dev");
    for (const its of ["1.0.0-dev", "1.0.0-rc.1.dev", "1.0.0-rc", "1.0.0-beta.1"]) {
      copy.name(its);
      expect(copy.release()).toEqual([
        1,
        `${its} is what comes between two releases. How one is made: CONTRIBUTING.md, "A release".\n`,
      ]);
    }
    expect(existsSync(copy.at("dist"))).toBe(false);
    expect(fileOf("CONTRIBUTING.md")).toMatch(/^#+ A release$/m);
  });

  it("takes no version that CHANGELOG.md doesn't name, also not by its candidate", () => {
    using copy = startRelease("1.0.0");
    for (const named of [
      ["1.0.0-rc.1", "1x0.0"],
      ["Unreleased", "1.0.0"],
      ["1.0.1", "1.0.0"],
    ]) {
      copy.change(...named);
      expect(copy.release()).toEqual([
        1,
        `CHANGELOG.md begins with "${named[0]}" and not with a section for 1.0.0.\n`,
      ]);
    }
  });

  describe("of a version that was released", () => {
    /** A repository that has released 1.0.0-rc.1, and then 1.0.0-rc.2, as `.ci/last-release` says. */
    function startAfterTwo() {
      const copy = startRelease("1.0.0-rc.1");
      copy.commit();
      copy.name("1.0.0-rc.2");
      copy.change("1.0.0-rc.2", "1.0.0-rc.1");
      const second = copy.commit();
      writeFileSync(copy.at(".ci/last-release"), `${second}\n`);
      return { ...copy, second };
    }

    it.each(["1.0.0-rc.1", "1.0.0-rc.2"])(
      "makes nothing more, whether or not this clone has tags: %s",
      (its) => {
        using copy = startAfterTwo();
        copy.name(its);
        copy.change(its, "Something else");
        copy.commit();
        expect(copy.release()).toEqual([
          1,
          `${its} was released already, by ${copy.second.slice(0, 12)} or before it. What changed since then gets a version of its own.\n`,
        ]);
        expect(existsSync(copy.at("dist"))).toBe(false);
      },
    );

    it("makes nothing more where only its tag says so", () => {
      using copy = startAfterTwo();
      copy.git("tag", "v1.0.0-rc.3", copy.second);
      copy.name("1.0.0-rc.3");
      copy.change("1.0.0-rc.3");
      copy.commit();
      expect(copy.release()).toEqual([
        1,
        `1.0.0-rc.3 was released already: its tag v1.0.0-rc.3 is ${copy.second.slice(0, 12)}. What changed since then gets a version of its own.\n`,
      ]);
    });

    it("makes nothing in a clone that can't know", () => {
      using copy = startAfterTwo();
      const missing = "0".repeat(40);
      writeFileSync(copy.at(".ci/last-release"), `${missing}\n`);
      copy.name("1.0.0-rc.3");
      copy.change("1.0.0-rc.3");
      copy.commit();
      expect(copy.release()).toEqual([
        1,
        "This clone lacks the commit of the last release, 000000000000, which says what was released: git fetch --unshallow.\n",
      ]);
    });
  });

  it("makes nothing of files that aren't committed", () => {
    using copy = startRelease("1.0.0");
    copy.commit();
    writeFileSync(copy.at("src/left-behind.ts"), "");
    expect(copy.release()).toEqual([
      1,
      "A release is made of what is committed, and this isn't: src/left-behind.ts\n",
    ]);
  });
});

describe("what npm run release makes", () => {
  const number = "1.0.0-rc.1";
  const tarball = `gatehouse-${number}.tgz`;
  const dist = (name: string) => path.join(copy.at("dist"), name);
  let copy: ReturnType<typeof startRelease>;
  let commit: string;
  beforeAll(() => {
    copy = startRelease(number);
    commit = copy.commit();
    const [status, said] = copy.release();
    expect(status, said).toBe(0);
  });
  afterAll(() => copy[Symbol.dispose]());

  it("is a tarball, a bill of materials, and checksums, and the commit is noted and tagged", () => {
    const made = readdirSync(copy.at("dist")).toSorted();
    expect(made).toEqual(["SHA256SUMS", `gatehouse-${number}.cdx.json`, tarball]);
    expect(existsSync(copy.at("npm-shrinkwrap.json"))).toBe(false);
    expect(readFileSync(copy.at(".ci/last-release"), "utf8")).toBe(`${commit}\n`);
    expect(copy.git("rev-parse", `v${number}^{commit}`).trim()).toBe(commit);
    expect(copy.git("cat-file", "-t", `v${number}`).trim()).toBe("tag");
  });

  it("is made once: a second one of its version is refused", () => {
    copy.change(number, "Unreleased");
    copy.commit();
    const [status, said] = copy.release();
    expect([status, said]).toEqual([1, expect.stringContaining(`${number} was released already`)]);
    expect(copy.git("rev-parse", `v${number}^{commit}`).trim()).toBe(commit);
  });

  it("has what the image, compose.yaml, and deploy/ need, and nothing of the sandbox", () => {
    mkdirSync(copy.at("unpacked"));
    const unpack = ["xzf", dist(tarball), "-C", copy.at("unpacked")];
    expect(spawnSync("tar", unpack).status).toBe(0);
    const shipped = copy.at("unpacked/package");
    const textOf = (name: string) => readFileSync(path.join(shipped, name), "utf8");
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
    const bill = readFileSync(dist(`gatehouse-${number}.cdx.json`), "utf8");
    const { packages } = JSON.parse(textOf("npm-shrinkwrap.json")) as { packages: object };
    for (const listed of [Object.keys(packages).join(" "), bill]) {
      expect(listed).toContain("@slack/bolt");
      expect(listed).not.toMatch(/sandbox|\bws\b/);
    }
  });

  it("is installed, checked, and started by the commands of docs/install.md alone, and answers people", async () => {
    await using world = await startWorldForPrograms();
    const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-install-"));
    using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
    for (const name of [tarball, "SHA256SUMS"]) cpSync(dist(name), path.join(folder, name));
    const typed = [...fileOf("docs/install.md").matchAll(/^ {4}(\S.*)$/gm)].map(
      ([, line = ""]) => line,
    );
    const start = typed.pop() ?? "";
    expect(typed).toEqual(expect.arrayContaining(["npm ci --omit=dev", "cp .env.example .env"]));
    // The Node.js that a person has installed, and no variable of this test
    const env = {
      PATH: `${path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
      HOME: process.env["HOME"] ?? "",
      npm_config_prefer_offline: "true",
    };
    let cwd = folder;
    const edit = (name: string, change: (text: string) => string) =>
      writeFileSync(path.join(cwd, name), change(readFileSync(path.join(cwd, name), "utf8")));
    const asked = ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "COMPUTE_API_URL", "COMPUTE_API_KEY"];
    const filled = { ...world.env, OPS_PORT: "0" } as Readonly<Record<string, string>>;
    for (const command of typed) {
      const script = `${command}\npwd > "${folder}/cwd"`;
      // The sandboxes are in this process, so it must not wait here
      await promisify(execFile)("sh", ["-ec", script], { cwd, env });
      cwd = readFileSync(path.join(folder, "cwd"), "utf8").trim();
      // What the page says to fill in, and where the sandbox and a free port are
      if (command.endsWith(" gatehouse.yml"))
        edit("gatehouse.yml", (text) => text.replaceAll("U09ADMIN", "U0ADA"));
      if (command.endsWith(" .env"))
        edit(".env", (text) =>
          [...asked, "REDIS_URL", "SLACK_API_URL", "OPS_PORT"].reduce(
            (lines, name) =>
              lines.replace(new RegExp(`^(# )?${name}=.*$`, "m"), `${name}=${filled[name] ?? ""}`),
            text,
          ),
        );
    }
    const [, ...words] = start.split(" ");
    expect(words.at(-1)).toBe("gatehouse.mjs");
    await using gatehouse = startNode(words, env, { cwd });
    const { opsPort } = await portsOf(gatehouse);
    await world.slack.connected();
    await until(async () => (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).status).toBe(200);
    await world.olivia.types("ops", "/gatehouse status");
    await hears(world.olivia, "ops", /1\.0\.0-rc\.1, Node\.js/);
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    expect(await gatehouse.stop()).toBe(0);
  });
});
