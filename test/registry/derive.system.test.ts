import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { compileCache } from "../support/compile-cache.ts";

const program = fileURLToPath(new URL("../../scripts/derive.ts", import.meta.url));

function derive(folder: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, ...compileCache },
  });
  return { status, stdout, stderr };
}

describe("npm run derive", () => {
  it("names the version of package.json wherever deploy/ names the image", () => {
    const folder = mkdtempSync(join(tmpdir(), "derive-"));
    try {
      const { version } = JSON.parse(
        readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
      ) as { version: string };
      const places = {
        "deploy/helm/gatehouse/Chart.yaml": "apiVersion: v2\nversion: 0.0.1\nappVersion: 0.0.1\n",
        "deploy/kubernetes/base/kustomization.yaml":
          "images:\n  - name: gatehouse\n    newTag: 0.0.1 # or a digest\n",
        "docs/operate.md": "    docker build -t registry.example/gatehouse:0.0.1 .\n",
      };
      for (const [name, text] of Object.entries(places)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), text);
      }
      expect(derive(folder).status).toBe(0);
      for (const [name, text] of Object.entries(places))
        expect(readFileSync(join(folder, name), "utf8")).toBe(text.replaceAll("0.0.1", version));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("writes what is stale, and with --check only names it", () => {
    const folder = mkdtempSync(join(tmpdir(), "derive-"));
    try {
      const readme = join(folder, "README.md");
      const markers =
        "<!-- commands: made from src/commands by npm run derive -->\n<!-- /commands -->\n";
      const stale = 'manifest.yml is stale: run "npm run derive"\n';
      writeFileSync(readme, markers);
      expect(derive(folder)).toEqual({
        status: 0,
        stdout: [
          "manifest.yml",
          "README.md",
          "gatehouse.example.yml",
          "gatehouse.schema.json",
          "src/cli/change-words.json",
        ]
          .map((file) => `${file} is written\n`)
          .join(""),
        stderr: "",
      });
      expect(readFileSync(readme, "utf8")).toContain("| `/vm restart <vm…>` |");
      appendFileSync(join(folder, "manifest.yml"), "extra: true\n");
      expect(derive(folder, "--check")).toEqual({ status: 1, stdout: "", stderr: stale });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
