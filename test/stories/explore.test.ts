import { it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { wordsOf } from "./words.ts";

it("x", async () => {
  const t0 = performance.now();
  await using world = await startWorld();
  console.log("start", performance.now() - t0);
  let n = 0;
  for (const text of ["/vm", "/vm rstart web-2", "/gatehouse nonsense", "/vm restart", "/vm restart web-2 --force", "/vm restart web-2 web-1", "/vm show web-2 extra", "/vm restart nope-such", "/vm restart web-3", "/vm restart web-1", "/vm list --stauts ERROR", "/vm resize web-2 --cpu 1e9 --memory 4", "/vm resize web-2 --cpu 4","/vm restart web-*", "/vm restart vault-1", "/vm stop vault-1", "/vm list", "/vm show web-2", "/vm metrics web-2", "/vm attest web-2", "/project list", "/project show payments", "/project show nope", "/gatehouse jobs", "/gatehouse status", "/gatehouse help", "/gatehouse help vm restart", "/gatehouse help blub", "/gatehouse approvals", "/gatehouse can-i vm restore db-1", "/gatehouse can-i vm restart web-2", "/gatehouse audit", "/gatehouse freeze x", "/vm snapshots db-1", "/gatehouse why r-abcdefgh", "/gatehouse why foo", "/vm list nope", "/vm start web-2", "/vm restart gpu-1", "/vm list --status ERROR", "/vm list --status FOO", "/vm stop train-7"]) {
    const before = world.olivia.seesChannel("ops").messages.length;
    await world.olivia.types("ops", text);
    await world.olivia.until(() => world.olivia.seesChannel("ops").messages.length > before, 3000).catch(() => console.log("nothing for", text));
    if (/restart|start|stop/.test(text)) await world.settled();
    console.log("\n>>> " + text);
    for (const m of world.olivia.seesChannel("ops").messages.slice(before)) console.log((m.ephemeral ? "(only you) " : m.threadTs ? "(thread) " : "") + wordsOf(m) + "\n   TEXT: " + m.text);
    n++;
  }
}, 60000);
