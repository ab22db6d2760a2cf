import { spawnSync } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findProgram } from "../../sandbox/find-program.ts";
import { root } from "../structure/sources.ts";
import { programOf } from "../support/programs.ts";
import { everything, withApi } from "./cluster-values.ts";
import {
  type Container,
  type StatefulSet,
  fileOf,
  imageStarts,
  manifestsIn,
  rendered,
} from "./deployed.ts";

describe("deploy/kubernetes over HTTP and with the API", () => {
  it("is made by kustomize, as the chart makes it", async ({ skip }) => {
    const kubectl = findProgram(["kubectl"]);
    if (kubectl === undefined) throw skip("there is no kubectl here");
    const copy = await mkdtemp(path.join(tmpdir(), "gatehouse-kustomize-"));
    try {
      await cp(path.join(root, "deploy/kubernetes"), copy, { recursive: true });
      await cp(path.join(root, "gatehouse.example.yml"), path.join(copy, "base/gatehouse.yml"));
      const written = fileOf("deploy/kubernetes/base/kustomization.yaml");
      const patches = [...written.matchAll(/^# patches:\n(?:# {2,}.*\n?)+/gm)];
      // What stands in comments, for authorities of one's own and for OpenShift, can be taken as it is
      const madeWith = async ([commented]: readonly string[]) => {
        const patch = commented?.replaceAll(/^# /gm, "");
        await writeFile(path.join(copy, "base/kustomization.yaml"), `${written}\n${patch}`);
        const { status, stdout, stderr } = spawnSync(
          kubectl,
          ["kustomize", path.join(copy, "http-and-api")],
          { encoding: "utf8" },
        );
        expect(status, stderr).toBe(0);
        return stdout;
      };
      const [authorities = [], openShift = []] = patches;
      expect(await madeWith(openShift)).not.toMatch(/\b(runAsUser|runAsGroup|fsGroup):/);
      const made = manifestsIn(await madeWith(authorities));
      const named = (all: readonly { kind: string; metadata: { name: string } }[]) =>
        all
          .filter(({ kind }) => !/^(ConfigMap|Namespace|ServiceAccount)$/.test(kind))
          .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
          .toSorted();
      expect(named(made)).toEqual(named(rendered(withApi)));
      const gatewayIn = (all: readonly object[]) => {
        const found = (all as StatefulSet[]).find(
          ({ kind, metadata }) => kind === "StatefulSet" && metadata.name === "gatehouse-gateway",
        );
        const [container] = found?.spec.template.spec.containers ?? [{} as Container];
        const { args, env, ports } = container;
        const items = found?.spec.template.spec.volumes.find(({ name }) => name === "secrets");
        const byName = (one: { name: string }, other: { name: string }) =>
          one.name.localeCompare(other.name);
        return {
          args,
          mounts: container.volumeMounts.map(({ mountPath }) => mountPath).toSorted(),
          env: env.toSorted(byName),
          ports: ports.map(({ name }) => name).toSorted(),
          keys: items?.secret?.items.map(({ key }) => key).toSorted(),
        };
      };
      const { extraEnv, extraVolumes, extraVolumeMounts } = everything;
      const trusting = { ...withApi, extraEnv, extraVolumes, extraVolumeMounts };
      expect(gatewayIn(made)).toEqual(gatewayIn(rendered(trusting)));
    } finally {
      await rm(copy, { recursive: true });
    }
  });
});

describe("deploy/systemd", () => {
  it("runs other programs as a unit would: with its user, variables, and folders", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-run-"));
    try {
      // Says what it was called with, one argument a line; of a property, its name
      for (const [name, says] of [
        ["systemctl", 'echo "the $3 of $5"'],
        ["systemd-run", String.raw`printf "%s\n" "$@"`],
      ] as const)
        await writeFile(path.join(folder, name), `#!/bin/sh\n${says}\n`, { mode: 0o755 });
      const run = (...words: string[]) =>
        spawnSync(path.join(root, "deploy/systemd/gatehouse-run"), words, {
          encoding: "utf8",
          env: { PATH: `${folder}:${process.env["PATH"]}` },
        });
      const { stdout, status } = run("gatehouse-worker@3011", "audit", "verify");
      const said = stdout.trimEnd().split("\n");
      expect(status).toBe(0);
      expect(said.slice(-4)).toEqual([
        "/usr/bin/node",
        "/opt/gatehouse/gatehouse.mjs",
        "audit",
        "verify",
      ]);
      expect(said).toContain("EnvironmentFile=/etc/gatehouse/settings");
      for (const name of ["User", "DynamicUser", "Environment", "UnsetEnvironment", "BindPaths"])
        expect(said).toContain(`${name}=the ${name} of gatehouse-worker@3011`);
      expect(run("gatehouse-gateway")).toMatchObject({
        status: 64,
        stderr: "usage: gatehouse-run <unit> <what follows gatehouse.mjs>\n",
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("memory", () => {
  it("is shared out by Node.js as that flag says", () => {
    const share = imageStarts.find((word) => word.startsWith("--max-old-space-size-percentage"));
    const script =
      "console.log(JSON.stringify([v8.getHeapStatistics().heap_size_limit, os.totalmem(), process.constrainedMemory()]))";
    const { stdout } = spawnSync(process.execPath, [share ?? "", "--print", script], {
      encoding: "utf8",
    });
    const [heap = 0, total = 0, allowed = Infinity] = JSON.parse(
      stdout.split("\n")[0] ?? "[]",
    ) as number[];
    const most = Math.min(total, allowed || Infinity);
    expect(heap / most).toBeGreaterThan(0.55);
    expect(heap / most).toBeLessThan(0.7);
  });
});

describe("alerts", () => {
  it("fire in their stories by Prometheus' own count", ({ skip }) => {
    const promtool = programOf("prometheus");
    if (promtool === undefined) throw skip("there is no promtool here");
    const cwd = new URL("../../deploy/prometheus/", import.meta.url);
    for (const words of ["check rules alerts.yml", "test rules alerts.test.yml"]) {
      const { status, stdout, stderr } = spawnSync(promtool, words.split(" "), {
        cwd,
        encoding: "utf8",
      });
      expect({ words, status }, `${stdout}${stderr}`).toEqual({ words, status: 0 });
    }
  });
});
