import { UserError } from "../errors.ts";
import { context, message, type Message, section } from "../messages/message.ts";
import { duration, Markdown, md, name, when } from "../messages/text.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import { publicly } from "./publicly.ts";
import { isRefused, noteRefusal } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import { resolveTarget } from "./resolve.ts";
import { readContext } from "./run.ts";
import type { Talk } from "./talk.ts";

/** When the service doesn't say how long a session is good for. */
const shownForMs = 60_000;
/** Slack lets a response URL be used for half an hour. */
const longestMs = 25 * 60_000;
/** A used button is remembered for longer than it works (ms). */
const rememberMs = 3_600_000;

/**
 * Opens a console and shows its address to whoever pressed, in place of the button, and takes it away when it expires.
 * Only for the one who was offered it, once and in time; whoever else tries stands in the audit trail.
 * The address lives in this function and in that one ephemeral message: not in Redis, logs, the audit trail or errors.
 */
export async function openConsole(
  ask: Extract<Ask, { kind: "button" }>,
  value: Record<string, unknown>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const command = talk.commands.find((one) => one.name === "vm console");
  if (!command || command.kind !== "read" || typeof value["vm"] !== "string") {
    throw new UserError("This button no longer works.", "Ask again with `/vm console`.");
  }
  const person = await talk.person(ask.userId, ask.teamId, { fresh: true });
  const vm = await resolveTarget("vm", value["vm"], talk.inventory);
  const asked = { command, targets: [vm], person, channelId: ask.channelId };
  const notYours = refusalOfOffer(value, person.id, talk.now());
  if (notYours) {
    await noteRefusal(asked, notYours.rule, talk);
    throw new UserError(notYours.text, "`/vm console` offers another.");
  }
  if (await isRefused(asked, reply, talk)) return;
  // The checks of the command once more: what was offered minutes ago may not be allowed now
  await command.answer(value, readContext(person, ask, talk));
  const frozen = await talk.store.freezeState();
  if (frozen) throw new UserError(`All changes are frozen by ${frozen.by}, consoles too.`);
  if (!(await talk.store.useOnce(`console:${String(value["once"])}`, rememberMs))) {
    await noteRefusal(asked, "console.once", talk);
    throw new UserError("This button was used already.", "`/vm console` offers another.");
  }
  const session = await talk.compute.vms.console(vm.id);
  const now = talk.now();
  const told = session.expiresAt === undefined ? Number.NaN : Date.parse(session.expiresAt);
  const until = Math.min(
    Number.isFinite(told) && told > now ? told : now + shownForMs,
    now + longestMs,
  );
  await talk.store.note({
    what: "console",
    who: person.id,
    team: person.teamId,
    target: { kind: "vm", id: vm.id, name: vm.name },
    until,
    ...(typeof value["insist"] === "string" ? { insisted: value["insist"].slice(0, 300) } : {}),
  });
  const show = () => reply.replace(addressMessage(vm.name, session.url, until, talk.now()));
  const isShown = await show();
  const open = say(md`🖥️ Console on ${name(vm.name)} open by ${person.name} until ${when(until)}.`);
  await publicly(open, ask, { ...reply, privately: async () => undefined }, talk);
  const gone = say(
    md`The console on ${name(vm.name)} has expired. ${name("/vm console")} opens another.`,
  );
  // Also when Slack didn't say that it shows the address: it may
  later(until - now, () => (isShown ? reply.instead(gone) : reply.replace(gone)));
  if (!isShown) {
    // Told in another message it could not be taken away at its end
    throw new UserError(
      `A console on ${vm.name} was opened, but Slack doesn't let me take its address away again, so I don't show it.`,
      "It closes by itself. `/vm console` offers another.",
    );
  }
  // A response URL works five times: the address, two steps of the countdown, and its end
  for (const share of [1 / 3, 2 / 3]) later((until - now) * share, show);
}

/** Why this button doesn't open a console for this person now, if it doesn't. */
function refusalOfOffer(
  value: Record<string, unknown>,
  personId: string,
  now: number,
): { rule: string; text: string } | undefined {
  const { for: offeredTo, until, once } = value;
  if (offeredTo !== personId) {
    return { rule: "console.requester", text: "This console was offered to somebody else." };
  }
  if (typeof until !== "number" || until <= now || typeof once !== "string" || once === "") {
    return { rule: "console.time", text: "This button works for a minute only." };
  }
  return undefined;
}

function later(ms: number, show: () => Promise<unknown>): void {
  setTimeout(() => void show(), ms).unref();
}

/** The address with its countdown, for one person alone. */
function addressMessage(vmName: string, url: string, until: number, now: number): Message {
  return message(
    `Console on ${vmName}`,
    section(
      md`Console on ${name(vmName)}, good until ${when(until)}: ${duration(until - now)} left. Only you see this; it goes away by itself.`,
    ),
    section(new Markdown(`\`\`\`${shownUrl(url)}\`\`\``)),
    context(
      md`Open it with your VNC or serial client. Don't pass it on: whoever holds it holds the machine.`,
    ),
  );
}

/** As Slack wants it in a code block; a backtick can't stand in an address. */
function shownUrl(url: string): string {
  return url
    .replaceAll("`", "%60")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
