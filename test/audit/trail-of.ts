import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../src/log/log.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";
import { type AuditExport, exportAudit } from "../../src/audit/export.ts";
import { startSealer } from "../../src/audit/sealer.ts";
import { Trail } from "../../src/audit/trail.ts";
import { until } from "../support/until.ts";

/** A folder that goes away with the test. */
export async function testFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "gatehouse-audit-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

interface World {
  redis: RedisClient;
  key: Keys;
}

/** An export as its file has it. */
export async function exportedText(options: Parameters<typeof exportAudit>[0]): Promise<string> {
  return (await Array.fromAsync((await exportAudit(options)).text)).join("");
}

export async function exportedFile(options: Parameters<typeof exportAudit>[0]) {
  return JSON.parse(await exportedText(options)) as AuditExport;
}

/** Appends records as a move's script does. Resolves to their ids. */
export async function append(
  { redis, key }: World,
  count: number,
  record: (index: number) => Record<string, unknown> = (index) => ({
    what: "request",
    request: `r-${index}`,
    command: "vm restart",
    target: { kind: "vm", id: `vm-${index % 7}`, name: `web-${index % 7}` },
    requester: `U0${index % 3}`,
    move: "done",
    why: "settled",
  }),
): Promise<string[]> {
  const pipeline = redis.pipeline();
  for (let index = 0; index < count; index++) {
    pipeline.xadd(key("audit"), "*", "at", Date.now(), "record", JSON.stringify(record(index)));
  }
  const answers = (await pipeline.exec()) ?? [];
  return answers.map(([, id]) => String(id));
}

/** Seals all that is there, as a process that starts and stops does: its last head stands on its disk. */
export async function sealAll({ redis, key }: World, dataDir: string): Promise<void> {
  await startSealer({ redis, key, dataDir, log: silentLog() }).close();
}

/** Resolves once all that is in the trail now is sealed, by any process. */
export async function sealed({ redis, key }: World): Promise<void> {
  const trail = new Trail(redis, key);
  const [newest] = await trail.recordsBefore(undefined, 1);
  await until(async () => newest && (await trail.find(newest.id))?.standing).toBe(
    newest && "sealed",
  );
}

type Row = [id: string, fields: string[]];

/** Writes a stream anew, as somebody with the password could. */
export async function rewriteStream(
  { redis }: World,
  stream: string,
  edit: (rows: Row[]) => Row[],
): Promise<void> {
  const rows = edit(await redis.xrange(stream, "-", "+"));
  await redis.del(stream);
  for (const [id, fields] of rows) await redis.xadd(stream, id, ...fields);
}
