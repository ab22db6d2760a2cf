import { createAcceptedPins } from "../../src/attestation/pins.ts";
import {
  type Appraiser,
  createAppraiser,
  createEvidenceRegister,
} from "../../src/attestation/appraiser.ts";
import { Trail } from "../../src/audit/trail.ts";
import type { Compute } from "../../src/fleet/compute/compute.ts";
import type { Policy } from "../../src/config/policy-file.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";
import { sandboxRoots } from "../../sandbox/evidence/vendors.ts";

/** The judge of the sandbox's evidence. */
export const sandboxAppraiser = (by: {
  compute: Pick<Compute, "vms">;
  policy: Policy;
  redis: RedisClient;
  key: Keys;
}): Appraiser => {
  const trail = new Trail(by.redis, by.key);
  return createAppraiser({
    compute: by.compute,
    config: by,
    register: createEvidenceRegister(by.redis, by.key),
    accepted: createAcceptedPins({
      redis: by.redis,
      key: by.key,
      trail: {
        find: (id) => trail.find(id),
        alarm: async (name, record) => void (await trail.appendOnce(name, record)),
      },
      secret: () => "xoxb-test",
    }),
    roots: sandboxRoots,
    now: Date.now,
  });
};
