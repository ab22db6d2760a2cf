import type { Log } from "../../log/log.ts";
import type { Message } from "../../messages/blocks.ts";
import { type WebData, textAt } from "../json.ts";
import { type EphemeralPost, postResponse } from "../response-url.ts";
import { type WebAnswer, isBecauseOfUs } from "../web-answer.ts";
import { type Place, type Web, postMessage } from "../web.ts";
import { type Interaction, type Reply, isDirect } from "./interaction.ts";
import { showOrSay } from "../refused-message.ts";

interface ReplyOptions {
  web: Web;
  interaction: Interaction;
  /** Determines which response URLs are Slack's. */
  apiUrl: string;
  log: Log;
  now?: () => number;
  /** Called when Slack accepted the answer in no way. */
  onLostReply?: ((interaction: Interaction) => Promise<void>) | undefined;
}

/** Slack accepts five posts to a response URL within half an hour. A minute is kept in reserve. */
const maxUses = 5;
const usableForMs = 29 * 60_000;

export function createReply(options: ReplyOptions): Reply {
  const { web, interaction, apiUrl, log, now = Date.now } = options;
  let uses = 0;

  async function respond(response: EphemeralPost): Promise<boolean> {
    const { responseUrl: url, at: receivedAt } = interaction;
    if (!url || uses >= maxUses || now() - receivedAt > usableForMs) return false;
    uses += 1;
    const outcome = await postResponse(url, response, { apiUrl });
    if (outcome !== "done")
      log.info("slack.response-url", { interaction: interaction.id, outcome, uses });
    return outcome === "done";
  }

  /** Calls Slack, and logs failures. */
  async function call(method: string, args?: WebData): Promise<WebAnswer> {
    const answer = await web.call(method, args);
    if (!answer.ok)
      log.warn("slack.reply-failed", { method, interaction: interaction.id, ...answer });
    return answer;
  }

  /**
   * Answers without a usable response URL: by an ephemeral post in the channel, or else by a direct
   * message. When Slack is unreachable or the answer is lost, no other way works better now, so the
   * person is told later.
   */
  async function post(message: Message): Promise<void> {
    const { channelId, threadTs, userId } = interaction;
    const postIn = (there: Place) =>
      showOrSay(message, (shown) => postMessage({ call }, there, shown));
    let answer: WebAnswer | undefined;
    if (isDirect(interaction)) answer = await postIn({ channelId, threadTs });
    else if (channelId !== "") {
      const place = { channel: channelId, user: userId, ...(threadTs && { thread_ts: threadTs }) };
      answer = await showOrSay(message, ({ text, blocks }) =>
        call("chat.postEphemeral", { ...place, text, blocks }),
      );
    }
    if (answer === undefined || (!answer.ok && answer.kind === "refused"))
      answer = await postIn({ channelId: userId });
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

  // In a public message, the response URL would replace that message for everyone.
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
      return answer.ok ? textAt(answer.data, "view", "id") : undefined;
    },
    async update(viewId, view, hash) {
      await call("views.update", { view_id: viewId, view, ...(hash && { hash }) });
    },
  };
}
