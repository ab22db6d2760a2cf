import * as z from "zod";

/**
 * The small parts of Block Kit, with the limits of
 * https://docs.slack.dev/reference/block-kit/composition-objects. Unknown properties are refused, as Slack does.
 */

const text = (most: number) =>
  z
    .string()
    .min(1, "must be more than 0 characters")
    .max(most, lessThan(most + 1));

function lessThan(count: number): string {
  return `must be less than ${count} characters`;
}

export const bare = text;

export const upTo = (most: number) => z.string().max(most, lessThan(most + 1));

export const plainText = (most = 3000) =>
  z.strictObject({
    type: z.literal("plain_text"),
    text: text(most),
    emoji: z.boolean().optional(),
  });

export const mrkdwn = (most = 3000) =>
  z.strictObject({ type: z.literal("mrkdwn"), text: text(most), verbatim: z.boolean().optional() });

export const anyText = (most = 3000) =>
  z.discriminatedUnion("type", [plainText(most), mrkdwn(most)]);

export const actionId = upTo(255).optional();
export const blockId = upTo(255).optional();
export const color = z.enum(["primary", "danger"]).optional();

export const items = <T extends z.ZodType>(item: T, most: number, least = 1) =>
  z
    .array(item)
    .min(least, `no less than ${least} items allowed`)
    .max(most, `no more than ${most} items allowed`);

export const confirm = z
  .strictObject({
    title: plainText(100).optional(),
    text: anyText(300),
    confirm: plainText(30).optional(),
    deny: plainText(30).optional(),
    style: color,
  })
  .optional();

export const option = z.strictObject({
  text: anyText(75),
  value: upTo(75),
  description: anyText(75).optional(),
});

export const plainOption = z.strictObject({
  text: plainText(75),
  value: upTo(75),
  description: plainText(75).optional(),
});

export const overflowOption = plainOption.extend({ url: upTo(3000).optional() });

export const optionGroup = z.strictObject({
  label: plainText(75),
  options: items(plainOption, 100),
});

export const dispatchConfig = z
  .strictObject({
    trigger_actions_on: items(z.enum(["on_enter_pressed", "on_character_entered"]), 2).optional(),
  })
  .optional();

const slackFile = z.union([z.strictObject({ id: bare(255) }), z.strictObject({ url: bare(3000) })]);

/** `image_url` or `slack_file`, never both. */
export function oneImage(value: { image_url?: unknown; slack_file?: unknown }): boolean {
  return (value.image_url === undefined) !== (value.slack_file === undefined);
}

export const imageParts = {
  image_url: bare(3000).optional(),
  slack_file: slackFile.optional(),
  alt_text: bare(2000),
};

export const imageElement = z
  .strictObject({ type: z.literal("image"), ...imageParts })
  .refine(oneImage, "must define either `image_url` or `slack_file`");

/** A block of a type, with its own properties. */
export const block = <T extends string, S extends z.core.$ZodLooseShape>(type: T, shape: S) =>
  z.strictObject({ type: z.literal(type), block_id: blockId, ...shape });
