import type { App } from "@slack/bolt";
import type { Log } from "../log.ts";
import { type Message, plainText } from "../messages/message.ts";
import type { Ask } from "./ask.ts";
import type { Handlers, SuggestRequest, Suggestion } from "./handlers.ts";
import { type Handling, plainly, soon } from "./handling.ts";
import { type Intake, IntakeDown } from "./intake.ts";
import { at, textAt } from "./payload.ts";
import { readAsk } from "./read-ask.ts";
import { readValues } from "./read-values.ts";
import { answerTo, problemAck } from "./submission-ack.ts";

/** What became of a delivery before its ack. */
export type Taken =
  | { ask: Ask; outcome: "new" | "seen" }
  /** Redis is away, but this only reads: it is answered without having been written down. */
  | { ask: Ask; outcome: "unwritten" }
  /** Nothing of it is written down: `text` goes into the ack where one can carry words. */
  | { ask: Ask; outcome: "refused"; text: string; message: Message };

/** Reads a delivery and writes it down, once however often it is called. Undefined: it asks nothing of us. */
export type Take = (body: unknown) => Promise<Taken | undefined>;

export interface ListenerOptions {
  us: { botUserId: string };
  intake: Intake;
  handlers: Handlers;
  handling: Handling;
  seal: (responseUrl: string) => string;
  log: Log;
  now: () => number;
}

/** Slack waits three seconds for an ack; the rest is for the way there and back. */
const answerWithinMs = 2_200;

export function createTake({ us, intake, handlers, seal, log, now }: ListenerOptions): Take {
  const taken = new WeakMap<object, Promise<Taken | undefined>>();

  async function takeOnce(body: unknown): Promise<Taken | undefined> {
    const ask = readAsk(body, us, now());
    if (ask === undefined || ask.userId === "") return undefined;
    try {
      const sealedResponseUrl = ask.responseUrl === undefined ? undefined : seal(ask.responseUrl);
      return { ask, outcome: await intake.accept(ask, { sealedResponseUrl }) };
    } catch (error) {
      const isAway = error instanceof IntakeDown && !error.isCrowded;
      if (isAway && handlers.mayGoWithoutRedis?.(ask)) return { ask, outcome: "unwritten" };
      return { ask, outcome: "refused", ...plainly(error, log) };
    }
  }

  return (body) => {
    if (typeof body !== "object" || body === null) return Promise.resolve(undefined);
    const made = taken.get(body) ?? takeOnce(body);
    taken.set(body, made);
    return made;
  };
}

/**
 * One listener for each kind of delivery, whatever its name: first it is written down, then acked, then handled.
 * What no listener matches is acked by FrontApp.
 */
export function addListeners(app: App, take: Take, options: ListenerOptions): void {
  const { handlers, handling, intake, log } = options;
  const any = /.*/; // without the g flag, with which every second match would fail

  function goOn(taken: Taken | undefined): void {
    if (taken === undefined) return;
    if (taken.outcome === "new") handling.handle(taken.ask);
    else if (taken.outcome === "seen") handling.repeated(taken.ask);
    else if (taken.outcome === "unwritten") handling.read(taken.ask);
    else if (taken.outcome === "refused" && taken.ask.kind !== "home")
      handling.tell(taken.ask, taken.message);
  }

  app.command(any, async ({ body, ack }) => {
    const taken = await take(body);
    if (taken?.outcome === "refused") return ack({ response_type: "ephemeral", text: taken.text });
    await ack();
    goOn(taken);
  });

  app.action(any, async ({ body, ack }) => {
    const taken = await take(body);
    await ack();
    goOn(taken);
  });

  app.shortcut(any, async ({ body, ack }) => {
    const taken = await take(body);
    await ack();
    goOn(taken);
  });

  app.view({ callback_id: any, type: "view_submission" }, async ({ body, ack, view }) => {
    const began = performance.now();
    const taken = await take(body);
    if (taken?.ask.kind !== "submission") return ack();
    const { ask } = taken;
    if (taken.outcome === "refused") return ack(problemAck(view, taken.text));
    if (taken.outcome === "seen") {
      await ack();
      return goOn(taken);
    }
    const answer = await answerTo(
      handlers.submit(ask),
      view,
      answerWithinMs - (performance.now() - began),
      log,
    );
    // Sent before the ack, so that the corrected submission, which bears the same id, is not taken for a repetition.
    const forgotten = answer.isRefused ? intake.finish(ask.id, { forget: true }) : undefined;
    await (answer.ack === undefined ? ack() : ack(answer.ack));
    await forgotten;
    if (!answer.isRefused) handling.handle(ask);
  });

  app.view({ callback_id: any, type: "view_closed" }, async ({ ack }) => ack());

  app.options(any, async ({ body, ack }) => {
    const request: SuggestRequest = {
      userId: textAt(body, "user", "id"),
      teamId: textAt(body, "user", "team_id") || textAt(body, "team", "id"),
      channelId: textAt(body, "channel", "id") || textAt(body, "container", "channel_id"),
      action: textAt(body, "action_id"),
      blockId: textAt(body, "block_id"),
      typed: textAt(body, "value"),
      callback: textAt(body, "view", "callback_id"),
      privateMetadata: textAt(body, "view", "private_metadata"),
      values: readValues(at(body, "view", "state", "values")),
    };
    const suggestions = Promise.try(async () => handlers.suggest?.(request));
    const found = await soon(suggestions, answerWithinMs).catch((error: unknown) => {
      log.error("slack.suggest-failed", { error });
      return undefined;
    });
    await ack({
      options: (found ?? [])
        .slice(0, 100)
        .filter(({ value }) => value.length <= 75 && value !== "")
        .map(optionOf),
    });
  });

  // Acked already, after `take` (FrontApp's `beforeEventAck`).
  app.event("app_mention", async ({ body }) => goOn(await take(body)));
  app.event("app_home_opened", async ({ body }) => goOn(await take(body)));
  app.event(/^subteam_/, async () => handlers.peopleChanged());
}

function optionOf({ label, value, description }: Suggestion) {
  return {
    text: plainText(label, 75),
    value,
    ...(description === undefined ? {} : { description: plainText(description, 75) }),
  };
}
