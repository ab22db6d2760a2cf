import type { Config } from "../../config/config.ts";
import { proxyFor } from "../../config/proxy.ts";
import { rootCause, statusOfProxy } from "../../errors.ts";
import { silentLog } from "../../log/log.ts";
import { textAt, textsAt } from "../../slack/json.ts";
import { type WebAnswer, whyOf } from "../../slack/web-answer.ts";
import { createWeb } from "../../slack/web.ts";
import { isOffSlack, ownClockWords } from "../clock.ts";
import { judgeCertificate, lookAtCertificate } from "./certificate.ts";
import { type Finding, ill, note, proxyFinding, well } from "../../messages/finding.ts";

/**
 * The scopes in manifest.yml. History and metadata are needed to look for a message whose post
 * wasn't answered, before it is posted again.
 */
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
  "mpim:read",
  "usergroups:read",
  "users:read",
] as const;

/** `ok`, or Slack's error. Undefined when Slack didn't answer. */
export function wordOf(answer: WebAnswer): string | undefined {
  if (answer.ok) return "ok";
  return "reason" in answer ? undefined : whyOf(answer);
}

type FoundInSlack = Awaited<ReturnType<typeof lookAtSlack>>;
export type SlackFacts = Omit<FoundInSlack, "proxyStatus"> &
  Partial<Pick<FoundInSlack, "proxyStatus">>;

export async function lookAtSlack(config: Config, now: number) {
  const { slack, proxies, authorities } = config;
  const { apiUrl, botToken, receive } = slack;
  const appToken = receive?.mode === "socket" ? receive.secret : undefined;
  let date: string | null = null;
  let proxyStatus: number | undefined;
  const web = (token: string) =>
    createWeb({
      token,
      apiUrl,
      log: silentLog(),
      // Slack's client hides the headers, and the reason why there is no answer.
      async fetch(...asked) {
        const answer = await fetch(...asked).catch((error: unknown) => {
          const cause = rootCause(error);
          proxyStatus ??= statusOfProxy(cause);
          throw cause;
        });
        date = answer.headers.get("date");
        if (answer.status === 407) proxyStatus = 407;
        return answer;
      },
    });
  const [bot, app] = await Promise.all([
    web(botToken).call("auth.test"),
    appToken === undefined ? undefined : web(appToken).call("apps.connections.open"),
  ]);
  const api = new URL(apiUrl);
  const isSilent = "reason" in bot && api.protocol === "https:";
  const botId = bot.ok ? textAt(bot.data, "bot_id") : "";
  const info = botId === "" ? undefined : await web(botToken).call("bots.info", { bot: botId });
  return {
    /** The answer to `auth.test` with the bot token. */
    bot,
    /** The app ID (`A…`) of that bot. Empty when Slack didn't say. */
    appId: info?.ok ? textAt(info.data, "bot", "app_id") : "",
    /** The answer to `apps.connections.open`. Undefined without an app token. */
    app,
    /** The app ID (`A…`) in the app token. */
    appIdOfToken: /^xapp-\d+-(A[A-Z0-9]+)-/.exec(appToken ?? "")?.[1],
    mode: receive?.mode,
    /** The status with which the proxy answered in place of Slack. */
    proxyStatus,
    /**
     * The certificate at Slack's address, if Slack didn't answer. Undefined when no handshake
     * completed.
     */
    certificate: isSilent
      ? await lookAtCertificate(
          {
            host: api.hostname,
            port: Number(api.port || 443),
            proxy: proxyFor(apiUrl, proxies),
          },
          now,
        )
      : undefined,
    /** Whether CA_FILE is set. */
    hasAuthorities: authorities !== undefined,
    /** The date of Slack's last answer. */
    date: Date.parse(date ?? ""),
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
  const { bot, proxyStatus } = facts;
  if (proxyStatus !== undefined) return [proxyFinding(proxyStatus, "Slack")];
  if ("reason" in bot) {
    const { certificate, hasAuthorities, now } = facts;
    if (certificate?.flaw !== undefined) {
      const variables = { address: "SLACK_API_URL", hasAuthorities };
      const { text: problem, next = "" } = judgeCertificate(certificate, variables, now, "");
      const inspected = certificate.isOfProxy
        ? next
        : `${next} A proxy that inspects shows a certificate of its own for ${certificate.host}.`;
      return [ill(`Slack can't be reached: ${problem}`, inspected)];
    }
    const mend =
      "Check SLACK_API_URL, DNS, and whether this machine reaches Slack directly or needs HTTPS_PROXY.";
    return [ill(`Slack can't be reached: ${bot.reason}`, mend)];
  }
  return [...botFindings(bot), ...appFindings(facts), ...clockFinding(facts)];
}

function botFindings(bot: WebAnswer): readonly Finding[] {
  if (!bot.ok) {
    const word = whyOf(bot);
    const mend = tokenMends[word] ?? "Copy it again from OAuth & Permissions.";
    return [ill(`SLACK_BOT_TOKEN: Slack refuses it (${word})`, mend)];
  }
  const { data } = bot;
  if (textAt(data, "bot_id") === "") {
    const mend = "OAuth & Permissions has the bot token, which begins with xoxb-.";
    return [ill("SLACK_BOT_TOKEN: it is a person's token, not the bot's", mend)];
  }
  const [user, team] = [textAt(data, "user"), textAt(data, "team")];
  const tokenFinding = well(`bot token: @${user} in ${team} (${textAt(data, "team_id")})`);
  const scopes = textsAt(data, "response_metadata", "scopes");
  if (scopes.length === 0) {
    const problem = "scopes: Slack doesn't say which the token has";
    return [tokenFinding, note(problem, "Compare with manifest.yml.")];
  }
  const missing = botScopes.filter((scope) => !scopes.includes(scope));
  if (missing.length === 0) return [tokenFinding, well("scopes: all that manifest.yml asks for")];
  const mend = "Paste manifest.yml into the app's settings (App Manifest), and install it again.";
  return [tokenFinding, ill(`scopes: ${missing.join(", ")} missing`, mend)];
}

function appFindings(facts: SlackFacts): readonly Finding[] {
  const { app, appId, appIdOfToken, mode } = facts;
  if (app === undefined && mode !== "http") return [];
  if (app === undefined) {
    const summary = "HTTP: the first delivery shows whether SLACK_SIGNING_SECRET is right";
    return [
      note(
        summary,
        'After the start, gatehouse_refused_deliveries_total must not grow: reason "signature" is the secret, "timestamp" a clock.',
      ),
    ];
  }
  const word = wordOf(app);
  if (word === undefined)
    return [ill("SLACK_APP_TOKEN: Slack didn't answer", "Try again in a minute.")];
  if (word !== "ok") {
    const mend = appTokenMends[word] ?? "Is Socket Mode switched on in the app's settings?";
    return [ill(`SLACK_APP_TOKEN: Slack refuses it (${word})`, mend)];
  }
  if (appIdOfToken !== undefined && appId !== "" && appId !== appIdOfToken) {
    const mend = "Take both tokens from one app.";
    return [ill(`SLACK_APP_TOKEN: it is of app ${appIdOfToken}, the bot token of ${appId}`, mend)];
  }
  return [well("app token: Socket Mode opens")];
}

function clockFinding({ date, now }: SlackFacts): readonly Finding[] {
  if (Number.isNaN(date)) return [];
  const offMs = now - date;
  if (!isOffSlack(offMs)) return [well("clock: within a minute of this machine's")];
  return [ill(ownClockWords(offMs, "Slack's"), "Let NTP set the clock of this machine.")];
}
