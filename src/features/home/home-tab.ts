import { setTimeout as sleep } from "node:timers/promises";
import type { HomeView } from "@slack/types";
import type { Message } from "../../messages/blocks.ts";
import { md } from "../../messages/markdown.ts";
import { paragraph } from "../../messages/parts.ts";
import { homeInWords, homeView } from "../../messages/views.ts";
import { originOf } from "../../talk/act-origin.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  personOf,
} from "../../talk/gateway-context.ts";
import type { HomeTab } from "../../talk/service-keys.ts";
import { press } from "../../talk/press.ts";
import { replyWithError } from "../../talk/reply-with-error.ts";
import { textAt } from "../../slack/json.ts";
import type { Actor, Press } from "../../slack/receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { homePartsOf } from "../home-part.ts";
import { type News, homeParts, newsParts } from "./render-home.ts";

/** How long the tab follows a request that a press on it made, and how often it looks (ms). */
const followedForMs = 120_000;
const followEveryMs = 500;

export function createHomeTab(): HomeTab {
  /** The newest press of each person by user ID: only that one is followed. */
  const followed = new Map<string, symbol>();

  async function publish(act: BeforeAck<Actor>, news: News): Promise<boolean> {
    const { gateway } = act;
    const person = await personOf(act);
    const parts =
      person.kind === "member"
        ? [
            ...(await newsParts(news, gateway)),
            ...(await homeParts(person, gateway, homePartsOf(gateway))),
          ]
        : [paragraph(md`Only full members of the workspace can use this.`)];
    const put = (view: HomeView) =>
      gateway.web.call("views.publish", { user_id: act.interaction.userId, view });
    let answer = await put(homeView(parts));
    const words = homeInWords(parts);
    // Slack refuses some charts and tables on the Home tab; then their content is shown as text.
    if (!answer.ok && answer.kind === "refused" && words) answer = await put(words);
    if (!answer.ok) gateway.log.warn("slack.home-failed", { ...answer });
    return answer.ok;
  }

  /**
   * Publishes the tab again whenever the request changes, until the person presses something else.
   * `shown` is the state that the tab shows already.
   */
  async function follow(
    act: Act<Press>,
    news: News & { request: string },
    { shown, thisPress }: { shown: string; thisPress: symbol },
  ) {
    const { userId } = act.interaction;
    const isNewest = () => followed.get(userId) === thisPress;
    const until = performance.now() + followedForMs;
    let last = shown;
    while (isNewest()) {
      const state = await stateOf(news.request, act.gateway);
      if (!isNewest()) return;
      if (state !== last) await publish(act, news);
      last = state;
      if (!state.endsWith("true") && performance.now() <= until)
        await sleep(followEveryMs, undefined, { ref: false });
      else if (isNewest()) followed.delete(userId);
    }
  }

  return {
    show: (act, message) => publish(act, { answer: message }),

    /** Publishes the tab at once, and again when the request of the press changes. */
    async pressed(act) {
      const { interaction, reply, gateway } = act;
      // Ends the following of an earlier press, whose answer would replace that to this one.
      const thisPress = Symbol(interaction.userId);
      followed.set(interaction.userId, thisPress);
      let result: Message | undefined;
      const onHome = async (message: Message) => void (result = message);
      await replyWithError(
        { ...act, reply: { ...reply, privately: onHome, instead: onHome } },
        press,
      );
      const named = textAt(parseJson(interaction.value), "request");
      const request = named || (await gateway.store.madeBy(originOf(act)))?.record.id;
      const shown = request === undefined ? "" : await stateOf(request, gateway);
      await publish(act, { answer: result, request });
      if (request !== undefined)
        void follow(act, { answer: result, request }, { shown, thisPress }).catch(() => undefined);
    },
  };
}

async function stateOf(id: string, { store }: Pick<GatewayContext, "store">): Promise<string> {
  const request = await store.get(id);
  return `${request?.state} ${request?.votes.length} ${request?.final ?? true}`;
}
