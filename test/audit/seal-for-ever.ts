import { startSealer } from "../../src/audit/sealer.ts";
import { silentLog } from "../../src/log/log.ts";
import { createKeys, connectRedis } from "../../src/redis/redis.ts";

/** A process that seals until it is killed: `node seal-for-ever.ts <redis> <namespace> <folder>`. */
const [url = "", namespace = "", dataDir = ""] = process.argv.slice(2);
const redis = await connectRedis(url, "commands", silentLog());
startSealer({
  redis,
  key: createKeys(namespace),
  dataDir,
  log: silentLog(),
  everyMs: 5,
  anchorEveryMs: 0,
});
process.stdout.write("sealing\n");
