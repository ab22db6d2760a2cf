import { describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import { createCompute } from "../../src/fleet/compute/create-compute.ts";
import { startSandboxCompute } from "../../sandbox/compute/start-sandbox-compute.ts";
import { parseCommand } from "../../src/registry/parse.ts";
import { project, vm } from "../core/permit/sample.ts";

const web = { ...vm("web-2"), id: "vm-payments-web-2", name: "web-2" };
const gpu = { ...vm("gpu-1"), id: "vm-ml-gpu-1", name: "gpu-1" };
const staging = { ...project("staging"), id: "prj-staging" };
const nothing = { ...project("shop"), id: "", name: "shop" };

describe("a changing command", () => {
  it.each([
    ["vm start gpu-1", gpu, "POST", "/v1/vms/vm-ml-gpu-1/start", undefined],
    ["vm stop web-2", web, "POST", "/v1/vms/vm-payments-web-2/stop", undefined],
    ["vm restart web-2", web, "POST", "/v1/vms/vm-payments-web-2/restart", undefined],
    [
      "vm resize web-2 --cpu 8 --memory 32",
      web,
      "PATCH",
      "/v1/vms/vm-payments-web-2",
      { specs: { cpu: 8, memory: 32 } },
    ],
    [
      "vm snapshot web-2 nightly",
      web,
      "POST",
      "/v1/vms/vm-payments-web-2/snapshots",
      { name: "nightly" },
    ],
    [
      "vm restore web-2 snap-1",
      web,
      "POST",
      "/v1/vms/vm-payments-web-2/restore",
      { snapshot_id: "snap-1" },
    ],
    [
      "project update staging --name stage --cpu 4",
      staging,
      "PATCH",
      "/v1/projects/prj-staging",
      { name: "stage", specs: { cpu: 4 } },
    ],
    ["project delete staging", staging, "DELETE", "/v1/projects/prj-staging", undefined],
    [
      "project create --name shop --type TEE_VM --region eu --cpu 2 --memory 4 --disk 20",
      nothing,
      "POST",
      "/v1/projects",
      { name: "shop", type: "TEE_VM", region: "eu", specs: { cpu: 2, memory: 4, disk: 20 } },
    ],
    [
      'project create --name shop --type GIT_DEPLOY --region eu --git-url https://git.example/a --build-command "npm ci"',
      nothing,
      "POST",
      "/v1/projects",
      {
        name: "shop",
        type: "GIT_DEPLOY",
        region: "eu",
        git_config: { url: "https://git.example/a", build_command: "npm ci" },
      },
    ],
    [
      "project create --name shop --type CONTAINER --region eu",
      nothing,
      "POST",
      "/v1/projects",
      { name: "shop", type: "CONTAINER", region: "eu" },
    ],
  ])("asks the service once: %s", async (words, target, method, path, body) => {
    await using service = await startSandboxCompute({ transitionMs: 5 });
    const compute = createCompute({
      baseUrl: service.url,
      apiKey: service.apiKey,
      timeoutMs: 60_000,
    });
    try {
      const parsed = parseCommand(words, commands);
      if ("refusal" in parsed) throw new Error(parsed.refusal.text);
      const { command, args } = parsed;
      if (command.kind !== "change") throw new Error(`${command.name} only reads`);
      await command.perform(target, args as never, { compute }).catch(() => undefined);
      const [sent, ...more] = service.writes();
      expect(more).toEqual([]);
      expect(sent).toMatchObject({ method, path });
      expect(sent?.body).toEqual(body);
    } finally {
      await compute.close();
    }
  });
});
