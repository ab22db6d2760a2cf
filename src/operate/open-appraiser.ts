import { createAppraiser, createEvidenceRegister } from "../attestation/appraiser.ts";
import { type PinTrail, createAcceptedPins } from "../attestation/pins.ts";
import { createRefresher } from "../attestation/refresher.ts";
import { Trail } from "../audit/trail.ts";
import type { Compute } from "../fleet/compute/compute.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { TrustedRoots } from "../verifier/roots.ts";
import { judgeFolder, lookAtFolder } from "./checks/folders.ts";
import type { Opened } from "./opened.ts";

/**
 * Creates the appraiser of evidence, with the refresher of its endorsements and the pins that
 * people approved.
 */
export function openAppraiser(on: {
  config: Config;
  redis: RedisClient;
  key: Keys;
  compute: Compute;
  roots: TrustedRoots;
  log: Log;
  opened: Opened;
}) {
  const { config, redis, key, compute, roots, log, opened } = on;
  // Both are read once, at the start. Changing them needs a restart.
  const { refresh: addresses, endorsements: folder } = config.policy.attestation;
  warnOfFolder(config, log);
  const refresher =
    addresses && folder !== undefined
      ? opened(createRefresher({ folder, addresses, roots, log, now: Date.now }))
      : undefined;
  const trail = new Trail(redis, key);
  const pinTrail: PinTrail = {
    find: (id) => trail.find(id),
    async alarm(name, record) {
      if (await trail.appendOnce(name, record)) log.error("pin.forged", record);
    },
  };
  return createAppraiser({
    config,
    compute,
    register: createEvidenceRegister(redis, key),
    accepted: createAcceptedPins({
      redis,
      key,
      trail: pinTrail,
      secret: () => config.slack.botToken,
    }),
    roots,
    refresher,
    now: Date.now,
  });
}

function warnOfFolder({ policy, policyFile }: Config, log: Log): void {
  for (const { severity: kind, text: result, next, about = [] } of judgeFolder(
    lookAtFolder(policy.attestation),
  )) {
    const why = policyFile.placeOf([about].flat()) + result;
    if (kind !== "well")
      log[kind === "alarm" ? "warn" : "info"]("endorsements.folder", { why, hint: next });
  }
}
