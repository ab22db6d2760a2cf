import { once } from "node:events";
import { writeSync } from "node:fs";
import { sandboxRoots } from "../../sandbox/evidence/vendors.ts";
import type { VendorAddresses } from "../../src/attestation/refresher.ts";
import { createRefresher } from "../../src/attestation/refresher.ts";
import { silentLog } from "../../src/log/log.ts";
import { endorsementsNeeded } from "../../src/verifier/verify-evidence.ts";

/**
 * A refresher in a process of its own, which may be killed: says that it is loaded, and fetches at the first line that it hears.
 *
 *     node test/attestation/refreshing.ts '{"folder": "…", "addresses": {…}, "evidence": ["base64"]}'
 */
const told = JSON.parse(process.argv[2] ?? "{}") as {
  folder: string;
  addresses: VendorAddresses;
  evidence: readonly string[];
};
const { folder, addresses } = told;
const roots = sandboxRoots;
const refresher = createRefresher({ folder, addresses, roots, log: silentLog(), now: Date.now });
writeSync(1, '{"loaded":true}\n');
await once(process.stdin, "data");
for (const one of told.evidence) {
  const needed = endorsementsNeeded(Buffer.from(one, "base64"));
  if (needed) await refresher.ensure(needed);
}
await once(process.stdin, "end");
