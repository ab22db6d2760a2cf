import { expect, it } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/index.ts";
import { until } from "../../support/until.ts";
import { call } from "./calling.ts";

it.each([
  ["the VM itself", ["GET /v1/vms/vm-payments-web-2"]],
  ["its list four times", Array.from({ length: 4 }, () => "GET /v1/projects/prj-payments/vms")],
])(
  "a restart whose state must be read first stays REBOOTING until somebody reads %s",
  async (_, reads) => {
    await using sandbox = await startSandboxCompute({ transitionMs: 1, isReadFirst: true });
    await call(sandbox, "POST /v1/vms/vm-payments-web-2/restart");
    await sandbox.settled();
    for (const read of reads) {
      expect(sandbox.vm("web-2").status).toBe("REBOOTING");
      expect(JSON.stringify((await call(sandbox, read)).body)).toContain("REBOOTING");
    }
    await until(() => sandbox.vm("web-2").status).toBe("RUNNING");
  },
);
