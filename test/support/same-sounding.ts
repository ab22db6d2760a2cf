import { Redis } from "ioredis";
import { fieldsOf, listOf } from "../../sandbox/slack/fields.ts";
import type { CallRecord } from "../../sandbox/slack/web-api/call-log.ts";

/**
 * What screen readers say of buttons that do something else and sound the same, in what a call
 * showed: “Show” of two VMs.
 */
export function sameSounding({ args, ok }: Pick<CallRecord, "args" | "ok">): string[] {
  if (!ok) return [];
  const json = (value: unknown): unknown =>
    typeof value === "string" ? (JSON.parse(value) as unknown) : value;
  const shown = [args["blocks"], fieldsOf(json(args["view"] ?? {}))["blocks"]];
  const buttons = shown.flatMap((blocks) => listOf(json(blocks ?? [])).flatMap(buttonsIn));
  const heard = Map.groupBy(buttons, ({ label }) => label);
  return [...heard].flatMap(([label, same]) =>
    new Set(same.map(({ does }) => does)).size > 1 ? [label] : [],
  );
}

function buttonsIn(value: unknown): { label: string; does: string }[] {
  if (Array.isArray(value)) return value.flatMap(buttonsIn);
  if (typeof value !== "object" || value === null) return [];
  const fields = fieldsOf(value);
  const inside = Object.values(fields).flatMap(buttonsIn);
  if (fields["type"] !== "button") return inside;
  const label = fields["accessibility_label"] ?? fieldsOf(fields["text"])["text"];
  return [
    { label: String(label), does: `${String(fields["action_id"])} ${String(fields["value"])}` },
  ];
}

const noted = "same-sounding-buttons";

/** Notes labels that were heard of different buttons in one message, in the Redis of the whole run. */
export async function noteSounds(redisUrl: string, labels: readonly string[]): Promise<void> {
  if (labels.length === 0) return;
  const redis = new Redis(redisUrl);
  await redis.sadd(noted, ...labels);
  redis.disconnect();
}

/** Throws once for all that was noted: a reworded button fails the run, and not each story that shows it. */
export async function checkSounds(redisUrl: string): Promise<void> {
  const redis = new Redis(redisUrl);
  const labels = await redis.smembers(noted);
  redis.disconnect();
  if (labels.length > 0)
    throw new Error(`screen readers can't tell buttons apart: ${labels.toSorted().join(", ")}`);
}
