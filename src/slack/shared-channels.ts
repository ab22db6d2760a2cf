import type { Log } from "../log/log.ts";
import { sharedOutside, unseenGroup } from "../messages/channel-errors.ts";
import { type WebData, at, textAt } from "./json.ts";
import { type WebAnswer, isShutOut } from "./web-answer.ts";
import type { Web } from "./web.ts";

/** How long Slack's answer about a channel counts (ms). */
const goodForMs = 300_000;
/** A post right after a check may use the check's answer for this much longer (ms). */
const graceMs = 60_000;
const maxKept = 10_000;

type No = Extract<WebAnswer, { ok: false }>;

/**
 * Whether only the scope for group direct messages is missing. Slack names the scopes that the kind
 * of the conversation needs.
 */
const isOfGroup = ({ error, needed = "" }: Extract<WebAnswer, { kind: "refused" }>) =>
  error === "missing_scope" && needed.split(",").every((scope) => scope.trim() === "mpim:read");

export type SharedChannels = ReturnType<typeof createSharedChannels>;

/**
 * A channel that is shared with another company is closed to Gatehouse, like one of which it isn't
 * a member, unless gatehouse.yml names it under `sharedChannels`. A person who asks there is
 * answered privately.
 */
export function createSharedChannels(options: {
  web: Web;
  /** Read at each use, because the policy may change. */
  allowed(): readonly string[];
  log: Log;
}) {
  const { web, allowed, log } = options;
  const known = new Map<string, { since: number; no: Promise<No | undefined> }>();

  async function look(channelId: string): Promise<No | undefined> {
    const answer = await web.call("conversations.info", { channel: channelId });
    if (answer.ok) {
      const isShared = at(answer.data, "channel", "is_ext_shared") === true;
      return isShared
        ? { ok: false, kind: "refused", error: sharedOutside, detail: [] }
        : undefined;
    }
    // Nothing was posted, whatever became of the question.
    if (answer.kind === "lost") return { ok: false, kind: "unreachable", reason: answer.reason };
    if (answer.kind !== "refused") return answer;
    if (isShutOut(answer)) return { ok: false, kind: "unreachable", reason: answer.error };
    // Without the scope, nobody can see who is in a group direct message, so it is closed.
    if (isOfGroup(answer))
      return { ok: false, kind: "refused", error: unseenGroup, detail: answer.detail };
    // A channel that the bot doesn't see refuses the post, too. `doctor` names a missing scope.
    log.warn("slack.channel-unseen", { channel: channelId, error: answer.error });
    return undefined;
  }

  async function refusal(channelId: string, withinMs = goodForMs): Promise<No | undefined> {
    if (!/^[CG]/.test(channelId) || allowed().includes(channelId)) return undefined;
    const last = known.get(channelId);
    if (last && performance.now() - last.since < withinMs) return last.no;
    if (known.size >= maxKept) known.clear();
    const asked = { since: performance.now(), no: look(channelId) };
    known.set(channelId, asked);
    const no = await asked.no;
    // Only what Slack said is remembered.
    if (no && no.kind !== "refused" && known.get(channelId) === asked) known.delete(channelId);
    return no;
  }

  return {
    /**
     * Why nothing may be posted in a channel now. Undefined when posts are allowed. Slack is asked
     * at most every five minutes.
     */
    refusal: (channelId: string) => refusal(channelId),
    /** Slack's Web API, except that posts in such channels are refused. */
    web: {
      async call(method: string, args?: WebData) {
        // Everyone in a channel reads a post. An edit can't reach a channel where nothing was
        // posted.
        const channelId = method === "chat.postMessage" && textAt(args, "channel");
        const no = channelId && (await refusal(channelId, goodForMs + graceMs));
        return no || web.call(method, args);
      },
    },
  };
}
