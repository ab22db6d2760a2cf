import { setTimeout as sleep } from "node:timers/promises";
import { blocksInWords } from "../../fleet/charts/in-words.ts";
import { type Block, type Message, section, md } from "../../messages/message.ts";
import { originOf } from "../../talk/act-origin.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  type HomeTab,
  personOf,
} from "../../talk/gateway-context.ts";
import { press } from "../../talk/press.ts";
import { replyWithError } from "../../talk/reply-with-error.ts";
import { textAt } from "../../slack/json.ts";
import type { Interaction, Press } from "../../slack/receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import type { HomePart } from "../home-part.ts";
import { type News, homeBlocks, newsBlocks } from "./render-home.ts";

/** How long what a press there began is followed (ms), and how often it is looked at. */
const followedForMs = 120_000;
const followEveryMs = 500;

/** `parts`: what features show there. */
export function createHomeTab(parts: () => readonly HomePart[]): HomeTab {
  /** The newest press of each person. */
  const followed = new Map<string, symbol>();

  async function publish(
    act: BeforeAck<Pick<Interaction, "userId" | "teamId">>,
    news: News,
  ): Promise<boolean> {
    const { gateway } = act;
    const person = await personOf(act);
    const blocks =
      person.kind === "member"
        ? [...(await newsBlocks(news, gateway)), ...(await homeBlocks(person, gateway, parts()))]
        : [section(md`Only full members of the workspace can use this.`)];
    const put = (some: readonly Block[]) =>
      gateway.web.call("views.publish", {
        user_id: act.interaction.userId,
        view: { type: "home", blocks: some.slice(0, 100) },
      });
    let answer = await put(blocks);
    const words = blocksInWords(blocks);
    // Charts and tables that Slack refuses there
    if (!answer.ok && answer.kind === "refused" && words) answer = await put(words);
    if (!answer.ok) gateway.log.warn("slack.home-failed", { ...answer });
    return answer.ok;
  }

  /** `shown`: the state that stands there at least. */
  async function follow(act: Act<Press>, news: News & { request: string }, shown: string) {
    const { userId } = act.interaction;
    const mine = Symbol(userId);
    followed.set(userId, mine);
    const until = performance.now() + followedForMs;
    let last = shown;
    while (followed.get(userId) === mine) {
      const state = await stateOf(news.request, act.gateway);
      if (state !== last) await publish(act, news);
      last = state;
      if (state.endsWith("true") || performance.now() > until) followed.delete(userId);
      else await sleep(followEveryMs, undefined, { ref: false });
    }
  }

  return {
    show: (act, said) => publish(act, { said }),

    /** At once, and again when what it began moves on. */
    async pressed(act) {
      const { interaction, reply, gateway } = act;
      let said: Message | undefined;
      const onHome = async (message: Message) => void (said = message);
      await replyWithError(
        { ...act, reply: { ...reply, privately: onHome, instead: onHome } },
        press,
      );
      const named = textAt(parseJson(interaction.value), "request");
      const request = named || (await gateway.store.madeBy(originOf(act)))?.record.id;
      const shown = request === undefined ? "" : await stateOf(request, gateway);
      await publish(act, { said, request });
      if (request !== undefined) void follow(act, { said, request }, shown).catch(() => undefined);
    },
  };
}

async function stateOf(id: string, { store }: Pick<GatewayContext, "store">): Promise<string> {
  const request = await store.get(id);
  return `${request?.state} ${request?.votes.length} ${request?.final ?? true}`;
}
