import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./sources.ts";

interface Locked {
  version?: string;
  integrity?: string;
  resolved?: string;
  hasInstallScript?: boolean;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
}

const read = (name: string) => readFileSync(join(root, name), "utf8");
const project = JSON.parse(read("package.json")) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  workspaces: string[];
  allowScripts: Record<string, boolean>;
};
const sandbox = JSON.parse(read("sandbox/package.json")) as typeof project;
const lock = JSON.parse(read("package-lock.json")) as {
  lockfileVersion: number;
  packages: Record<string, Locked>;
};
/** Without what is in this repository: Gatehouse, the sandbox, and the link to it. */
const own = ["", "sandbox", "node_modules/gatehouse-sandbox"];
const locked = Object.entries(lock.packages).filter(([path]) => !own.includes(path));

/** Where Gatehouse is run: the image is Debian's, for x64 and arm64. */
function isForHere({ os, cpu, libc }: Locked): boolean {
  return (
    (os?.includes("linux") ?? true) &&
    (cpu === undefined || cpu.includes("x64") || cpu.includes("arm64")) &&
    (libc?.includes("glibc") ?? true)
  );
}

const isNative = (path: string) =>
  /\/@(msgpackr-extract|oxfmt|oxlint|oxlint-tsgolint)\/[\w-]+$/.test(path);
const isMusl = (path: string) => /-musl$|android|openharmony/.test(path);

describe("what Gatehouse is built of", () => {
  it("is named by exact version, so that nothing newer comes in by itself", () => {
    const lists = [project, sandbox].flatMap((one) => [one.dependencies, one.devDependencies]);
    const all = lists.flatMap((list) => Object.entries(list));
    expect(all.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    expect(read(".npmrc")).toContain("save-exact=true");
    for (const [name, version] of all)
      expect(lock.packages[`node_modules/${name}`]?.version, name).toBe(version);
  });

  it("is checked against the lockfile's hash, every package of where it runs", () => {
    expect(lock.lockfileVersion).toBe(3);
    const here = locked.filter(([path, one]) => isForHere(one) && !isMusl(path));
    expect(here.length).toBeGreaterThan(150);
    const unchecked = here.filter(([, one]) => !/^sha512-[\w+/]{86}==$/.test(one.integrity ?? ""));
    expect(unchecked.map(([path]) => path)).toEqual([]);
    // Without a hash are the native parts for systems on which Gatehouse isn't run, and nothing else
    const others = locked.filter(([, one]) => one.integrity === undefined);
    expect(others.filter(([path, one]) => one.optional !== true || !isNative(path))).toEqual([]);
    expect(others.filter(([path, one]) => isForHere(one) && !isMusl(path))).toEqual([]);
  });

  it("comes from the registry that is configured: the lockfile names none", () => {
    expect(locked.filter(([, one]) => one.resolved !== undefined)).toEqual([]);
  });

  it("has the sandbox as a workspace, which the image leaves out", () => {
    expect(project.workspaces).toEqual(["sandbox"]);
    expect(lock.packages["node_modules/gatehouse-sandbox"]).toEqual({
      resolved: "sandbox",
      link: true,
    });
    const { dependencies, devDependencies } = sandbox;
    expect(lock.packages["sandbox"]).toMatchObject({ dependencies, devDependencies });
    // What both need is the same package, or types of one wouldn't fit the other's
    const ofGatehouse = { ...project.dependencies, ...project.devDependencies };
    const shared = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([name]) => ofGatehouse[name],
    );
    expect(shared.filter(([name, version]) => ofGatehouse[name] !== version)).toEqual([]);
    expect(read(".dockerignore")).not.toContain("sandbox");
  });

  it("runs no install script but Node.js' own, which isn't in the image", () => {
    const scripts = locked
      .filter(([, one]) => one.hasInstallScript)
      .map(([path, one]) => [path.replace("node_modules/", ""), one] as const);
    for (const [name, { dev }] of scripts) {
      // By name alone: npm 12 blocks the script of a name with a version
      const isAllowed = project.allowScripts[name];
      expect(isAllowed, `allowScripts says yes or no to ${name}`).toBeDefined();
      if (isAllowed) expect(dev, `${name} is no part of what runs`).toBe(true);
    }
    expect(scripts.filter(([name]) => project.allowScripts[name] !== false)).toHaveLength(1);
    expect(read("Dockerfile")).toMatch(/npm ci --omit=dev --ignore-scripts/);
  });
});
