import { silentLog } from "../../src/log/log.ts";
import { createKeys, connectRedis } from "../../src/redis/redis.ts";
import { measureLookups } from "./inventory.ts";

// In a process of its own: only its memory counts. The address of Redis is its argument.
const redis = await connectRedis(process.argv[2] ?? "", "commands", silentLog());
const measure = () => measureLookups({ redis, key: createKeys("bench") });
// A reader waits two seconds for its first copy; on a busy machine that may be too short
const figures = await measure().catch(measure).catch(measure);
process.stdout.write(`${JSON.stringify(figures)}\n`);
redis.disconnect();
