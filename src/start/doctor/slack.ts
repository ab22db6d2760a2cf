import type { Config } from "../../config/config.ts";
import { messageOf } from "../../errors.ts";
import { parseJson, textAt } from "../../slack/web.ts";
import { clockFinding, type Finding, ill, note, well } from "./finding.ts";

/** One answer of Slack, or why there was none. */
export type SlackAnswer =
  | { data: unknown; scopes: readonly string[] | undefined; date: string | null }
  | { silence: string };

/** History and metadata are needed to look for a message whose post was not answered before it is posted again. */
export const botScopes = [
  "app_mentions:read",
  "channels:history",
  "channels:read",
  "chat:write",
  "commands",
  "files:write",
  "groups:history",
  "groups:read",
  "im:history",
  "im:write",
  "metadata.message:read",
  "mpim:history",
  "usergroups:read",
  "users:read",
] as const;

const withinMs = 8_000;

/** A call that shows headers, too; Slack's client hides them. */
export async function askSlack(
  { apiUrl, token }: { apiUrl: string; token: string },
  method: string,
  args: Readonly<Record<string, string>> = {},
): Promise<SlackAnswer> {
  try {
    const answer = await fetch(new URL(method, apiUrl), {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: new URLSearchParams(args),
      redirect: "error",
      signal: AbortSignal.timeout(withinMs),
    });
    const data = parseJson(await answer.text());
    if (typeof data !== "object" || data === null)
      return { silence: `the answer is no JSON (status ${answer.status})` };
    const scopes = answer.headers
      .get("x-oauth-scopes")
      ?.split(",")
      .map((one) => one.trim());
    return { data, scopes, date: answer.headers.get("date") };
  } catch (error) {
    const cause = error instanceof Error && error.cause ? `: ${messageOf(error.cause)}` : "";
    return { silence: messageOf(error) + cause };
  }
}

/** `ok`, Slack's error, or undefined for silence. */
export function wordOf(answer: SlackAnswer): string | undefined {
  if ("silence" in answer) return undefined;
  return textAt(answer.data, "error") || "ok";
}

export type SlackFacts = Awaited<ReturnType<typeof lookAtSlack>>;

export async function lookAtSlack({ slack }: Config, now: number) {
  const { apiUrl, botToken, receive } = slack;
  const appToken = receive?.mode === "socket" ? receive.secret : undefined;
  const as = { apiUrl, token: botToken };
  const [bot, app] = await Promise.all([
    askSlack(as, "auth.test"),
    appToken === undefined
      ? undefined
      : askSlack({ apiUrl, token: appToken }, "apps.connections.open"),
  ]);
  const botId = "data" in bot ? textAt(bot.data, "bot_id") : "";
  return {
    /** `auth.test` with the bot token. */
    bot,
    /** `bots.info` of that bot. */
    info: botId === "" ? undefined : await askSlack(as, "bots.info", { bot: botId }),
    /** `apps.connections.open`; undefined without an app token. */
    app,
    /** `A…` as the app token says it. */
    appIdOfToken: /^xapp-\d+-(A[A-Z0-9]+)-/.exec(appToken ?? "")?.[1],
    mode: receive?.mode,
    now,
  };
}

const tokenMends: Readonly<Record<string, string>> = {
  invalid_auth: "Copy it again from OAuth & Permissions; it may have been revoked.",
  token_revoked: "Install the app in Slack again, and copy the new token.",
  token_expired: "Copy the new token, and switch token rotation off as in manifest.yml.",
  account_inactive: "The app was removed from the workspace: install it again.",
  not_allowed_token_type: "This is another kind of token: OAuth & Permissions has the bot token.",
};

const appTokenMends: Readonly<Record<string, string>> = {
  invalid_auth: "Copy it again from Basic Information, App-Level Tokens.",
  missing_scope: "It needs the scope connections:write: make a new one in Basic Information.",
  not_allowed_token_type: "This is another kind of token: Basic Information has app-level tokens.",
};

export function judgeSlack(facts: SlackFacts): readonly Finding[] {
  const { bot } = facts;
  if ("silence" in bot) {
    const mend =
      "Check SLACK_API_URL, DNS, and whether this machine reaches Slack directly or needs HTTPS_PROXY.";
    return [ill(`Slack can't be reached: ${bot.silence}`, mend)];
  }
  return [...botFindings(bot), ...appFindings(facts), ...clockFinding(bot.date, facts.now)];
}

function botFindings(bot: Exclude<SlackAnswer, { silence: string }>): readonly Finding[] {
  const word = wordOf(bot) ?? "";
  if (word !== "ok") {
    const mend = tokenMends[word] ?? "Copy it again from OAuth & Permissions.";
    return [ill(`SLACK_BOT_TOKEN: Slack refuses it (${word})`, mend)];
  }
  if (textAt(bot.data, "bot_id") === "") {
    const mend = "OAuth & Permissions has the bot token, which begins with xoxb-.";
    return [ill("SLACK_BOT_TOKEN: it is a person's token, not the bot's", mend)];
  }
  const [user, team] = [textAt(bot.data, "user"), textAt(bot.data, "team")];
  const found = well(`bot token: @${user} in ${team} (${textAt(bot.data, "team_id")})`);
  const missing = botScopes.filter((scope) => !bot.scopes?.includes(scope));
  if (bot.scopes === undefined) {
    const what = "scopes: Slack doesn't say which the token has";
    return [found, note(what, "Compare with manifest.yml.")];
  }
  if (missing.length === 0) return [found, well("scopes: all that manifest.yml asks for")];
  const mend = "Paste manifest.yml into the app's settings (App Manifest), and install it again.";
  return [found, ill(`scopes: ${missing.join(", ")} missing`, mend)];
}

function appFindings(facts: SlackFacts): readonly Finding[] {
  const { app, info, appIdOfToken, mode } = facts;
  if (app === undefined && mode !== "http") return [];
  if (app === undefined) {
    const what = "HTTP: the first delivery shows whether SLACK_SIGNING_SECRET is right";
    return [note(what, "After the start, gatehouse_refused_deliveries_total must not grow.")];
  }
  const word = wordOf(app);
  if (word === undefined)
    return [ill("SLACK_APP_TOKEN: Slack didn't answer", "Try again in a minute.")];
  if (word !== "ok") {
    const mend = appTokenMends[word] ?? "Is Socket Mode switched on in the app's settings?";
    return [ill(`SLACK_APP_TOKEN: Slack refuses it (${word})`, mend)];
  }
  const appId = info !== undefined && "data" in info ? textAt(info.data, "bot", "app_id") : "";
  if (appIdOfToken !== undefined && appId !== "" && appId !== appIdOfToken) {
    const mend = "Take both tokens from one app.";
    return [ill(`SLACK_APP_TOKEN: it is of app ${appIdOfToken}, the bot token of ${appId}`, mend)];
  }
  return [well("app token: Socket Mode opens")];
}
