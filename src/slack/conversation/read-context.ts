import type { ReadContext } from "../../commands/context.ts";
import type { Message } from "../../messages/message.ts";
import { mayRun } from "../../policy/refusal.ts";
import type { Answer, ReadCommand } from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import { resolveTarget } from "../../requests/submit/resolve.ts";
import { linkTo } from "../deliver/permalink.ts";
import { showOrSay } from "../deliver/post-once.ts";
import type { Interaction } from "../receive/interaction.ts";
import { postMessage, whyOf } from "../web.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** Runs a read command. `args` is what its schema parsed. */
export function answerOf(
  command: ReadCommand,
  args: unknown,
  person: Person,
  { channelId }: Pick<Interaction, "channelId">,
  gateway: GatewayContext,
  { approved, isShared = false }: { approved?: string; isShared?: boolean } = {},
): Promise<Message | Answer> {
  const { policy, ourTeamId, inventory } = gateway;
  const context: ReadContext = {
    ...gateway,
    person,
    channelId,
    isShared,
    ...(approved === undefined ? {} : { approved }),
    journal: gateway.store,
    resolve: (kind, words) => resolveTarget(kind, words, inventory),
    mayRun: (one, targets = []) => mayRun({ policy, person, ourTeamId, command: one, targets }),
    linkTo: (message) => linkTo(message, gateway),
    post: (channel, digest) => post(channel, digest, gateway),
  };
  return command.answer(args as never, context as never);
}

/** Posts a digest. Returns why it couldn't. */
async function post(
  channelId: string,
  digest: Message,
  { web }: Pick<GatewayContext, "web">,
): Promise<string | undefined> {
  const posted = await showOrSay(digest, (one) => postMessage(web, { channelId }, one));
  return posted.ok || posted.kind === "lost" ? undefined : whyOf(posted);
}
