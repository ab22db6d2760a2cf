import type { View } from "@slack/types";
import type { Log } from "../../log/log.ts";
import { message as makeMessage, type Message, news, section } from "../../messages/message.ts";
import { type Interaction, isDirect, type Reply } from "./interaction.ts";
import { isBecauseOfUs, textAt, postMessage, type Web, type WebAnswer } from "../web.ts";
import { showOrSay } from "../deliver/post-once.ts";
import { postResponse, type EphemeralPost } from "../deliver/response-url.ts";
import { lines, type Markdown, md, name } from "../../messages/text.ts";
import type { Announce } from "../deliver/announce.ts";

interface ReplyOptions {
  web: Web;
  interaction: Interaction;
  /** Determines which response URLs are Slack's. */
  apiUrl: string;
  log: Log;
  now?: () => number;
  /** Slack accepted the answer nowhere. */
  onLostReply?: ((interaction: Interaction) => Promise<void>) | undefined;
}

/** Slack accepts five posts to a response URL within half an hour; a minute is kept in reserve. */
const maxUses = 5;
const usableForMs = 29 * 60_000;

export function createReply(options: ReplyOptions): Reply {
  const { web, interaction, apiUrl, log, now = Date.now } = options;
  let uses = 0;

  async function respond(response: EphemeralPost): Promise<boolean> {
    if (
      interaction.responseUrl === undefined ||
      uses >= maxUses ||
      now() - interaction.at > usableForMs
    )
      return false;
    uses += 1;
    const outcome = await postResponse(interaction.responseUrl, response, { apiUrl });
    if (outcome !== "done")
      log.info("slack.response-url", { interaction: interaction.id, outcome, uses });
    return outcome === "done";
  }

  async function call(method: string, args: Record<string, unknown>): Promise<WebAnswer> {
    const answer = await web.call(method, args);
    noteFailure(method, answer);
    return answer;
  }

  function noteFailure(method: string, answer: WebAnswer): void {
    if (!answer.ok)
      log.warn("slack.reply-failed", { method, interaction: interaction.id, ...answer });
  }

  /**
   * Without a usable response URL: an ephemeral post in the channel, or else a direct message. When Slack is unreachable
   * or the answer is lost, no other way works better now: the person is told later.
   */
  async function post(message: Message): Promise<void> {
    const { channelId, threadTs, userId } = interaction;
    let answer: WebAnswer | undefined;
    if (isDirect(interaction)) {
      answer = await showOrSay(message, (one) => postMessage(web, { channelId, threadTs }, one));
      noteFailure("chat.postMessage", answer);
    } else if (channelId !== "") {
      const place = { channel: channelId, user: userId, ...(threadTs && { thread_ts: threadTs }) };
      answer = await showOrSay(message, ({ text, blocks }) =>
        call("chat.postEphemeral", { ...place, text, blocks }),
      );
    }
    if (answer === undefined || (!answer.ok && answer.kind === "refused")) {
      answer = await showOrSay(message, (one) => postMessage(web, { channelId: userId }, one));
      noteFailure("chat.postMessage", answer);
    }
    if (answer.ok || (answer.kind === "refused" && !isBecauseOfUs(answer.error))) return;
    try {
      await options.onLostReply?.(interaction);
    } catch (error) {
      log.warn("slack.not-told-later", { interaction: interaction.id, error });
    }
  }

  async function privately(message: Message): Promise<void> {
    const { threadTs } = interaction;
    if (!(await respond({ show: message, replace: false, threadTs }))) await post(message);
  }

  // In a public message the response URL would replace that message for everyone.
  const mayReplace = interaction.kind === "button" && interaction.ephemeral;

  const replace = async (message: Message) =>
    mayReplace && (await respond({ show: message, replace: true }));

  return {
    privately,
    replace,
    async instead(message) {
      if (!(await replace(message))) await privately(message);
    },
    async open(view) {
      if (interaction.triggerId === undefined) return undefined;
      // Slack opens a modal over another one only with views.push.
      const onTop = interaction.kind === "button" && interaction.view?.type === "modal";
      const answer = await call(onTop ? "views.push" : "views.open", {
        trigger_id: interaction.triggerId,
        view,
      });
      if (!answer.ok) return undefined;
      return { id: textAt(answer.data, "view", "id"), hash: textAt(answer.data, "view", "hash") };
    },
    async update(viewId: string, view: View, hash?: string) {
      const answer = await call("views.update", {
        view_id: viewId,
        view,
        ...(hash === undefined ? {} : { hash }),
      });
      return answer.ok;
    },
  };
}

export function lostReply(what: Markdown): Message {
  const text = lines(
    md`Slack was unavailable when Gatehouse answered ${what}.`,
    md`If no message about it is in the channel, nothing was done. Please try again.`,
  );
  return makeMessage(
    news(md`Slack lost Gatehouse's answer to ${what}. Please try again.`),
    section(text),
  );
}

/**
 * Tells people later, by direct message, that Slack lost an answer. Never the answer itself: it may be short-lived (a
 * console's address), and the command can be repeated.
 */
export function createLostReplies(announce: Announce): (interaction: Interaction) => Promise<void> {
  return async (interaction) => {
    // The Home tab is simply opened again
    if (interaction.kind === "home") return;
    const what = interaction.kind === "command" ? name(`/${interaction.text}`) : md`you`;
    const message = lostReply(what);
    const { id, userId: channelId } = interaction;
    await announce({ id: `unheard:${id}`, channelId, message });
  };
}
