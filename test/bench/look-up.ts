import { silentLog } from "../../src/log.ts";
import { connectRedis, createKeys } from "../../src/redis.ts";
import { measureLookups } from "./inventory.ts";

// In a process of its own: only its memory counts. The address of Redis is its argument.
const redis = await connectRedis(process.argv[2] ?? "", "commands", silentLog());
const figures = await measureLookups({ redis, key: createKeys("bench") });
process.stdout.write(`${JSON.stringify(figures)}\n`);
redis.disconnect();
