import type { AckFn, ViewResponseAction } from "@slack/bolt";
import type { Option } from "@slack/types";
import { deadlineMs, within } from "../../deadline.ts";
import type { Log } from "../../log/log.ts";
import { during, workOnInteraction } from "../../log/traces.ts";
import { md } from "../../messages/markdown.ts";
import { optionOf } from "../../messages/input-elements.ts";
import { type GivenUp, type Interactions, NotStored } from "../../queue/interactions.ts";
import type { StoredInteraction } from "../../queue/queues.ts";
import { patiently } from "../../redis/redis.ts";
import { errorReply, say } from "../error-reply.ts";
import { Background } from "./background.ts";
import { type Refusal, notTaken, plainly, problemIn, refusalOf } from "./form-refusal.ts";
import type {
  InteractionHandlers,
  Interaction,
  Reply,
  SuggestRequest,
  ViewSubmission,
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
  handlers: InteractionHandlers;
  replyTo: (interaction: Interaction) => Reply;
  log: Log;
  /** Called before the acknowledgment. `isNew` is false for another copy of a delivery. */
  onStored?: ((interaction: Interaction, isNew: boolean) => Promise<void>) | undefined;
}

/** Slack waits three seconds for an acknowledgment. The rest is left for the network (ms). */
const answerWithinMs = 2_200;
/** From then on an acknowledgment may reach Slack too late (ms). */
const perhapsLateMs = 2_600;

/** Stores each interaction, lets it be acknowledged, and passes it on. Nothing here throws. */
export class Deliveries {
  readonly background: Background;
  readonly #on: DeliveryOptions;
  /**
   * The acknowledgments of forms that are being checked, by the ID of the submission. When a check
   * takes long, Slack gives up, and the person submits the form again. That copy gets the same
   * answer: as a mere copy it would close the form, although the first may be refused.
   */
  readonly #checking = new Map<string, Promise<ViewResponseAction | undefined>>();

  constructor(on: DeliveryOptions) {
    this.#on = on;
    this.background = new Background(on.log);
  }

  // Deliveries of Slack

  /**
   * Stores the interaction before Slack is told that it was taken. For interactions whose
   * acknowledgment carries no text.
   */
  async takeInteraction(
    interaction: Interaction | undefined,
    ack?: () => Promise<void>,
  ): Promise<void> {
    const taken = await this.#store(interaction);
    await ack?.();
    taken?.goOn();
  }

  async takeCommand(interaction: Interaction, ack: AckFn<object>): Promise<void> {
    const taken = await this.#store(interaction);
    if (taken?.refused === undefined) {
      await ack();
      return void taken?.goOn();
    }
    // The acknowledgment carries the text.
    await ack({ response_type: "ephemeral", text: taken.refused });
  }

  async takeSubmission(
    interaction: ViewSubmission,
    view: unknown,
    ack: AckFn<ViewResponseAction>,
  ): Promise<void> {
    const { id } = interaction;
    const first = this.#checking.get(id);
    if (first) return ack(await first);
    const answered = Promise.withResolvers<ViewResponseAction | undefined>();
    this.#checking.set(id, answered.promise);
    try {
      await this.#takeFirst(interaction, view, async (response) => {
        answered.resolve(response);
        await ack(response);
      });
    } finally {
      this.#checking.delete(id);
      answered.resolve(undefined);
    }
  }

  async suggest(request: SuggestRequest): Promise<{ options: Option[] }> {
    const { handlers, log } = this.#on;
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
  }

  /** Handles what a dead gateway left. */
  recover(stored: StoredInteraction, { givenUp }: { givenUp: GivenUp | undefined }): Promise<void> {
    const { handlers } = this.#on;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `kept` stored it
    const interaction = stored as Interaction;
    const work = () =>
      this.#attempt(interaction, async (reply) => {
        if (givenUp) return handlers.giveUp(interaction, reply, givenUp);
        if (interaction.kind === "submission") {
          const result = await handlers.submitBeforeAck(interaction);
          // The modal is closed by now, so its errors go into a message.
          const wrong = Object.values(result?.errors ?? {}).join(" ");
          if (wrong !== "") return reply.privately(say(md`Nothing was done: ${wrong}`));
        }
        await handlers.handleInteraction(interaction, reply);
      });
    return this.background.run(() => during(workOnInteraction(interaction.id), work));
  }

  // Before the acknowledgment

  /** Undefined when there is nothing to do. */
  async #store(interaction: Interaction | undefined): Promise<Taken | undefined> {
    if (interaction === undefined || interaction.userId === "") return undefined;
    const { interactions, handlers, onStored } = this.#on;
    try {
      const isKept = keptKinds.has(interaction.kind);
      const isNew = (await interactions.store(kept(interaction), { isKept })) === "new";
      await onStored?.(interaction, isNew);
      if (isNew) return { isNew, goOn: () => this.#handleNew(interaction) };
      return {
        goOn: () => this.#answer(interaction, (reply) => handlers.repeated(interaction, reply)),
      };
    } catch (error) {
      return this.#withoutStoring(interaction, error);
    }
  }

  /** How an interaction continues that could not be stored: a read goes on, all else is refused. */
  #withoutStoring(interaction: Interaction, error: unknown): Taken {
    const { interactions, handlers, log } = this.#on;
    const read =
      error instanceof NotStored ? handlers.withoutRedis?.(interaction, error) : undefined;
    if (read)
      return {
        goOn: () => {
          this.#answer(interaction, read);
          // Redis may have stored it nevertheless; finishing it prevents a second answer.
          void interactions.finish(kept(interaction));
        },
      };
    const message = notTaken(error, log);
    const replyLater = () => this.#answer(interaction, (reply) => reply.privately(message));
    // Opening the Home tab isn't a request, so a message about it would confuse.
    const goOn = interaction.kind === "home" ? () => undefined : replyLater;
    return { refused: plainly(message), goOn };
  }

  async #takeFirst(
    interaction: ViewSubmission,
    view: unknown,
    ack: AckFn<ViewResponseAction | undefined>,
  ): Promise<void> {
    const { interactions, handlers, log } = this.#on;
    const began = performance.now();
    const refuse = async ({ text, action }: Refusal): Promise<void> => {
      await ack(action);
      if (performance.now() - began < deadlineMs(perhapsLateMs)) return;
      // Slack may have given up by then, so nobody reads it in the form. The form may even be
      // closed: submitted again to another gateway, it is a mere copy there.
      const message = say(md`${text}`);
      this.#answer(interaction, (reply) => reply.privately(message));
    };
    const taken = await this.#store(interaction);
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
    this.#logTaken(interaction);
  }

  // After the acknowledgment

  #handleNew(interaction: Interaction): void {
    const { interactions, handlers } = this.#on;
    this.#afterAck(interaction, async () => {
      this.#logTaken(interaction);
      await this.#attempt(interaction, (reply) => handlers.handleInteraction(interaction, reply));
      await interactions.finish(kept(interaction));
    });
  }

  /** An interaction that isn't stored is only answered. */
  #answer(interaction: Interaction, work: Work): void {
    this.#afterAck(interaction, () => this.#attempt(interaction, work));
  }

  #afterAck({ id }: Interaction, work: () => Promise<void>): void {
    this.background.runAfterAck(() => during(workOnInteraction(id), work));
  }

  async #attempt(interaction: Interaction, work: Work): Promise<void> {
    const { replyTo, log } = this.#on;
    const reply = replyTo(interaction);
    try {
      // Repeating is safe, because handlers are idempotent.
      await patiently(() => work(reply));
    } catch (error) {
      const message = errorReply(error, log);
      // Opening the Home tab isn't a request, so a message about it would confuse.
      if (interaction.kind !== "home") await reply.privately(message);
    }
  }

  #logTaken({ kind, userId: person, channelId: channel }: Interaction): void {
    if (kind !== "home") this.#on.log.info("interaction.taken", { kind, person, channel });
  }
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
