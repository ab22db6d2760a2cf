import { commands } from "../src/commands/index.ts";
import { loadConfig } from "../src/config/config.ts";
import { createLog, hideSecret } from "../src/log/log.ts";
import { operationsOf } from "../src/policy/approval-rule.ts";
import { demoPace } from "./demo-world.ts";
import { sandboxRoots } from "../sandbox/evidence/index.ts";
import { start } from "../src/start/start.ts";

/**
 * A worker as a process of its own, on this machine only, so that the demo can kill it. It ends on SIGTERM, or when
 * whoever holds its input is gone; Ctrl-C is for them.
 */
const operations = operationsOf(commands);
const config = loadConfig({ role: "worker", operations, pace: demoPace });
for (const secret of config.secrets) hideSecret(secret);
const log = createLog({ level: config.logLevel, base: { role: config.role } });
process.on("SIGINT", () => undefined);
process.stdin.resume().once("close", () => process.exit(0));
const worker = await start(config, log, {
  host: "127.0.0.1",
  roots: sandboxRoots,
  onWedged: () => process.exit(1),
});
process.once("SIGTERM", () => void worker.close().then(() => process.exit(0)));
