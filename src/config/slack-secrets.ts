/** What a text looks like that was given as one of Slack's secrets, without repeating it. */
function kindOf(text: string): string {
  if (/^(xoxe\.)?xoxb-/.test(text)) return "is a bot token (xoxb-)";
  if (text.startsWith("xapp-")) return "is an app-level token (xapp-)";
  if (/^(xoxe\.)?xoxp-/.test(text)) return "is a user token (xoxp-)";
  if (/^xox[a-z]-/.test(text)) return "is another kind of Slack token";
  if (/^[0-9a-f]{32}$/.test(text)) return "looks like the signing secret";
  return "is no Slack token";
}

const whereFrom = {
  "xoxb-": "the bot token from OAuth & Permissions must stand here, which begins with xoxb-",
  "xapp-": "the app-level token from Basic Information must stand here, which begins with xapp-",
} as const;

/** Why this can't be the token that begins like that, or undefined. */
export function tokenProblem(text: string, begin: keyof typeof whereFrom): string | undefined {
  const bare = text.replace(/^xoxe\./, "");
  if (bare.startsWith(begin) && /^\S+$/.test(text)) return undefined;
  const found = bare.startsWith(begin) ? "has white space in it" : kindOf(text);
  return `${found}: ${whereFrom[begin]}`;
}

export function signingSecretProblem(text: string): string | undefined {
  const wanted = "the signing secret from Basic Information must stand here, one word";
  if (!/^[\u0021-\u007e]+$/.test(text)) return `is no single word: ${wanted}`;
  return /^(xoxe\.)?(xox[a-z]|xapp)-/.test(text) ? `${kindOf(text)}: ${wanted}` : undefined;
}
