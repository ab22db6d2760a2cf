import { notSet, type PolicyChange, whatChanged } from "../../config/changing-policy.ts";
import {
  message,
  type Message,
  news,
  section,
  channelLink,
  lines,
  Markdown,
  md,
  name,
} from "../../messages/message.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { openIt } from "./asking.ts";

/** A request that was made under the policy before, and what its thread can be found by. */
export interface CanceledByPolicy {
  request: StoredRequest;
  /** Of its message; undefined where it has none. */
  link: string | undefined;
}

export interface PolicyNewsFacts {
  /** How the two are called: `12 (1f2e3d4c5b6a)`. Undefined where there was none. */
  before?: string | undefined;
  after: string;
  /** Who may do what stays as it was. */
  isSameRules: boolean;
  /** Undefined where the process didn't know the policy before. */
  changes: readonly PolicyChange[] | undefined;
  canceled: readonly CanceledByPolicy[];
  /** All of them, of which `canceled` are the first. */
  canceledCount: number;
  /** Of a person or a user group; undefined where it isn't known. */
  nameOf(id: string): string | undefined;
}

const maxChanges = 25;

/** For the audit channel: another policy counts from now on. */
export function policyNews(facts: PolicyNewsFacts): Message {
  const { before, after, isSameRules, changes, canceled, canceledCount } = facts;
  if (before === undefined) return firstPolicyNews(after);
  const said = isSameRules
    ? md`📜 *gatehouse.yml changed.* Who can do what stays as it was (version ${name(after)}).`
    : md`📜 *The policy changed*: version ${name(after)} replaces ${name(before)}.`;
  const isUnknown = !isSameRules && changes === undefined;
  const rows = (changes ?? []).slice(0, maxChanges).map((change) => changeLine(change, facts));
  const more = (changes?.length ?? 0) - rows.length;
  return message(
    news(said),
    section(
      lines(
        said,
        isUnknown &&
          md`Gatehouse can't show what changed: this process started with it, and has no copy of the former file.`,
        ...rows,
        more > 0 && md`• and ${more} more`,
      ),
    ),
    canceledCount === 0
      ? undefined
      : section(
          lines(
            md`*Canceled*, because ${canceledCount === 1 ? "it was" : "they were"} requested under the former policy:`,
            ...canceled.map(canceledLine),
            canceledCount > canceled.length && md`• and ${canceledCount - canceled.length} more`,
          ),
        ),
  );
}

/** For the audit channel: nothing says whether this policy is the one that was in force last. */
function firstPolicyNews(after: string): Message {
  const said = md`📜 *The policy has version ${name(after)}.* Redis had none: Gatehouse started for the first time, or Redis was emptied.`;
  return message(news(said), section(said));
}

/** For the audit channel: the file can't be used, and why. */
export function policyKeptNews(version: string, problems: readonly string[]): Message {
  const said = md`⚠️ *gatehouse.yml changed, and can't be used.* The policy before it stays (version ${name(version)}).`;
  const shown = problems.slice(0, 10).map((problem) => md`• ${problem}`);
  const more = problems.length - shown.length;
  return message(
    news(said),
    section(lines(said, ...shown, more > 0 && md`• and ${more} more`)),
    section(md`Fix the file, then send ${name("SIGHUP")}.`),
  );
}

function changeLine(change: PolicyChange, { nameOf }: PolicyNewsFacts): Markdown {
  const isChannel = /(^|\.)channels?$/.test(change.place);
  const said = (words: readonly string[]) =>
    words
      .map((word) => {
        if (isChannel && /^[CG][A-Z0-9]{2,}$/.test(word)) return channelLink(word);
        const called = nameOf(word);
        if (called !== undefined) return md`${called} (${name(word)})`;
        return word === notSet ? md`${word}` : name(word);
      })
      .join(", ");
  return md`• ${name(change.place)}: ${new Markdown(whatChanged(change, said))}`;
}

function canceledLine({ request: { record }, link }: CanceledByPolicy): Markdown {
  const { id, command, target, requester } = record;
  const what = `${command} ${target.projectName === undefined || target.kind !== "vm" ? "" : `${target.projectName}/`}${target.name}`;
  return md`• ${what.trim()}, requested by ${requester.name} (${name(id)})${openIt(link)}`;
}
