import { within } from "../../deadline.ts";
import { messageOf } from "../../errors.ts";
import { during, workOnInteraction } from "../../log/ids.ts";
import type { Log } from "../../log/log.ts";
import { patiently } from "../../redis/trouble.ts";
import type { Message } from "../../messages/message.ts";
import { md } from "../../messages/text.ts";
import { errorReply, say } from "../error-reply.ts";
import type { Interaction, Handlers, Reply } from "./interaction.ts";
import type { Intake, LeftInteraction } from "./intake.ts";

/** Handles interactions after their ack: nothing here throws, and `idle` waits for it. */
export type Handling = ReturnType<typeof createHandling>;

export function createHandling(options: {
  handlers: Handlers;
  intake: Intake;
  log: Log;
  replyTo: (interaction: Interaction) => Reply;
  /** Undefined when it isn't sealed by Gatehouse, or isn't Slack's. */
  openUrl: (sealed: string) => string | undefined;
}) {
  const { handlers, intake, log, replyTo } = options;
  const running = new Set<Promise<void>>();

  function track({ id }: Interaction, work: () => Promise<void>): void {
    const task = during(workOnInteraction(id), () => Promise.try(work))
      .catch((error: unknown) => log.error("slack.handling-failed", { error }))
      .finally(() => running.delete(task));
    running.add(task);
  }

  function note({ kind, userId: person, channelId: channel }: Interaction): void {
    if (kind !== "home") log.info("interaction.taken", { kind, person, channel });
  }

  async function attempt(
    interaction: Interaction,
    work: (reply: Reply) => Promise<void>,
  ): Promise<void> {
    const reply = replyTo(interaction);
    try {
      // As after a take-over: what ran once changes nothing when it runs again
      await patiently(() => work(reply));
    } catch (error) {
      const message = errorReply(error, log);
      // Opening the Home tab is no request: a message about it would confuse
      if (interaction.kind !== "home") await reply.privately(message);
    }
  }

  async function finishing(
    interaction: Interaction,
    work: (reply: Reply) => Promise<void>,
  ): Promise<void> {
    await attempt(interaction, work);
    await intake.finish(interaction.id);
  }

  async function takeOver(
    { interaction, sealedResponseUrl, tooLate }: LeftInteraction,
    reply: Reply,
  ): Promise<void> {
    if (tooLate) return handlers.tooLate(reply);
    log.info("intake.taken-over", {
      interaction: interaction.id,
      kind: interaction.kind,
      answerable: sealedResponseUrl !== undefined,
    });
    if (interaction.kind === "submission") {
      const result = await handlers.submit(interaction);
      // Its modal is closed, so its errors go into a message
      const wrong = Object.values(result?.errors ?? {}).join(" ");
      if (wrong !== "") return reply.privately(say(md`Nothing was done: ${wrong}`));
    }
    await handlers.handle(interaction, reply);
  }

  async function handle(interaction: Interaction): Promise<void> {
    note(interaction);
    await finishing(interaction, (reply) => handlers.handle(interaction, reply));
  }

  const repeated = (interaction: Interaction) =>
    attempt(interaction, (reply) => handlers.repeated(interaction, reply));

  const tell = (interaction: Interaction, message: Message) =>
    attempt(interaction, (reply) => reply.privately(message));

  return {
    handle: (interaction: Interaction) => track(interaction, () => handle(interaction)),
    /** A submission that its ack gave back. */
    noteOnly: (interaction: Interaction) => track(interaction, async () => note(interaction)),
    repeated: (interaction: Interaction) => track(interaction, () => repeated(interaction)),
    tell: (interaction: Interaction, message: Message) =>
      track(interaction, () => tell(interaction, message)),
    /** A read-only answer while Redis is unavailable. */
    read: (interaction: Interaction, answer: (reply: Reply) => Promise<void>) =>
      track(interaction, () => attempt(interaction, answer)),
    /** An interaction of a dead gateway. */
    takeOver(left: LeftInteraction): void {
      const url =
        left.sealedResponseUrl === undefined ? undefined : options.openUrl(left.sealedResponseUrl);
      const interaction =
        url === undefined ? left.interaction : { ...left.interaction, responseUrl: url };
      track(interaction, () =>
        finishing(interaction, (reply) => takeOver({ ...left, interaction }, reply)),
      );
    },
    running: () => running.size,
    /** Waits until nothing runs, at most `deadlineMs`; resolves with how many still run. */
    async idle(deadlineMs: number): Promise<number> {
      const until = performance.now() + deadlineMs;
      while (running.size > 0) {
        const leftMs = until - performance.now();
        if (leftMs <= 0) break;
        await within(leftMs, Promise.allSettled(running), () => undefined);
      }
      if (running.size > 0) log.warn("slack.still-handling", { running: running.size, deadlineMs });
      return running.size;
    },
  };
}

/** A failure before the ack: as a message, and as plain text for the ack. */
export function plainly(error: unknown, log: Log): { text: string; message: Message } {
  const message = errorReply(error, log);
  log.info("slack.not-taken", { why: messageOf(error) });
  return { text: message.text.replaceAll("\n", " "), message };
}
