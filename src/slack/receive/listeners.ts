import { within } from "../../deadline.ts";
import { during, workOnInteraction } from "../../log/ids.ts";
import type { Log } from "../../log/log.ts";
import { type Message, plainText, section } from "../../messages/message.ts";
import type {
  Interaction,
  Handlers,
  Reply,
  SubmissionResult,
  SuggestRequest,
  Suggestion,
} from "./interaction.ts";
import type { DeliveryKind, Prepared } from "./deliveries.ts";
import { type Handling, plainly } from "./handling.ts";
import { type Intake, IntakeDown } from "./intake.ts";
import { at, textAt, listAt } from "../web.ts";
import { readInteraction } from "./read-interaction.ts";
import type { ModalView } from "@slack/types";
import { md } from "../../messages/text.ts";

/** The result of intake. */
type Taken =
  | { interaction: Interaction; outcome: "new" | "seen" }
  /** Redis is unavailable, but this only reads: answered without being stored. */
  | { interaction: Interaction; outcome: "unwritten"; answer: (reply: Reply) => Promise<void> }
  /** Not stored: `text` goes into the ack where that can carry text. */
  | { interaction: Interaction; outcome: "refused"; text: string; message: Message };

interface PrepareOptions {
  us: { botUserId: string };
  intake: Intake;
  handlers: Handlers;
  handling: Handling;
  seal: (responseUrl: string) => string;
  log: Log;
  now: () => number;
}

/** Slack waits three seconds for an ack; the rest is for the network. */
const answerWithinMs = 2_200;

/** Before the ack: stores each delivery that asks for something, and says how it goes on. */
export function createPrepare(options: PrepareOptions) {
  const { us, intake, handlers, handling, seal, log, now } = options;

  /** Undefined when there is nothing to do. */
  async function take(body: unknown): Promise<Taken | undefined> {
    const interaction = readInteraction(body, us, now());
    if (interaction === undefined || interaction.userId === "") return undefined;
    const { responseUrl } = interaction;
    try {
      const sealed = responseUrl === undefined ? {} : { sealedResponseUrl: seal(responseUrl) };
      return { interaction, outcome: await intake.accept(interaction, sealed) };
    } catch (error) {
      if (error instanceof IntakeDown) {
        const answer = handlers.withoutRedis?.(interaction);
        if (answer && !error.isCrowded) return { interaction, outcome: "unwritten", answer };
      }
      return { interaction, outcome: "refused", ...plainly(error, log) };
    }
  }

  function goOn(taken: Taken): void {
    if (taken.outcome === "new") handling.handle(taken.interaction);
    else if (taken.outcome === "seen") handling.repeated(taken.interaction);
    else if (taken.outcome === "unwritten") handling.read(taken.interaction, taken.answer);
    else if (taken.outcome === "refused" && taken.interaction.kind !== "home")
      handling.tell(taken.interaction, taken.message);
  }

  async function stored(body: unknown): Promise<Prepared> {
    const taken = await take(body);
    return taken === undefined ? {} : { goOn: () => goOn(taken) };
  }

  async function command(body: unknown): Promise<Prepared> {
    const taken = await take(body);
    if (taken?.outcome === "refused")
      return { said: { response_type: "ephemeral", text: taken.text } };
    return taken === undefined ? {} : { goOn: () => goOn(taken) };
  }

  async function submission(body: unknown): Promise<Prepared> {
    const began = performance.now();
    const view = at(body, "view");
    const taken = await take(body);
    if (taken?.interaction.kind !== "submission") return {};
    const { interaction } = taken;
    if (taken.outcome === "refused") return { said: problemAck(view, taken.text) };
    if (taken.outcome !== "new") return { goOn: () => goOn(taken) };
    const leftMs = answerWithinMs - (performance.now() - began);
    const submitted = during(workOnInteraction(interaction.id), () => handlers.submit(interaction));
    const refusal = await refusalAck(submitted, view, leftMs, log);
    if (refusal === undefined) return { goOn: () => handling.handle(interaction) };
    // Begun before the ack: the corrected submission has the same id and must not count as a redelivery.
    const forgotten = intake.finish(interaction.id, { forget: true });
    return {
      said: refusal,
      async goOn() {
        await forgotten;
        handling.noteOnly(interaction);
      },
    };
  }

  async function suggest(body: unknown): Promise<Prepared> {
    const request: SuggestRequest = {
      userId: textAt(body, "user", "id"),
      teamId: textAt(body, "user", "team_id") || textAt(body, "team", "id"),
      action: textAt(body, "action_id"),
      typed: textAt(body, "value"),
      privateMetadata: textAt(body, "view", "private_metadata"),
    };
    const suggestions = Promise.try(async () => handlers.suggest?.(request));
    const found = await within(answerWithinMs, suggestions, () => []).catch((error: unknown) => {
      log.error("slack.suggest-failed", { error });
      return [];
    });
    const offered = (found ?? [])
      .slice(0, 100)
      .filter(({ value }) => value.length <= 75 && value !== "");
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
  const kinds: Record<DeliveryKind, (body: unknown) => Promise<Prepared>> = {
    command,
    button: stored,
    shortcut: stored,
    submission,
    closed: nothing,
    options: suggest,
    event,
    other: nothing,
  };
  return (kind: DeliveryKind, body: unknown) => kinds[kind](body);
}

function optionOf({ label, value, description }: Suggestion) {
  return {
    text: plainText(label, 75),
    value,
    ...(description === undefined ? {} : { description: plainText(description, 75) }),
  };
}

/** What an ack of a submission may carry (https://docs.slack.dev/surfaces/modals#handling_submissions). */
type SubmissionAck =
  | { response_action: "errors"; errors: Record<string, string> }
  | { response_action: "update"; view: ModalView };

/** What keeps the modal open, because the submission can't be handled; undefined closes it. */
async function refusalAck(
  result: Promise<SubmissionResult | undefined>,
  view: unknown,
  withinMs: number,
  log: Log,
): Promise<SubmissionAck | undefined> {
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
    return problemAck(view, plainly(error, log).text);
  }
}

/** On the first field, so that the input stays; a view without fields is replaced. */
function problemAck(view: unknown, sentence: string): SubmissionAck {
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
