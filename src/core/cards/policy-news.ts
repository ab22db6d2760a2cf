import { notSet, type PolicyChange, whatChanged } from "../../config/changing-policy.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph } from "../../messages/parts.ts";
import { card } from "../../messages/card.ts";
import { channelLink, lines, Markdown, md, name } from "../../messages/markdown.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { openIt } from "./asking.ts";

/** A request that was made under the former policy, with a link to its thread. */
export interface CanceledByPolicy {
  request: StoredRequest;
  /** The permalink of its message. Undefined when it has none. */
  link: string | undefined;
}

export interface PolicyNewsFacts {
  /** The name of the former policy: `12 (1f2e3d4c5b6a)`. Undefined when there was none. */
  before?: string | undefined;
  after: string;
  /** Whether everybody's rights stay as they were. */
  isSameRules: boolean;
  /** Undefined when the process doesn't know the former policy. */
  changes: readonly PolicyChange[] | undefined;
  canceled: readonly CanceledByPolicy[];
  /** The number of all canceled requests. `canceled` has only the first ones. */
  canceledCount: number;
  /** Returns the name of a person or a user group. Undefined when it isn't known. */
  nameOf(id: string): string | undefined;
}

const maxChanges = 25;

/** Tells the audit channel that another policy is in force. */
export function policyNews(facts: PolicyNewsFacts): Message {
  const { before, after, isSameRules, changes, canceled, canceledCount } = facts;
  if (before === undefined) return firstPolicyNews(after);
  const title = isSameRules
    ? md`*gatehouse.yml changed.* Who can do what stays as it was (version ${name(after)}).`
    : md`*The policy changed*: version ${name(after)} replaces ${name(before)}.`;
  const isUnknown = !isSameRules && changes === undefined;
  const rows = (changes ?? []).slice(0, maxChanges).map((change) => changeLine(change, facts));
  const more = (changes?.length ?? 0) - rows.length;
  return card({
    sign: "📜",
    title,
    lines: [
      isUnknown &&
        md`Gatehouse can't show what changed: this process started with it, and has no copy of the former file.`,
      ...rows,
      more > 0 && md`• and ${more} more`,
    ],
    body: [
      canceledCount === 0
        ? undefined
        : paragraph(
            lines(
              md`*Canceled*, because ${canceledCount === 1 ? "it was" : "they were"} requested under the former policy:`,
              ...canceled.map(canceledLine),
              canceledCount > canceled.length && md`• and ${canceledCount - canceled.length} more`,
            ),
          ),
    ],
  });
}

/**
 * Tells the audit channel which policy is in force. Nothing is left in Redis that says whether it
 * is the same one as before.
 */
function firstPolicyNews(after: string): Message {
  return card({
    sign: "📜",
    title: md`*The policy has version ${name(after)}.* Redis had none: Gatehouse started for the first time, or Redis was emptied.`,
  });
}

/** Tells the audit channel that the file can't be used, and why. */
export function policyKeptNews(version: string, problems: readonly string[]): Message {
  const shown = problems.slice(0, 10).map((problem) => md`• ${problem}`);
  const more = problems.length - shown.length;
  return card({
    sign: "⚠️",
    title: md`*gatehouse.yml changed, and can't be used.* The policy before it stays (version ${name(version)}).`,
    lines: [...shown, more > 0 && md`• and ${more} more`],
    body: [paragraph(md`Fix the file, then send ${name("SIGHUP")}.`)],
  });
}

function changeLine(change: PolicyChange, { nameOf }: PolicyNewsFacts): Markdown {
  const isChannel = /(^|\.)channels?$/.test(change.place);
  const valueWords = (words: readonly string[]) =>
    words
      .map((word) => {
        if (isChannel && /^[CG][A-Z0-9]{2,}$/.test(word)) return channelLink(word);
        const called = nameOf(word);
        if (called !== undefined) return md`${called} (${name(word)})`;
        return word === notSet ? md`${word}` : name(word);
      })
      .join(", ");
  return md`• ${name(change.place)}: ${new Markdown(whatChanged(change, valueWords))}`;
}

function canceledLine({ request: { record }, link }: CanceledByPolicy): Markdown {
  const { id, command, target, requester } = record;
  const deed = `${command} ${target.projectName === undefined || target.kind !== "vm" ? "" : `${target.projectName}/`}${target.name}`;
  return md`• ${deed.trim()}, requested by ${requester.name} (${name(id)})${openIt(link)}`;
}
