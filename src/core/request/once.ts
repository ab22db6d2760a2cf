import { type Keys, type RedisClient, defineScript } from "../../redis/redis.ts";
import { type Freeze, parseFreeze } from "./freeze.ts";

/**
 * Uses a name up, unless changes are frozen.
 *
 * KEYS name, freeze   ARGV how long it is remembered (ms) → {'first'} | {'again'} | {'frozen', freeze}
 */
const useOnce = `
local freeze = redis.call('GET', KEYS[2])
if freeze then return {'frozen', freeze} end
return {redis.call('SET', KEYS[1], '1', 'PX', ARGV[1], 'NX') and 'first' or 'again'}
`;

type Use = { kind: "first" } | { kind: "again" } | { kind: "frozen"; freeze: Freeze };

/** Lets something happen once, in whichever process it comes up first. */
export function createOnce(redis: RedisClient, key: Keys) {
  const runUseOnce = defineScript(redis, "gatehouseUseOnce", useOnce);
  return {
    /**
     * Resolves with `first` for the first caller within this time, across all processes. Nobody is
     * the first while changes are frozen.
     */
    async useOnce(name: string, forMs: number): Promise<Use> {
      const keys = [key("used", name), key("freeze")];
      const [outcome, freeze] = (await runUseOnce(keys, [forMs])) as [Use["kind"], string?];
      if (outcome === "frozen") return { kind: outcome, freeze: parseFreeze(freeze ?? "", key) };
      return { kind: outcome };
    },
  };
}
