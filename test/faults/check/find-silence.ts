import type { Journalled } from "./count-effects.ts";

/** A message as the sandbox Slack keeps it. */
export interface SlackMessage {
  ts: string;
  channelId: string;
  text: string;
  metadata?: { event_type?: string; event_payload?: Record<string, unknown> };
}

/**
 * A request that ended (or waits for a person) without having said so exactly once, and cards that tell an older story.
 * Messages are known by their metadata, which also says what else they say and whose results they tell; what went to a
 * response URL, or stands on a shared card, is known by the mark the bot left.
 */
export function findSilence(
  journal: readonly Journalled[],
  messages: readonly SlackMessage[],
): string[] {
  const said = new Map<string, SlackMessage[]>();
  const note = (key: string, message: SlackMessage) =>
    said.set(key, [...(said.get(key) ?? []), message]);
  for (const message of messages) {
    const { request, said: what, covers, tells } = message.metadata?.event_payload ?? {};
    if (typeof request !== "string") continue;
    for (const key of [what, ...wordsOf(covers)]) note(`${request} ${String(key)}`, message);
    for (const told of wordsOf(tells)) note(`${told} result`, message);
  }
  const findings: string[] = [];
  for (const request of journal) {
    if (hasNoCard(request, said)) continue;
    const wanted = request.isFinal ? "result" : request.state === "unknown" ? "unknown" : undefined;
    if (wanted !== undefined && request.fields["fallback"] === undefined) {
      const found = said.get(`${request.id} ${wanted}`)?.length ?? 0;
      if (found !== 1)
        findings.push(
          `silent: ${request.id} ${request.command} ${request.state}: its ${wanted} was said ${found} times`,
        );
      const shared = /^shared (.+)/.exec(request.fields["said:card"] ?? "")?.[1];
      const cards = said.get(`${shared ?? request.id} card`) ?? [];
      if (cards.length !== 1) findings.push(`silent: ${request.id}: ${cards.length} cards`);
      // “Stopping web-1…”, “Stop web-1: Requested. …”; a longer text is only cut
      const stale = cards.find(
        ({ text }) => request.isFinal && /^\w+ing [^:]*…$|: Requested\. /.test(text.trim()),
      );
      if (stale)
        findings.push(`silent: ${request.id} is ${request.state}, its card says “${stale.text}”`);
    }
  }
  const known = new Set(journal.map(({ id }) => id));
  for (const [key, list] of said) {
    const [id = "", what = ""] = key.split(" ");
    if (!known.has(id)) continue;
    if (list.length > 1 && !["result", "unknown", "card"].includes(what))
      findings.push(`silent: ${id}: ${what} was said ${list.length} times`);
  }
  return findings;
}

const wordsOf = (words: unknown) => (typeof words === "string" ? words.split(" ") : []);

/** What serves another request is told by that one's message, unless its outcome is unknown: then a person is asked. */
function hasNoCard({ id, origin, state }: Journalled, said: ReadonlyMap<string, unknown>): boolean {
  return (
    (origin === "safety" || origin === "rollout") && state !== "unknown" && !said.has(`${id} card`)
  );
}
