import { startPage } from "./page/page.ts";
import { startWorld } from "./world.ts";

/** `npm run demo`: a whole world on this machine and its page; Ctrl-C stops everything. */
const began = performance.now();
const isVerbose = process.argv.includes("--verbose");
const stopping = Promise.withResolvers<void>();
process.on("SIGINT", () => stopping.resolve());
process.on("SIGTERM", () => stopping.resolve());

process.stdout.write("Starting Redis, a compute service, a Slack and Gatehouse…\n");
const world = await startWorld({
  roles: ["gateway", "worker"],
  onLog: (line) => {
    if (isVerbose || /"level":"error"/.test(line)) process.stderr.write(line);
  },
});
const page = await startPage({ slack: world.slack });
const seconds = ((performance.now() - began) / 1000).toFixed(1);
process.stdout.write(`
Ready after ${seconds} s. Open this page:

  ${page.url}

You are Olivia, on call. Try in #ops:   /vm list   ·   /vm restart web-2   ·   /vm restore db-1
Amir approves, Vera only looks, Ada administers: switch between them at the top left.
Ctrl-C stops everything.
`);
await stopping.promise;
process.stdout.write("\nStopping…\n");
await page.close();
await world.close();
process.exit(0);
