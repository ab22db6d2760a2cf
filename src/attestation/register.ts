import { defineScript, type Keys, type RedisClient, redisTimeLua } from "../redis/redis.ts";

/** KEYS of the VM, marks   ARGV VM, ms → for each mark: whose it is, and when it was first seen (Redis, ms) */
const claim = `${redisTimeLua}
local found = {}
redis.call('SET', KEYS[1], now, 'PX', ARGV[2])
for n = 2, #KEYS do
  local mark = KEYS[n]
  local first = redis.call('SET', mark, ARGV[1] .. ' ' .. now, 'PX', ARGV[2], 'NX', 'GET')
  if first then redis.call('PEXPIRE', mark, ARGV[2]) end
  table.insert(found, first or (ARGV[1] .. ' ' .. now))
end
return found
`;

/** From the last time it was seen: longer than anyone keeps a stored report to show it again, short enough that what is gone leaves nothing. */
const rememberedMs = 90 * 86_400_000;

export type EvidenceRegister = ReturnType<typeof createEvidenceRegister>;

/**
 * Whose each piece of genuine evidence is: by the SHA-256 of its signed bytes, and by REPORT_ID, which SNP draws for each
 * boot. The compute service takes no nonce, so this alone tells an old report after a restart, and one report under two VMs.
 */
export function createEvidenceRegister(redis: RedisClient, key: Keys) {
  const run = defineScript(redis, "gatehouseClaimEvidence", claim);
  const ofVm = (vmId: string) => key("evidence", "of", vmId);
  return {
    /** When genuine evidence of this VM was seen last (Redis, ms), which the service can't take back. */
    async lastSeen(vmId: string): Promise<number | undefined> {
      const at = await redis.get(ofVm(vmId));
      return at === null ? undefined : Number(at);
    },

    /** Only of evidence whose signatures hold: a made-up one must not take another's place. `notBefore` in Redis's time. */
    async seen(
      vmId: string,
      marks: { digest: string; reportId?: string | undefined },
      notBefore: number | undefined,
    ): Promise<"before the change" | "under another VM" | undefined> {
      const names = [marks.digest, ...(marks.reportId === undefined ? [] : [marks.reportId])];
      const keys = [ofVm(vmId), ...names.map((name) => key("evidence", name))];
      const found = (await run(keys, [vmId, rememberedMs])) as string[];
      const owners = found.map((text) => {
        const space = text.lastIndexOf(" ");
        return { vmId: text.slice(0, space), firstAt: Number(text.slice(space + 1)) };
      });
      if (owners.some((owner) => owner.vmId !== vmId)) return "under another VM";
      const isOld = owners.some(({ firstAt }) => notBefore !== undefined && firstAt < notBefore);
      return isOld ? "before the change" : undefined;
    },
  };
}
