import { lineOf } from "./checker.ts";
import { runCampaign } from "./campaign.ts";
const [n = "60", seed = "1"] = process.argv.slice(2);
const c = await runCampaign({
  operations: Number(n),
  seed: Number(seed),
  say: console.log,
  keep: true,
});
console.log(c.frozen, c.whys);
console.log(lineOf(c.verdict));
console.log(c.verdict.ends, c.kills, c.freezes, c.calls, c.seconds);
for (const f of c.verdict.findings.slice(0, 30)) console.log(f);
for (const f of c.crashes.slice(0, 10)) console.log("CRASH", f.slice(0, 600));
process.exit(0);
