export const limits = {
  blocks: 50,
  section: 3000,
  header: 150,
  context: 10,
  actions: 25,
  buttonText: 75,
  buttonValue: 2000,
  menu: 5,
  menuValue: 75,
  option: 75,
  suggestedValue: 75,
  text: 4000,
  weight: 12_000,
} as const;

/** The weight that each block adds to that of its characters. */
export const blockWeight = 125;
/**
 * The weight that lists leave free for later additions to their message, such as a note or a button
 * that shares it.
 */
export const addedWeight = 800;

/**
 * The weight of blocks by the limit that Slack applies. Slack refuses a message
 * (`msg_blocks_too_long`) above about 12,000 characters in all blocks together, plus about 125 for
 * each block. This is documented nowhere; people measured it
 * (https://github.com/slackapi/bolt-js/issues/2509 and 2867). It isn't known which characters
 * count, so all do here, including values and IDs.
 */
export function weightOf(blocks: readonly object[]): number {
  const characters = (value: unknown, key = ""): number => {
    if (typeof value === "string") return key === "type" ? 0 : value.length;
    if (typeof value !== "object" || value === null) return 0;
    return Object.entries(value).reduce(
      (sum, [field, member]) => sum + characters(member, field),
      0,
    );
  };
  return blocks.length * blockWeight + characters(blocks);
}

/** What mrkdwn must not be cut within: an entity, a mention or link, a code span, a character. */
const wholes = /&(?:amp|lt|gt);|<[^<>\n]*>|```[^]*?```|`[^`\n]*`|[^]/gu;

/**
 * Cuts mrkdwn visibly. What is cut stays readable and inert: `&l…`, half a mention, and an open code
 * span would change what follows.
 */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  let kept = "";
  for (const [whole] of text.matchAll(wholes)) {
    const room = most - kept.length;
    if (whole.length < room) {
      kept += whole;
      continue;
    }
    const [fence = ""] = /^`+/.exec(whole) ?? [];
    const inner = whole.slice(fence.length, -fence.length);
    const left = room - 2 * fence.length;
    const isSpan = fence !== "" && inner !== "" && left > 1;
    return `${kept}${isSpan ? `${fence}${cut(`${inner}…`, left)}${fence}` : "…"}`;
  }
  return kept;
}
