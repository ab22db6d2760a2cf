import type { Message } from "../messages/message.ts";
import { duration, lines, type Markdown, md, mention, name, when } from "../messages/text.ts";
import type { ConsoleFact, Facts, RequestFact } from "./facts.ts";
import { renderDigest } from "./render-digest.ts";

const most = 8;

/** Approvals and unknown outcomes have lines of their own. */
const underWay = new Set(["authorized", "sending", "accepted", "unclear", "not-applied"]);

/**
 * What somebody who takes the shift should know: the digest with nothing snoozed away, after what runs right now. Made for
 * one person, so it mentions nobody else who would be notified.
 */
export function renderHandover(
  facts: Facts,
  consoles: readonly ConsoleFact[] | undefined,
): Message {
  const running = (facts.open ?? []).filter(({ state }) => underWay.has(state));
  const intro = lines(
    runningWords(facts.open && running),
    ...running.slice(0, most).map((request) => row(request, facts.now)),
    running.length > most &&
      md`… and ${running.length - most} more; ${name("/gatehouse jobs")} lists them.`,
    consolesWords(consoles),
    ...(consoles ?? [])
      .slice(0, most)
      .map(
        ({ vm, by, until }) => md`• ${name(vm)}: ${mention(by)}, until ${when(until, "{time}")}`,
      ),
  );
  const { message } = renderDigest(facts, {
    title: "Hand-over",
    snoozed: new Set(),
    isPrivate: true,
    intro,
  });
  return message;
}

function runningWords(running: readonly RequestFact[] | undefined): Markdown {
  if (!running) return md`*Running:* could not be read.`;
  return running.length === 0 ? md`*Running:* nothing.` : md`*Running:*`;
}

function row({ command, target, requester, state, createdAt }: RequestFact, now: number): Markdown {
  return md`• ${command} ${name(target.name)}: ${state} for ${duration(Math.max(1000, now - createdAt))}, asked by ${requester}`;
}

function consolesWords(consoles: readonly ConsoleFact[] | undefined): Markdown {
  if (!consoles) return md`*Consoles:* could not be read.`;
  return consoles.length === 0 ? md`*Consoles open:* none that I opened.` : md`*Consoles open:*`;
}
