/** 200 texts that try to mention, link, style, hide, reorder or overflow: what names and messages from outside may hold. */
export const hostileTexts: readonly string[] = makeTexts();

function makeTexts(): string[] {
  const cores = [
    "<!channel>",
    "<!here>",
    "<!everyone>",
    "<!channel|channel>",
    "<!subteam^S02LEADS>",
    "<!subteam^S02LEADS|@leads>",
    "<!date^0^{date}|then>",
    "<@U0VICTIM>",
    "<@U0VICTIM|bob>",
    "<@W0VICTIM>",
    "<#C01OPS>",
    "<#C01OPS|ops>",
    "<https://evil.example>",
    "<https://evil.example|console>",
    "<http://evil.example|Approve>",
    "<mailto:a@evil.example|mail>",
    "<slack://user?team=T1&id=U1|open>",
    "@channel @here @everyone",
    "https://evil.example/?a=<!channel>",
    ":tada: :white_check_mark:",
  ];
  const wraps: ((core: string) => string)[] = [
    (core) => core,
    (core) => `web-1 ${core} web-2`,
    (core) => `\`${core}\``,
    (core) => `\`\`\`${core}\`\`\``,
    (core) => `*${core}* _${core}_ ~${core}~`,
    (core) => `${core}\n> ${core}\n• ${core}\r\u2028${core}`,
    (core) => `\u202e${core}\u202c\u200b\u2066${core}\u2069\ufeff`,
    (core) => core.replaceAll("<", "<\u200b").replaceAll("!", "!\u2060"),
    (core) => core.replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
    (core) => `${"x".repeat(2990)}${core}${core.repeat(200)}`,
  ];
  return cores.flatMap((core) => wraps.map((wrap) => wrap(core)));
}

/** Every text of a message or view that Slack reads as markup. */
export function markupIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(markupIn);
  if (typeof value !== "object" || value === null) return [];
  const fields = new Map<string, unknown>(Object.entries(value));
  const own = fields.get("type") === "mrkdwn" ? [String(fields.get("text"))] : [];
  // The text of a message, as opposed to the text object of a block
  const said =
    fields.has("blocks") && typeof fields.get("text") === "string"
      ? [String(fields.get("text"))]
      : [];
  return [...said, ...own, ...[...fields.values()].flatMap(markupIn)];
}

/**
 * Control sequences that stand in a message, but for those that are allowed: mentions of these ids, and times.
 * Anything in angle brackets is one, whether Slack knows it or not.
 */
export function controlsIn(value: unknown, allowed: readonly string[] = []): string[] {
  return markupIn(value)
    .flatMap((text) => text.match(/<[^>]*>?/g) ?? [])
    .filter(
      (found) =>
        !/^<!date\^\d+\^\{[a-z_]+\}( at \{time\})?\|(?:\w{3} \d+, )?[0-9:]+ [AP]M UTC>$/.test(
          found,
        ) && !allowed.includes(found),
    );
}
