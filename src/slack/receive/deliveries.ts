import type { AckFn, ViewResponseAction } from "@slack/bolt";
import type { Option, View } from "@slack/types";
import { deadlineMs, within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { during, workOnInteraction } from "../../log/traces.ts";
import { type Message, section } from "../../messages/blocks.ts";
import { md } from "../../messages/markdown.ts";
import { plainText } from "../../messages/text-objects.ts";
import { type GivenUp, type Interactions, NotStored } from "../../queue/interactions.ts";
import type { StoredInteraction } from "../../queue/queues.ts";
import { patiently } from "../../redis/redis.ts";
import { errorReply, say } from "../error-reply.ts";
import { at, listAt, textAt } from "../json.ts";
import type {
  Handlers,
  Interaction,
  Reply,
  ViewSubmission,
  SubmissionResult,
  SuggestRequest,
  Suggestion,
} from "./interaction.ts";

type Work = (reply: Reply) => Promise<void>;

/**
 * How an interaction continues after its acknowledgment. With `refused` it isn't stored; the text
 * goes into the acknowledgment.
 */
interface Taken {
  isNew?: boolean;
  refused?: string;
  goOn: () => unknown;
}

export interface DeliveryOptions {
  interactions: Pick<Interactions, "store" | "finish" | "forget">;
  handlers: Handlers;
  replyTo: (interaction: Interaction) => Reply;
  log: Log;
  /** Called before the acknowledgment. `isNew` is false for another copy of a delivery. */
  onStored?: ((interaction: Interaction, isNew: boolean) => Promise<void>) | undefined;
}

/** Slack waits three seconds for an acknowledgment. The rest is left for the network (ms). */
const answerWithinMs = 2_200;
/** From then on an acknowledgment may reach Slack too late (ms). */
const perhapsLateMs = 2_600;

export type Deliveries = ReturnType<typeof createDeliveries>;

/** Stores each interaction, lets it be acknowledged, and passes it on. Nothing here throws. */
export function createDeliveries(options: DeliveryOptions) {
  const { interactions, handlers, log } = options;
  const running = new Set<Promise<void>>();
  /**
   * The acknowledgments of forms that are being checked, by the ID of the submission. When a check
   * takes long, Slack gives up, and the person submits the form again. That copy gets the same
   * answer: as a mere copy it would close the form, although the first may be refused.
   */
  const checking = new Map<string, Promise<ViewResponseAction | undefined>>();

  /**
   * Starts the work after the acknowledgment was sent, so that no acknowledgment waits for the work
   * of another delivery. `idle` waits for it.
   */
  function afterAck(interaction: Interaction, work: () => Promise<void>): void {
    const acknowledged = new Promise((resolve) => setImmediate(resolve));
    void track(interaction, () => acknowledged.then(work));
  }

  const track = ({ id }: Interaction, work: () => Promise<void>): Promise<void> =>
    runInBackground(() => during(workOnInteraction(id), work));

  function runInBackground(work: () => Promise<void> | void): Promise<void> {
    const task = Promise.try(work)
      .catch((error: unknown) => log.error("slack.handling-failed", { error }))
      .finally(() => running.delete(task));
    running.add(task);
    return task;
  }

  async function attempt(interaction: Interaction, work: Work): Promise<void> {
    const reply = options.replyTo(interaction);
    try {
      // Repeating is safe, because handlers are idempotent.
      await patiently(() => work(reply));
    } catch (error) {
      const message = errorReply(error, log);
      // Opening the Home tab isn't a request, so a message about it would confuse.
      if (interaction.kind !== "home") await reply.privately(message);
    }
  }

  function note({ kind, userId: person, channelId: channel }: Interaction): void {
    if (kind !== "home") log.info("interaction.taken", { kind, person, channel });
  }

  const handle = (interaction: Interaction) =>
    afterAck(interaction, async () => {
      note(interaction);
      await attempt(interaction, (reply) => handlers.handle(interaction, reply));
      await interactions.finish(kept(interaction));
    });

  /** An interaction that isn't stored is only answered. */
  const answer = (interaction: Interaction, work: Work) =>
    afterAck(interaction, () => attempt(interaction, work));

  /** Undefined when there is nothing to do. */
  async function store(interaction: Interaction | undefined): Promise<Taken | undefined> {
    if (interaction === undefined || interaction.userId === "") return undefined;
    try {
      const isKept = keptKinds.has(interaction.kind);
      const isNew = (await interactions.store(kept(interaction), { isKept })) === "new";
      await options.onStored?.(interaction, isNew);
      if (isNew) return { isNew, goOn: () => handle(interaction) };
      return {
        goOn: () => answer(interaction, (reply) => handlers.repeated(interaction, reply)),
      };
    } catch (error) {
      const read =
        error instanceof NotStored ? handlers.withoutRedis?.(interaction, error) : undefined;
      if (read)
        return {
          goOn: () => {
            answer(interaction, read);
            // Redis may have stored it nevertheless; finishing it prevents a second answer.
            void interactions.finish(kept(interaction));
          },
        };
      const message = notTaken(error, log);
      const tell = () => answer(interaction, (reply) => reply.privately(message));
      // Opening the Home tab isn't a request, so a message about it would confuse.
      const goOn = interaction.kind === "home" ? () => undefined : tell;
      return { refused: plainly(message), goOn };
    }
  }

  /**
   * Stores the interaction before Slack is told that it was taken. For interactions whose
   * acknowledgment carries no text.
   */
  async function takeInteraction(interaction: Interaction | undefined, ack?: () => Promise<void>) {
    const taken = await store(interaction);
    await ack?.();
    taken?.goOn();
  }

  async function takeFirst(
    interaction: ViewSubmission,
    view: unknown,
    ack: AckFn<ViewResponseAction | undefined>,
  ): Promise<void> {
    const began = performance.now();
    const taken = await store(interaction);
    if (taken === undefined) return ack();
    if (taken.refused !== undefined) return refuse(problemIn(view, taken.refused));
    if (!taken.isNew) {
      await ack();
      return void taken.goOn();
    }
    const leftMs = deadlineMs(answerWithinMs) - (performance.now() - began);
    const submitted = during(workOnInteraction(interaction.id), () =>
      handlers.submitBeforeAck(interaction),
    );
    const refusal = await refusalOf(submitted, view, leftMs, log);
    if (refusal === undefined) {
      await ack();
      return void taken.goOn();
    }
    // It is forgotten before the acknowledgment, because the corrected submission has the same ID
    // and must not count as a copy.
    void interactions.forget(kept(interaction));
    await refuse(refusal);
    note(interaction);

    async function refuse({ text, action }: Refusal): Promise<void> {
      await ack(action);
      if (performance.now() - began < deadlineMs(perhapsLateMs)) return;
      // Slack may have given up by then, so nobody reads it in the form. The form may even be
      // closed: submitted again to another gateway, it is a mere copy there.
      const message = say(md`${text}`);
      answer(interaction, (reply) => reply.privately(message));
    }
  }

  return {
    takeInteraction,

    async takeCommand(interaction: Interaction, ack: AckFn<object>): Promise<void> {
      const taken = await store(interaction);
      if (taken?.refused === undefined) {
        await ack();
        return void taken?.goOn();
      }
      // The acknowledgment carries the text.
      await ack({ response_type: "ephemeral", text: taken.refused });
    },

    async takeSubmission(
      interaction: ViewSubmission,
      view: unknown,
      ack: AckFn<ViewResponseAction>,
    ): Promise<void> {
      const { id } = interaction;
      const first = checking.get(id);
      if (first) return ack(await first);
      const answered = Promise.withResolvers<ViewResponseAction | undefined>();
      checking.set(id, answered.promise);
      try {
        await takeFirst(interaction, view, async (response) => {
          answered.resolve(response);
          await ack(response);
        });
      } finally {
        checking.delete(id);
        answered.resolve(undefined);
      }
    },

    async suggest(request: SuggestRequest): Promise<{ options: Option[] }> {
      const suggestions = Promise.try(async () => (await handlers.suggest?.(request)) ?? []);
      const suggested = await within(deadlineMs(answerWithinMs), suggestions, () => []).catch(
        (error: unknown) => {
          log.error("slack.suggest-failed", { error });
          return [];
        },
      );
      const offered = suggested
        .slice(0, 100)
        .filter(({ value }) => value.length <= 75 && value !== "");
      return { options: offered.map(optionOf) };
    },

    /** Handles what a dead gateway left. */
    recover(
      stored: StoredInteraction,
      { givenUp }: { givenUp: GivenUp | undefined },
    ): Promise<void> {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `kept` stored it
      const interaction = stored as Interaction;
      return track(interaction, () =>
        attempt(interaction, async (reply) => {
          if (givenUp) return handlers.giveUp(interaction, reply, givenUp);
          if (interaction.kind === "submission") {
            const result = await handlers.submitBeforeAck(interaction);
            // The modal is closed by now, so its errors go into a message.
            const wrong = Object.values(result?.errors ?? {}).join(" ");
            if (wrong !== "") return reply.privately(say(md`Nothing was done: ${wrong}`));
          }
          await handlers.handle(interaction, reply);
        }),
      );
    },

    /** Starts the work at once. The acknowledgment doesn't wait for its end. */
    runInBackground,
    running: () => running.size,

    /** Waits until nothing runs, at most `withinMs`. Resolves with how many still run. */
    async idle(withinMs: number): Promise<number> {
      const until = performance.now() + withinMs;
      const leftMs = () => until - performance.now();
      while (running.size > 0 && leftMs() > 0)
        await within(leftMs(), Promise.allSettled(running), () => undefined);
      if (running.size > 0) log.warn("slack.still-handling", { running: running.size, withinMs });
      return running.size;
    },
  };
}

/**
 * The kinds that are stored until they are handled. The Home tab and shortcuts change nothing, so
 * copies of them are only recognized.
 */
const keptKinds = new Set<Interaction["kind"]>(["command", "mention", "button", "submission"]);

/**
 * The interaction as it is stored: without the trigger, which expires, and the response URL, with
 * which anyone could speak as the bot for half an hour.
 */
function kept({ triggerId: _trigger, responseUrl: _url, ...rest }: Interaction): StoredInteraction {
  return rest;
}

/** The message for a failure before the acknowledgment. */
function notTaken(error: unknown, log: Log): Message {
  log.info("slack.not-taken", { why: messageOf(error) });
  return errorReply(error, log);
}

const plainly = ({ text }: Message) => text.replaceAll("\n", " ");

function optionOf({ label, value, description }: Suggestion): Option {
  return {
    text: plainText(label, 75),
    value,
    ...(description === undefined ? {} : { description: plainText(description, 75) }),
  };
}

/** Why a form isn't taken, in a message of its own; `action` keeps the form open and says it there. */
interface Refusal {
  text: string;
  action: ViewResponseAction;
}

/**
 * Why the submission can't be handled. Undefined closes the modal
 * (https://docs.slack.dev/surfaces/modals#handling_submissions).
 */
async function refusalOf(
  result: Promise<SubmissionResult | undefined>,
  view: unknown,
  withinMs: number,
  log: Log,
): Promise<Refusal | undefined> {
  try {
    const answer = await within(withinMs, result, () => "late" as const);
    if (answer === "late") {
      log.warn("slack.submit-late", {
        callback: textAt(view, "callback_id"),
        withinMs: Math.round(withinMs),
      });
      result.catch((error: unknown) => log.error("slack.submit-failed", { error }));
      return problemIn(view, "This takes too long. Check whether it ran before you try again.");
    }
    const errors = { ...answer?.errors };
    if (Object.keys(errors).length === 0) return undefined;
    const text = `The form was not taken: ${Object.values(errors).join(" ")}`;
    return { text, action: { response_action: "errors", errors } };
  } catch (error) {
    return problemIn(view, plainly(notTaken(error, log)));
  }
}

/**
 * Shows the problem at the first field, so that the input stays. A view without fields is replaced.
 */
function problemIn(view: unknown, text: string): Refusal {
  const field = listAt(view, "blocks").find((block) => textAt(block, "type") === "input");
  const blockId = textAt(field, "block_id");
  if (blockId !== "")
    return { text, action: { response_action: "errors", errors: { [blockId]: text } } };
  const title = textAt(at(view, "title"), "text") || "Gatehouse";
  const replaced: View = {
    type: "modal",
    title: plainText(title, 24),
    close: plainText("Close", 24),
    blocks: [section(md`${text}`)],
  };
  return { text, action: { response_action: "update", view: replaced } };
}
