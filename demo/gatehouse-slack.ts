import { readFileSync } from "node:fs";
import { parse } from "yaml";
import {
  type SandboxSlack,
  type SandboxSlackOptions,
  startSandboxSlack,
} from "../sandbox/slack/index.ts";

/** A sandbox Slack whose app is Gatehouse, as `manifest.yml` describes it. */
export function startGatehouseSlack(options: SandboxSlackOptions = {}): Promise<SandboxSlack> {
  const file = new URL("../manifest.yml", import.meta.url);
  const manifest: unknown = parse(readFileSync(file, "utf8"));
  return startSandboxSlack({ manifest, ...options });
}
