import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError } from "../../config/config-error.ts";
import { textAt } from "../json.ts";
import type { Web } from "../web.ts";
import { CannotTell } from "./cannot-tell.ts";

/** The bot's own identity, from `auth.test`. Every delivery is checked against it. */
export interface BotIdentity {
  botId: string;
  botUserId: string;
  teamId: string;
  teamName?: string;
  /** Only on Enterprise Grid. */
  enterpriseId?: string;
  /** The app's ID, if known: from `bots.info` or an app-level token (`xapp-1-A…-`). */
  appId?: string;
}

export async function readIdentity(
  web: Web,
  options: { appToken?: string | undefined } = {},
): Promise<BotIdentity | { problem: string; retry: boolean }> {
  const answer = await web.call("auth.test");
  if (!answer.ok) {
    if (answer.kind === "refused")
      return { problem: `Slack rejected the bot token (${answer.error})`, retry: false };
    const isLimited = answer.kind === "limited";
    const problem = isLimited ? "Slack limits calls" : `Slack can't be reached: ${answer.reason}`;
    return { problem, retry: true };
  }
  const [botId, botUserId] = [textAt(answer.data, "bot_id"), textAt(answer.data, "user_id")];
  const teamId = textAt(answer.data, "team_id");
  const enterpriseId = textAt(answer.data, "enterprise_id");
  if (botUserId === "" || teamId === "")
    return { problem: "auth.test named no user or no team", retry: false };
  if (botId === "")
    return { problem: "this token is not a bot's (auth.test names no bot_id)", retry: false };
  const appId =
    /^xapp-\d+-(A[A-Z0-9]+)-/.exec(options.appToken ?? "")?.[1] ?? (await appOf(botId, web));
  return {
    botId,
    botUserId,
    teamId,
    teamName: textAt(answer.data, "team"),
    ...(enterpriseId === "" ? {} : { enterpriseId }),
    ...(appId === undefined ? {} : { appId }),
  };
}

/**
 * Over HTTP no token names the app. If Slack doesn't either, only the signing secret keeps other
 * apps out.
 */
async function appOf(botId: string, web: Web): Promise<string | undefined> {
  const answer = await web.call("bots.info", { bot: botId });
  return (answer.ok && textAt(answer.data, "bot", "app_id")) || undefined;
}

const firstWaitMs = 250;
const longestWaitMs = 5_000;

/** Asks Slack in the background who the bot is, for as long as it takes. */
export function learnIdentity(web: Web, options: { appToken?: string | undefined }) {
  const closing = new AbortController();
  let known: BotIdentity | undefined;
  let why = "Slack hasn't answered yet";

  async function learn(): Promise<BotIdentity> {
    for (let tries = 0; ; tries += 1) {
      const answer = await readIdentity(web, options);
      if (!("problem" in answer)) return (known = answer);
      if (!answer.retry)
        throw new ConfigError([
          `SLACK_BOT_TOKEN: ${answer.problem}; check SLACK_BOT_TOKEN and SLACK_API_URL`,
        ]);
      why = answer.problem;
      const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** tries);
      await sleep(waitMs, undefined, { signal: closing.signal });
    }
  }

  const learned = learn();
  learned.catch(() => undefined); // Callers that need it await it and get the error.
  return {
    /** Throws CannotTell until Slack has answered. */
    known(): BotIdentity {
      if (known === undefined) throw new CannotTell(why);
      return known;
    },
    /** Rejects with a ConfigError when Slack refuses the token, because a person must fix that. */
    learned,
    close: async () => closing.abort(),
  };
}
