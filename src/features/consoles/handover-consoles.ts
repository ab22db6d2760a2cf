import { readAudit } from "../../audit/trail.ts";
import { md, mention, name, when } from "../../messages/message.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { HandoverPart } from "../digest-part.ts";

/** Consoles last minutes, so the newest records hold them. */
const newestRecords = 1000;

/** Lists the consoles that were opened through Gatehouse and have not expired. */
export function consolesInHandovers({
  redis,
  key,
}: {
  redis: RedisClient;
  key: Keys;
}): HandoverPart {
  return {
    name: "Consoles",
    async read({ seesVm, now }) {
      const { entries } = await readAudit({ redis, key, most: newestRecords });
      const open = entries.flatMap(({ record }) => consoleOf(record, now) ?? []);
      const isSeen = await Promise.all(open.map(({ vmId }) => seesVm(vmId)));
      const lines = open
        .filter((_, index) => isSeen[index])
        .map(
          ({ vm, by, until }) => md`${name(vm)}: ${mention(by)}, until ${when(until, "{time}")}`,
        );
      return { title: "Consoles open", none: "none that Gatehouse opened", lines };
    },
  };
}

function consoleOf(record: Readonly<Record<string, unknown>>, now: number) {
  const { what, who, until, target } = record;
  if (what !== "console" || typeof until !== "number" || typeof who !== "string") return undefined;
  if (until <= now) return undefined;
  const { id = "", name: vm = "?" } = (target ?? {}) as { id?: unknown; name?: unknown };
  return { vm: String(vm), vmId: String(id), by: who, until };
}
