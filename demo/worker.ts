// A worker as a process of its own, on this machine only, so that the demo can kill it. It ends on SIGTERM, or when whoever holds
// its input is gone; Ctrl-C is for them.
import { loadConfig } from "../src/config/config.ts";
import { createLog, hideSecret } from "../src/log/log.ts";
import { createOutput } from "../src/log/output.ts";
import { demoPace } from "./demo-world.ts";
import { sandboxRoots } from "../sandbox/evidence/index.ts";
import { start } from "../src/operate/start.ts";
import { features, policyTerms } from "../src/features/index.ts";

const config = loadConfig({ role: "worker", terms: policyTerms, pace: demoPace });
for (const secret of config.secrets) hideSecret(secret);
const { write } = createOutput(process.stdout);
const log = createLog({ level: config.logLevel, base: { role: config.role }, write });
process.on("SIGINT", () => undefined);
process.stdin.resume().once("close", () => process.exit(0));
const worker = await start(config, log, {
  features,
  host: "127.0.0.1",
  roots: sandboxRoots,
  onWedged: () => process.exit(1),
});
process.once("SIGTERM", () => void worker.close().then(() => process.exit(0)));
