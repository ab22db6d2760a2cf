import { writeEndorsements } from "../evidence/vendors.ts";
import { fieldsOf } from "./checks.ts";
import { type SandboxComputeOptions, startSandboxCompute } from "./start-sandbox-compute.ts";

/**
 * The sandbox of the compute service as a process of its own:
 *
 *     node sandbox/compute/main.ts '{"transitionMs": [20, 80], "seed": 7}'
 *
 * Options as JSON, as the first argument or in SANDBOX_COMPUTE; with `endorsements` it fills that folder with what vouches for
 * the evidence that it makes. Prints one line of JSON when it is ready: url, apiKey, controlUrl, seed. Ends on SIGTERM, SIGINT, or when the process that forked it goes away.
 */
const { endorsements, ...options } = fieldsOf(
  JSON.parse(process.argv[2] ?? process.env["SANDBOX_COMPUTE"] ?? "{}"),
) as SandboxComputeOptions & { endorsements?: string };
if (endorsements !== undefined) await writeEndorsements(endorsements);
const sandbox = await startSandboxCompute({ controlPort: 0, ...options });
const { url, apiKey, controlUrl, seed } = sandbox;
process.stdout.write(`${JSON.stringify({ url, apiKey, controlUrl, seed })}\n`);

for (const signal of ["SIGTERM", "SIGINT", "disconnect"] as const) {
  process.once(signal, () => {
    void sandbox.close().then(() => process.exit(0));
  });
}
