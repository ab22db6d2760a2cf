import { elementsIn, labelOf } from "./blocks/walk.ts";
import { type Fields, fieldsOf, isFields, listOf, textOf } from "./fields.ts";
import type { Seen, SeenBlock, SeenMessage, SeenView } from "./seen.ts";
import { everyMessage } from "./state/messages.ts";
import type { Workspace } from "./state/workspace.ts";

/** What a person sees, as text: channels with their last 20 messages, modals, toasts. For failures and the tour. */
export function describeSeen(seen: Seen): string {
  const lines: string[] = [];
  for (const { name, kind, messages } of seen.channels) {
    if (messages.length === 0) continue;
    lines.push(`${kind === "direct" ? "@" : "#"}${name}`);
    if (messages.length > 20) lines.push(`  … ${messages.length - 20} earlier`);
    for (const message of messages.slice(-20))
      lines.push(...describeMessage(message).map((line) => `  ${line}`));
  }
  for (const modal of seen.modals) lines.push(...describeView(modal));
  if (seen.home) lines.push("Home", ...wordsIn(seen.home.blocks).map((line) => `  ${line}`));
  for (const toast of seen.toasts) lines.push(`! ${toast.text}`);
  return lines.length > 0 ? lines.join("\n") : "(nothing)";
}

/** One message as lines of text: author, words, buttons in brackets. */
export function describeMessage(message: SeenMessage): string[] {
  const marks = [
    message.ephemeral && "only you",
    message.edited && "edited",
    message.threadTs && "in thread",
  ].filter(Boolean);
  const [first = "", ...rest] =
    message.blocks.length > 0 ? wordsIn(message.blocks) : message.text.split("\n");
  const indent = message.threadTs === undefined ? "" : "  ↳ ";
  const head = `${indent}${message.author.name}${marks.length > 0 ? ` (${marks.join(", ")})` : ""}: ${first}`;
  const files = message.files.map((file) => `[file ${file.name}]`);
  return [head, ...[...rest, ...files].map((line) => `${indent}    ${line}`)];
}

function describeView(view: SeenView): string[] {
  const buttons = [view.submit, view.close].filter(Boolean).map((label) => `[${label}]`);
  const errors = Object.entries(view.errors).map(([blockId, text]) => `  ! ${blockId}: ${text}`);
  return [
    `Modal "${view.title}" ${buttons.join(" ")}`,
    ...wordsIn(view.blocks).map((line) => `  ${line}`),
    ...errors,
  ];
}

/** The words of blocks, a line each; interactive elements as [label]. */
export function wordsIn(blocks: readonly SeenBlock[]): string[] {
  return blocks.flatMap((block) => {
    const buttons = elementsIn([block]).map(
      ({ element, block: around, actionId }) => `[${labelOf(element, around) || actionId}]`,
    );
    return [...textsIn(block), ...(buttons.length > 0 ? [buttons.join(" ")] : [])];
  });
}

function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) {
    const isRow =
      value.length > 0 &&
      value.every((cell) => /^(?:raw_|rich_text$)/.test(String(fieldsOf(cell)["type"])));
    return isRow ? [value.flatMap(textsIn).join(" | ")] : value.flatMap(textsIn);
  }
  if (!isFields(value)) return [];
  if (elementsIn([value]).some(({ element }) => element === value)) return [];
  if (value["type"] === "image") return [`[image: ${String(value["alt_text"])}]`];
  if (value["type"] === "date") return [textOf(value["fallback"])];
  if (value["type"] === "data_visualization") return [`[chart: ${chartWords(value)}]`];
  if (typeof value["text"] === "string") return value["text"].split("\n");
  return Object.entries(value).flatMap(([key, inner]) =>
    key !== "confirm" && typeof inner === "object" ? textsIn(inner) : [],
  );
}

/** The title, with the names of its lines, or its bars. */
function chartWords({ title, chart }: Fields): string {
  const { type, series } = fieldsOf(chart);
  const named = listOf(series);
  const bars = listOf(named[0]?.["data"]).map(
    ({ label, value }) => `${textOf(label)} ${String(value)}`,
  );
  const what = type === "bar" ? bars : named.map(({ name }) => textOf(name));
  return `${textOf(title)}: ${what.join(", ")}`;
}

/** The last messages of the workspace, what Slack told people, and the app's calls: for failures. */
export function describeWorkspace(
  workspace: Workspace,
  callCounts: Record<string, number>,
): string {
  const name = (channelId: string) => workspace.channels.get(channelId)?.name || channelId;
  const posted = everyMessage(workspace)
    .slice(-20)
    .map(({ channelId, text, userId }) => `  #${name(channelId)} ${userId}: ${text.slice(0, 200)}`);
  const whispered = workspace.ephemerals
    .slice(-10)
    .map(
      ({ channelId, toUserId, text }) =>
        `  #${name(channelId)} only to ${toUserId}: ${text.slice(0, 200)}`,
    );
  const told = [...workspace.toasts].flatMap(([userId, toasts]) =>
    toasts.slice(-5).map(({ text }) => `  ! ${userId}: ${text}`),
  );
  const calls = Object.entries(callCounts).map(([method, count]) => `${method} ${count}x`);
  return [
    `there is`,
    ...posted,
    ...whispered,
    ...told,
    `  calls: ${calls.join(", ") || "none"}`,
  ].join("\n");
}
