import type { View } from "@slack/types";
import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import type { Ask } from "./ask.ts";
import { textAt } from "./payload.ts";
import { postResponse, type ResponseDeed } from "./post-response.ts";
import type { Reply } from "./reply.ts";
import type { Web, WebAnswer } from "./web.ts";

export interface ReplyOptions {
  web: Web;
  ask: Ask;
  /** The address of Slack's API: says which response URLs are Slack's. */
  apiUrl: string;
  log: Log;
  now?: () => number;
  /** An answer to this person reached nobody: Slack didn't take it anywhere. */
  unheard?: ((ask: Ask) => Promise<void>) | undefined;
}

/** Slack takes five posts to a response URL, within half an hour; a minute is kept for our own slowness. */
const mostUses = 5;
const usableForMs = 29 * 60_000;

export function createReply(options: ReplyOptions): Reply {
  const { web, ask, apiUrl, log, now = Date.now } = options;
  let uses = 0;

  /** True when Slack took it, or may have. */
  async function respond(deed: ResponseDeed): Promise<boolean> {
    if (ask.responseUrl === undefined || uses >= mostUses || now() - ask.at > usableForMs)
      return false;
    uses += 1;
    const outcome = await postResponse(ask.responseUrl, deed, { apiUrl });
    if (outcome !== "done") log.info("slack.response-url", { ask: ask.id, outcome, uses });
    return outcome === "done";
  }

  async function call(method: string, args: Record<string, unknown>): Promise<WebAnswer> {
    const answer = await web.call(method, args);
    if (!answer.ok) log.warn("slack.reply-failed", { method, ask: ask.id, ...answer });
    return answer;
  }

  /**
   * Without a usable response URL: an ephemeral where it was asked, or else a direct message. When Slack can't be reached
   * or may not have taken it, no other way would do better now: the person is told later.
   */
  async function post(message: Message): Promise<void> {
    const { text, blocks } = message;
    let answer: WebAnswer | undefined;
    if (ask.channelId !== "") {
      const place = { channel: ask.channelId, user: ask.userId, ...inThread(ask) };
      answer = await call("chat.postEphemeral", { ...place, text, blocks });
    }
    if (answer === undefined || (!answer.ok && answer.kind === "refused"))
      answer = await call("chat.postMessage", {
        channel: ask.userId,
        text,
        blocks,
        unfurl_links: false,
        unfurl_media: false,
      });
    if (!answer.ok && answer.kind !== "refused") await tellLater();
  }

  /** With Redis away as well nothing can tell them; they will ask again. */
  async function tellLater(): Promise<void> {
    try {
      await options.unheard?.(ask);
    } catch (error) {
      log.warn("slack.not-told-later", { ask: ask.id, error });
    }
  }

  async function privately(message: Message): Promise<void> {
    const done = await respond({
      show: message,
      replace: false,
      threadTs: inThread(ask).thread_ts,
    });
    if (!done) await post(message);
  }

  // The response URL of a button in a public message would replace that message, for everybody.
  const mayReplace = ask.kind === "button" && ask.ephemeral;

  const replace = async (message: Message) =>
    mayReplace && (await respond({ show: message, replace: true }));

  return {
    privately,
    replace,
    async instead(message) {
      if (!(await replace(message))) await privately(message);
    },
    async remove() {
      if (mayReplace) await respond({ removeOriginal: true });
    },
    async open(view) {
      if (ask.triggerId === undefined) return undefined;
      // Slack opens a modal over another one only with views.push.
      const onTop = ask.kind === "button" && ask.view?.type === "modal";
      const answer = await call(onTop ? "views.push" : "views.open", {
        trigger_id: ask.triggerId,
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

function inThread(ask: Ask): { thread_ts?: string } {
  return ask.threadTs === undefined ? {} : { thread_ts: ask.threadTs };
}
