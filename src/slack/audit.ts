import { openAnchors } from "../audit/anchors.ts";
import { findSigningKey } from "../audit/checkpoint.ts";
import { exportAudit, exportText } from "../audit/export.ts";
import { readAudit } from "../audit/read.ts";
import { renderAudit, renderVerdict } from "../audit/render.ts";
import { verifyAudit } from "../audit/verify.ts";
import type { Inventory } from "../inventory/inventory.ts";
import { sentence } from "../messages/message.ts";
import { md } from "../messages/text.ts";
import type { Keys, RedisClient } from "../redis.ts";
import type { Answer } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { Store } from "../requests/store.ts";
import { resolveTarget } from "./resolve.ts";

const most = 30;

/** `/gatehouse audit`: who looks is itself in the trail. */
export function createAuditAnswers(on: {
  redis: RedisClient;
  key: Keys;
  dataDir: string;
  store: Pick<Store, "note">;
  inventory: Inventory;
}): (words: string, person: Person) => Promise<Answer> {
  const { redis, key, dataDir, store, inventory } = on;
  return async (words, person) => {
    const who = { who: person.id, team: person.teamId };
    const wanted = words.trim();
    await store.note({
      what: wanted === "export" ? "audit-export" : "audit-read",
      ...who,
      about: wanted.slice(0, 100),
    });
    if (wanted === "verify") {
      const anchors = openAnchors(dataDir, key.namespace).all;
      return { message: renderVerdict(await verifyAudit({ redis, key, anchors })) };
    }
    if (wanted === "export") {
      const signingKey = findSigningKey(dataDir);
      const exported = await exportAudit({ redis, key, ...(signingKey ? { signingKey } : {}) });
      const text = md`${exported.records.length} records are in the file in your direct messages. It says itself how to verify it; ${"node src/main.ts audit verify FILE"} does it too.`;
      const name = `gatehouse-audit-${new Date().toISOString().slice(0, 10)}.json`;
      return {
        message: sentence(text),
        file: { name, title: "The audit trail", content: exportText(exported) },
      };
    }
    if (wanted === "") return { message: renderAudit(await readAudit({ redis, key, most })) };
    const named = /^<?@?([UW][A-Z0-9]{2,})/.exec(wanted)?.[1];
    const filter = /^r-[a-z0-9]{4,}$/.test(wanted)
      ? { requestId: wanted }
      : named
        ? { who: named }
        : { targetId: await targetIdOf(wanted, inventory) };
    return { message: renderAudit(await readAudit({ redis, key, most, ...filter }), wanted) };
  };
}

/** A VM or a project by its name; what is gone is still found by its id. */
async function targetIdOf(words: string, inventory: Inventory): Promise<string> {
  const vm = await inventory.findVm(words);
  if ("found" in vm) return vm.found.id;
  const project = await inventory.findProject(words);
  if ("found" in project) return project.found.id;
  return "ambiguous" in vm ? (await resolveTarget("vm", words, inventory)).id : words;
}
