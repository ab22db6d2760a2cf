import { readAudit } from "../../audit/read-audit.ts";
import type { Fact, FactSource } from "../../core/facts/fact.ts";
import { md, mention, name, when } from "../../messages/markdown.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { calledName, takesBreakGlass } from "../../registry/define.ts";
import type { HandoverPart } from "../digest-part.ts";
import { longestMs } from "./open-console.ts";

/** More than are ever opened within `longestMs`. */
const mostOpen = 1000;

interface Trail {
  redis: RedisClient;
  key: Keys;
}

/** The consoles that were opened through Gatehouse and have not expired. */
async function openConsoles({ redis, key }: Trail, now: number) {
  const after = now - longestMs;
  const { entries } = await readAudit({
    redis,
    key,
    recordKinds: ["console"],
    after,
    most: mostOpen,
  });
  return entries.flatMap(({ record }) => consoleOf(record, now) ?? []);
}

/** Says who has a console open on a VM. It matters to changes that would interrupt them. */
export const consoleFacts = ({
  personName,
  ...trail
}: Trail & { now(): number; personName(userId: string): Promise<string> }): FactSource => ({
  name: "open consoles",
  async read({ targets, change }) {
    if (change && !takesBreakGlass(change.command)) return [];
    const open = Map.groupBy(await openConsoles(trail, trail.now()), ({ vmId }) => vmId);
    if (open.size === 0) return [];
    const consoles = targets.flatMap((target) =>
      (open.get(target.id) ?? []).map((opened) => ({ target, ...opened })),
    );
    return Promise.all(
      consoles.map(async ({ target, opener, until }): Promise<Fact> => ({
        kind: "console",
        about: target,
        severity: "info",
        sign: "🖥️",
        text: md`${name(calledName(target))} has a console that ${await personName(opener)} opened, until ${when(until, "{time}")}.`,
        blocks: (command) => (takesBreakGlass(command) ? "note" : undefined),
      })),
    );
  },
});

/** Lists the consoles that were opened through Gatehouse and have not expired. */
export function consolesInHandovers(trail: Trail): HandoverPart {
  return {
    name: "Consoles",
    async read({ seesVm, now }) {
      const open = await openConsoles(trail, now);
      const isSeen = await Promise.all(open.map(({ vmId }) => seesVm(vmId)));
      const lines = open
        .filter((_, index) => isSeen[index])
        .map(
          ({ vm, opener, until }) =>
            md`${name(vm)}: ${mention(opener)}, until ${when(until, "{time}")}`,
        );
      return { title: "Consoles open", none: "none that Gatehouse opened", lines };
    },
  };
}

function consoleOf(record: Readonly<Record<string, unknown>>, now: number) {
  const { what: kind, who, until, target } = record;
  if (kind !== "console" || typeof until !== "number" || typeof who !== "string") return undefined;
  if (until <= now) return undefined;
  const { id = "", name: vm = "?" } = (target ?? {}) as { id?: unknown; name?: unknown };
  return { vm: String(vm), vmId: String(id), opener: who, until };
}
