import type { ViewResponseAction } from "@slack/bolt";
import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { during, workOnInteraction } from "../../log/traces.ts";
import { type Message, md, plainText, section } from "../../messages/message.ts";
import { patiently } from "../../redis/redis.ts";
import { errorReply, say } from "../error-reply.ts";
import { at, listAt, textAt } from "../json.ts";
import { foreignness } from "../people/foreign-deliveries.ts";
import type { BotIdentity } from "../people/identity.ts";
import { type Intake, IntakeDown, type LeftInteraction } from "./intake.ts";
import type {
  Handlers,
  Interaction,
  Reply,
  SubmissionResult,
  SuggestRequest,
  Suggestion,
} from "./interaction.ts";
import { readInteraction } from "./read-interaction.ts";

/** A delivery for another app or workspace. Receivers refuse it without an answer. */
export class ForeignDelivery extends Error {
  override readonly name = "ForeignDelivery";
}

type Work = (reply: Reply) => Promise<void>;

/** What the ack of a delivery says, and how it goes on afterwards, if it does. */
interface Prepared {
  said?: object;
  goOn?: () => unknown;
}

/** What asks for something, once it was stored; `refused`: not stored, as text for the ack where that can carry text. */
interface Taken {
  interaction: Interaction;
  isNew?: boolean;
  refused?: string;
  goOn: () => unknown;
}

/** Takes one delivery. Throws only ForeignDelivery: any other error would be an unhandled rejection in a receiver. */
export type TakeDelivery = (delivery: {
  body: unknown;
  ack: (said?: object) => Promise<void>;
}) => Promise<void>;

export interface DeliveryOptions {
  identity: BotIdentity;
  intake: Intake;
  handlers: Handlers;
  replyTo: (interaction: Interaction) => Reply;
  log: Log;
  /** The time from receiving a delivery to sending its ack. */
  onAck?: ((kind: string, ms: number) => void) | undefined;
  onRefused?: ((reason: "app" | "team") => void) | undefined;
}

/** Slack waits three seconds for an ack; the rest is for the network. */
const answerWithinMs = 2_200;

/**
 * Rejects foreign deliveries. Of all others, stores each that asks for something, acks it exactly once, and hands it on.
 */
export function createDeliveries(options: DeliveryOptions) {
  const { identity, intake, handlers, log } = options;
  const running = new Set<Promise<void>>();
  let inHand = 0;

  // After the ack nothing throws, and `idle` waits for it

  function track({ id }: Interaction, work: () => Promise<void>): void {
    const task = during(workOnInteraction(id), () => Promise.try(work))
      .catch((error: unknown) => log.error("slack.handling-failed", { error }))
      .finally(() => running.delete(task));
    running.add(task);
  }

  async function attempt(interaction: Interaction, work: Work): Promise<void> {
    const reply = options.replyTo(interaction);
    try {
      // As after a take-over: what ran once changes nothing when it runs again
      await patiently(() => work(reply));
    } catch (error) {
      const message = errorReply(error, log);
      // Opening the Home tab is no request: a message about it would confuse
      if (interaction.kind !== "home") await reply.privately(message);
    }
  }

  function note({ kind, userId: person, channelId: channel }: Interaction): void {
    if (kind !== "home") log.info("interaction.taken", { kind, person, channel });
  }

  async function finishing(interaction: Interaction, work: Work): Promise<void> {
    await attempt(interaction, work);
    await intake.finish(interaction.id);
  }

  const handle = (interaction: Interaction) =>
    track(interaction, async () => {
      note(interaction);
      await finishing(interaction, (reply) => handlers.handle(interaction, reply));
    });

  async function takeOver(interaction: Interaction, reply: Reply): Promise<void> {
    log.info("intake.taken-over", { interaction: interaction.id, kind: interaction.kind });
    if (interaction.kind === "submission") {
      const result = await handlers.submit(interaction);
      // Its modal is closed, so its errors go into a message
      const wrong = Object.values(result?.errors ?? {}).join(" ");
      if (wrong !== "") return reply.privately(say(md`Nothing was done: ${wrong}`));
    }
    await handlers.handle(interaction, reply);
  }

  /** What isn't stored is only answered. */
  const answer = (interaction: Interaction, work: Work) =>
    track(interaction, () => attempt(interaction, work));

  const take: TakeDelivery = async ({ body, ack }) => {
    const began = performance.now();
    const type = textAt(body, "command") === "" ? textAt(body, "type") : "command";
    const [kind, prepare] = ways.get(type) ?? ["other", nothing];
    const foreign = foreignness(body, identity);
    if (foreign !== undefined) {
      options.onRefused?.(foreign);
      log.warn("slack.refused", { reason: foreign, kind });
      throw new ForeignDelivery(foreign);
    }
    if (kind === "other") log.warn("slack.unhandled", { type: type.slice(0, 50) });
    inHand += 1;
    try {
      const { said, goOn } = await prepare(body).catch((error: unknown): Prepared => {
        log.error("slack.delivery-failed", { kind, error });
        return {};
      });
      // When it fails the person sees Slack's own error; the interaction is stored and is still handled
      await ack(said).catch((error: unknown) =>
        log.warn("slack.ack-failed", { kind, error: messageOf(error) }),
      );
      options.onAck?.(kind, performance.now() - began);
      await goOn?.();
    } catch (error) {
      log.error("slack.delivery-failed", { kind, error });
    } finally {
      inHand -= 1;
    }
  };

  /** Undefined when there is nothing to do. */
  async function store(body: unknown): Promise<Taken | undefined> {
    const interaction = readInteraction(body, identity, Date.now());
    if (interaction === undefined || interaction.userId === "") return undefined;
    try {
      const isNew = (await intake.accept(interaction)) === "new";
      if (isNew) return { interaction, isNew, goOn: () => handle(interaction) };
      const repeated = () => answer(interaction, (reply) => handlers.repeated(interaction, reply));
      return { interaction, goOn: repeated };
    } catch (error) {
      const mayRead = error instanceof IntakeDown && !error.isCrowded;
      const read = mayRead ? handlers.withoutRedis?.(interaction) : undefined;
      if (read) return { interaction, goOn: () => answer(interaction, read) };
      const message = notTaken(error, log);
      const tell = () => answer(interaction, (reply) => reply.privately(message));
      // Opening the Home tab is no request: a message about it would confuse
      const goOn = interaction.kind === "home" ? () => undefined : tell;
      return { interaction, refused: plainly(message), goOn };
    }
  }

  const stored = async (body: unknown): Promise<Prepared> => (await store(body)) ?? {};

  async function command(body: unknown): Promise<Prepared> {
    const taken = await store(body);
    if (taken?.refused === undefined) return taken ?? {};
    return { said: { response_type: "ephemeral", text: taken.refused } };
  }

  async function submission(body: unknown): Promise<Prepared> {
    const began = performance.now();
    const view = at(body, "view");
    const taken = await store(body);
    const { interaction } = taken ?? {};
    if (taken === undefined || interaction?.kind !== "submission") return {};
    if (taken.refused !== undefined) return { said: problemAck(view, taken.refused) };
    if (!taken.isNew) return taken;
    const leftMs = answerWithinMs - (performance.now() - began);
    const submitted = during(workOnInteraction(interaction.id), () => handlers.submit(interaction));
    const said = await refusalAck(submitted, view, leftMs, log);
    if (said === undefined) return taken;
    // Begun before the ack: the corrected submission has the same id and must not count as a redelivery.
    const forgotten = intake.finish(interaction.id, { forget: true });
    const noted = () => track(interaction, async () => note(interaction));
    return { said, goOn: () => forgotten.then(noted) };
  }

  async function suggest(body: unknown): Promise<Prepared> {
    const request: SuggestRequest = {
      userId: textAt(body, "user", "id"),
      teamId: textAt(body, "user", "team_id") || textAt(body, "team", "id"),
      action: textAt(body, "action_id"),
      typed: textAt(body, "value"),
      privateMetadata: textAt(body, "view", "private_metadata"),
    };
    const suggestions = Promise.try(async () => (await handlers.suggest?.(request)) ?? []);
    const found = await within(answerWithinMs, suggestions, () => []).catch((error: unknown) => {
      log.error("slack.suggest-failed", { error });
      return [];
    });
    const offered = found.slice(0, 100).filter(({ value }) => value.length <= 75 && value !== "");
    return { said: { options: offered.map(optionOf) } };
  }

  async function event(body: unknown): Promise<Prepared> {
    const told = at(body, "event");
    if (!textAt(told, "type").startsWith("subteam_")) return stored(body);
    const id = textAt(body, "event_id") || textAt(told, "event_ts");
    // Begun before the ack: a right that was taken doesn't outlast it
    const changed = Promise.try(() => handlers.peopleChanged(told, id));
    changed.catch(() => undefined); // thrown again in goOn, where it is logged
    return { goOn: () => changed };
  }

  const nothing = async (): Promise<Prepared> => ({});
  /** What metrics call a delivery of this type, and what is done before its ack. */
  const ways = new Map<string, [kind: string, prepare: (body: unknown) => Promise<Prepared>]>([
    ["command", ["command", command]],
    ["event_callback", ["event", event]],
    ["block_actions", ["button", stored]],
    ["interactive_message", ["button", stored]],
    ["view_submission", ["submission", submission]],
    ["view_closed", ["closed", nothing]],
    ["block_suggestion", ["options", suggest]],
    ["shortcut", ["shortcut", stored]],
    ["message_action", ["shortcut", stored]],
  ]);

  return {
    take,
    /** Deliveries that aren't acked, or don't go on yet. */
    inHand: () => inHand,
    /** An interaction of a dead gateway. */
    takeOver({ interaction, tooLate }: LeftInteraction): void {
      const work: Work = (reply) =>
        tooLate ? handlers.tooLate(reply) : takeOver(interaction, reply);
      track(interaction, () => finishing(interaction, work));
    },
    running: () => running.size,
    /** Waits until nothing runs, at most `deadlineMs`; resolves with how many still run. */
    async idle(deadlineMs: number): Promise<number> {
      const until = performance.now() + deadlineMs;
      const leftMs = () => until - performance.now();
      while (running.size > 0 && leftMs() > 0)
        await within(leftMs(), Promise.allSettled(running), () => undefined);
      if (running.size > 0) log.warn("slack.still-handling", { running: running.size, deadlineMs });
      return running.size;
    },
  };
}

/** A failure before the ack. */
function notTaken(error: unknown, log: Log): Message {
  log.info("slack.not-taken", { why: messageOf(error) });
  return errorReply(error, log);
}

const plainly = ({ text }: Message) => text.replaceAll("\n", " ");

function optionOf({ label, value, description }: Suggestion) {
  return {
    text: plainText(label, 75),
    value,
    ...(description === undefined ? {} : { description: plainText(description, 75) }),
  };
}

/**
 * What keeps the modal open, because the submission can't be handled; undefined closes it
 * (https://docs.slack.dev/surfaces/modals#handling_submissions).
 */
async function refusalAck(
  result: Promise<SubmissionResult | undefined>,
  view: unknown,
  withinMs: number,
  log: Log,
): Promise<ViewResponseAction | undefined> {
  try {
    const answer = await within(withinMs, result, () => "late" as const);
    if (answer === "late") {
      log.warn("slack.submit-late", {
        callback: textAt(view, "callback_id"),
        withinMs: Math.round(withinMs),
      });
      result.catch((error: unknown) => log.error("slack.submit-failed", { error }));
      return problemAck(view, "This takes too long. Check whether it ran before you try again.");
    }
    const errors = { ...answer?.errors };
    return Object.keys(errors).length > 0 ? { response_action: "errors", errors } : undefined;
  } catch (error) {
    return problemAck(view, plainly(notTaken(error, log)));
  }
}

/** On the first field, so that the input stays; a view without fields is replaced. */
function problemAck(view: unknown, sentence: string): ViewResponseAction {
  const field = listAt(view, "blocks").find((block) => textAt(block, "type") === "input");
  const blockId = textAt(field, "block_id");
  if (blockId !== "") return { response_action: "errors", errors: { [blockId]: sentence } };
  const title = textAt(at(view, "title"), "text") || "Gatehouse";
  return {
    response_action: "update",
    view: {
      type: "modal",
      title: plainText(title, 24),
      close: plainText("Close", 24),
      blocks: [section(md`${sentence}`)],
    },
  };
}
