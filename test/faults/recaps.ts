import { looking } from "./looking.ts";
import type { Expectation } from "./row.ts";
import type { Stage } from "./stage.ts";

const recap = /^recap:(\w+)-\d+:(\w+)$/;

/** Whether each of these channels got exactly one recap of that part's outage, after its last result. */
export async function oneRecapEach(
  stage: Stage,
  part: "slack" | "redis" | "service",
  channels: readonly string[],
): Promise<Expectation> {
  const key = (name: string) => `{${stage.namespace}}:${name}`;
  await looking(
    async () => {
      const open = await stage.redis.hget(key("outages:watch"), `${part}:open`);
      const due = await stage.redis.zcard(key("outages:due"));
      const unsaid = await stage.redis.zcard(key("notices"));
      return open === null && due + unsaid === 0 ? true : undefined;
    },
    60_000,
    async () => `Outages: ${JSON.stringify(await stage.redis.hgetall(key("outages:watch")))}`,
  );
  const messages = await stage.slack.messages();
  const idOf = (message: (typeof messages)[number]) =>
    String(
      (message.metadata as { event_payload?: { request?: string } } | undefined)?.event_payload
        ?.request,
    );
  const said = messages.flatMap((message) => {
    const [, of, channel] = recap.exec(idOf(message)) ?? [];
    return of === part ? [{ channel: channel ?? "", ts: message.ts, text: message.text }] : [];
  });
  const isAfter = said.every(({ channel, ts }) =>
    messages.every(
      (message) =>
        message.channelId !== channel ||
        !idOf(message).startsWith("r-") ||
        Number(message.ts) < Number(ts),
    ),
  );
  const counts = channels.map((id) => said.filter(({ channel }) => channel === id).length);
  const words = said.map(({ text }) => text.slice(0, 120)).join(" / ");
  return [
    `one recap in each of ${channels.join(", ")} (${counts.join(", ")}), after all results: ${isAfter} — ${words}`,
    counts.every((count) => count === 1) && isAfter,
  ];
}
