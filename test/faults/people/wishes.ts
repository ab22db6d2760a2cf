import { setTimeout as sleep } from "node:timers/promises";
import type { FormValues } from "../../../sandbox/slack/actions.ts";
import type { SeenView } from "../../../sandbox/slack/seen.ts";
import type { Asked } from "../check/checker.ts";
import type { Stage } from "../stage/stage.ts";

/** What somebody wants: words, and what they fill in where a dialog asks. */
export interface Wish {
  command: string;
  /** Id of the VM or project; for what doesn't exist yet, its name. */
  target: string;
  /** What follows the target; for a new project, all that follows the command. */
  flags?: string;
  /** Typed into the dialog. Without it there is none. */
  form?: FormValues;
}

/** How long somebody types the same again when Slack says that it failed: on a busy machine a process starts slowly. */
const patienceMs = 60_000;
const formMs = 3000;

/** Asks like a person: types it again when Slack says that it failed, and fills in the dialog where there is one. */
export async function wishFor(
  stage: Stage,
  wish: Wish,
  how: { who: string; channel: string },
): Promise<Asked | undefined> {
  const { who, channel } = how;
  const place = wish.command === "project create" ? "" : wish.target;
  const words = [`/${wish.command}`, place, wish.flags ?? ""].filter((part) => part !== "");
  const until = performance.now() + patienceMs;
  while (performance.now() < until) {
    const typedAt = Date.now();
    const typed = await stage.slack.act(who, "types", channel, words.join(" "));
    if (!typed.acked) {
      await sleep(200);
      continue;
    }
    if (!wish.form) return remember(stage, wish, who, typed.deliveryId);
    const filledIn = await fillIn(stage, who, wish.form);
    await stage.slack.act(who, "closes", { all: true }).catch(() => undefined);
    if (filledIn.is === "refused") return undefined;
    if (filledIn.is === "taken") return remember(stage, wish, who, filledIn.deliveryId);
    if (await wasRefused(stage, who, channel, typedAt)) return undefined;
  }
  throw new Error(`${who} typed ${words.join(" ")} for ${patienceMs / 1000} s in vain`);
}

function remember(
  stage: Stage,
  { command, target }: Wish,
  who: string,
  deliveryId: string | undefined,
): Asked {
  const asked: Asked = { who, command, target, acked: true, deliveryId };
  stage.asked.push(asked);
  return asked;
}

/** In words to this person alone, in place of the dialog. A button to go on with is no refusal: it came too late. */
async function wasRefused(
  stage: Stage,
  who: string,
  channel: string,
  since: number,
): Promise<boolean> {
  const { channels } = await stage.slack.seen(who);
  const messages = channels.find(({ name }) => name === channel)?.messages ?? [];
  return messages.some(
    ({ ephemeral, ts, text }) =>
      ephemeral &&
      Number(ts) * 1000 >= since &&
      !text.includes("Press the button") &&
      // In place of the button that was pressed
      !text.startsWith("✓"),
  );
}

type FilledIn = { is: "taken"; deliveryId: string | undefined } | { is: "refused" | "gone" };

/** "gone": the dialog never came, or went away before it was taken. */
async function fillIn(stage: Stage, who: string, form: FormValues): Promise<FilledIn> {
  const view = await openForm(stage, who);
  if (view === undefined) return { is: "gone" };
  if (view.submit === "") return { is: "refused" };
  // Submitted again with the same form: one submission, however often Slack couldn't hand it over
  const until = performance.now() + patienceMs;
  while (performance.now() < until) {
    const sent = await stage.slack.act(who, "submits", form).catch(() => undefined);
    if (sent === undefined) return { is: "gone" };
    if (sent.errors) return { is: "refused" };
    if (sent.acked && sent.error === undefined) {
      // A form that stays says in its own place why it isn't taken
      const open = await stage.slack.question<SeenView[]>("modals", who);
      if (open.some(({ id }) => id === view.id)) return { is: "refused" };
      return { is: "taken", deliveryId: sent.deliveryId };
    }
    await sleep(200);
  }
  return { is: "gone" };
}

/** The dialog, once it is more than a promise of one. */
async function openForm(stage: Stage, who: string): Promise<SeenView | undefined> {
  const deadline = performance.now() + formMs;
  while (performance.now() < deadline) {
    const top = (await stage.slack.question<SeenView[]>("modals", who)).at(-1);
    if (top && !JSON.stringify(top.blocks).includes("Loading the current state")) return top;
    await sleep(30);
  }
  return undefined;
}
