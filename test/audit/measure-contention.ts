import { createHash } from "node:crypto";
import { z } from "zod";
import { silentLog } from "../../src/log/log.ts";
import { createKeys, connectRedis, defineScript, type RedisClient } from "../../src/redis/redis.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";

/**
 * What linking a record costs a move: appended only (a sealer links it later), or linked by the writer, who hashes against
 * the head it knows and is told the new one when somebody was faster. `node test/audit/measure-contention.ts` prints the
 * table of the decision record.
 */
const append = `redis.call('XADD', KEYS[1], '*', 'at', '1', 'record', ARGV[1]) return {'ok'}`;
const link = `
local head = redis.call('GET', KEYS[2]) or ''
if head ~= ARGV[2] then return {'stale', head} end
redis.call('XADD', KEYS[1], '*', 'at', '1', 'record', ARGV[1], 'hash', ARGV[3])
redis.call('SET', KEYS[2], ARGV[3])
return {'ok'}`;

const record = JSON.stringify({ what: "request", text: "x".repeat(400) });
const total = 4000;
const reply = z.array(z.string());

interface Figures {
  perSecond: number;
  p99Ms: number;
  triesPerRecord: number;
}

async function measure(
  url: string,
  writers: number,
  isLinking: boolean,
  name: string,
): Promise<Figures> {
  const key = createKeys(name);
  const connections = await Promise.all(
    Array.from({ length: writers }, () => connectRedis(url, "worker", silentLog())),
  );
  let tries = 0;
  const took: number[] = [];
  const write = async (redis: RedisClient) => {
    const run = defineScript(redis, "measured", isLinking ? link : append);
    let head = "";
    for (let count = 0; count < total / writers; count++) {
      const begun = performance.now();
      for (;;) {
        tries++;
        const hash = createHash("sha256").update(head).update(record).digest("hex");
        const args = isLinking ? [record, head, hash] : [record];
        const [said, now] = reply.parse(await run([key("audit"), key("head")], args));
        head = said === "ok" ? hash : (now ?? "");
        if (said === "ok") break;
      }
      took.push(performance.now() - begun);
    }
  };
  const begun = performance.now();
  await Promise.all(connections.map(write));
  const seconds = (performance.now() - begun) / 1000;
  for (const redis of connections) redis.disconnect();
  return {
    perSecond: Math.round(total / seconds),
    p99Ms: Number(took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)]?.toFixed(1)),
    triesPerRecord: Number((tries / took.length).toFixed(2)),
  };
}

const server = await startRedis();
for (const writers of [1, 4, 16, 64]) {
  for (const isLinking of [false, true]) {
    const figures = await measure(server.url, writers, isLinking, `m${writers}-${isLinking}`);
    const how = isLinking ? "linked by the writer" : "appended";
    process.stdout.write(
      `${writers} writers, ${how}: ${figures.perSecond}/s, p99 ${figures.p99Ms} ms, ${figures.triesPerRecord} tries each\n`,
    );
  }
}
await server.stop();
