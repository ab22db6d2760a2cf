import { Redis } from "ioredis";
import { type Accounts, type Counted, type Journalled, countEffects } from "./count-effects.ts";
import { findAuditGaps } from "./find-audit-gaps.ts";
import { findSilence, type SlackMessage } from "./find-silence.ts";

/**
 * The independent checker: it imports nothing of Gatehouse. It reads the service's truth, the journal as it lies in Redis,
 * the audit trail and the messages in Slack, and says whether the promise was kept.
 */
export interface Verdict {
  operations: number;
  faults: number;
  twice: number;
  lost: number;
  falseSuccess: number;
  falseFailure: number;
  unknown: number;
  silent: number;
  auditGaps: number;
  /** What is behind each number but zero. */
  findings: string[];
  /** How the requests ended, counted by command and state. */
  ends: Record<string, number>;
}

/** What a person asked for, as the test knows it. */
export interface Asked {
  who: string;
  command: string;
  /** Id of the VM or project; for what doesn't exist yet, its name. */
  target: string;
  acked: boolean;
  deliveryId?: string | undefined;
}

export interface Evidence {
  redisUrl: string;
  namespace: string;
  /** Control addresses of the sandboxes. */
  computeControl: string;
  slackControl: string;
  asked: readonly Asked[];
  faults: number;
}

export async function check(evidence: Evidence): Promise<Verdict> {
  const redis = new Redis(evidence.redisUrl, { maxRetriesPerRequest: 5 });
  try {
    const journal = await readJournal(redis, evidence.namespace);
    const truth = (await (
      await fetch(`${evidence.computeControl}/_sandbox/truth?touched=1`)
    ).json()) as Counted["truth"];
    const messages = await askSlack<SlackMessage[]>(evidence.slackControl, "messages");
    const accounts = countEffects({ journal, truth });
    const lost = await findLost(redis, evidence, journal);
    const silence = findSilence(journal, messages);
    const gaps = await findAuditGaps(redis, evidence.namespace, journal);
    return verdictOf(evidence, journal, accounts, lost, silence, gaps);
  } finally {
    redis.disconnect();
  }
}

function verdictOf(
  evidence: Evidence,
  journal: readonly Journalled[],
  accounts: Accounts,
  lost: string[],
  silence: string[],
  gaps: string[],
): Verdict {
  const ends: Record<string, number> = {};
  for (const { command, state } of journal) {
    const end = `${command} ${state}`;
    ends[end] = (ends[end] ?? 0) + 1;
  }
  return {
    operations: evidence.asked.filter(({ acked }) => acked).length,
    faults: evidence.faults,
    twice: accounts.twice,
    lost: lost.length,
    falseSuccess: accounts.falseSuccess,
    falseFailure: accounts.falseFailure,
    unknown: journal.filter(({ state }) => state === "unknown").length,
    silent: silence.length,
    auditGaps: gaps.length,
    findings: [...accounts.findings, ...lost, ...silence, ...gaps],
    ends,
  };
}

/**
 * Which requests may end as "outcome unknown", left to a person: none; only those of which the service leaves no trace
 * when its answer is lost; or any, where the service itself hides what happened.
 */
export type Unknown = "none" | "no trace" | "any";

/** A second look can't prove these: the target looks the same before and after (the service returns no specs of a project), or is gone either way. */
export function leavesNoTrace(command: string): boolean {
  return /^(vm restart|vm snapshot|vm restore|project create|project update|project delete)$/.test(
    command,
  );
}

/** Outcomes that are unknown and may not be, counted: "3 × vm stop unknown". */
export function tooUnknown({ ends }: Verdict, accepted: Unknown): string[] {
  return Object.entries(ends)
    .filter(([end]) => end.endsWith(" unknown"))
    .filter(([end]) => accepted === "none" || !leavesNoTrace(end.replace(/ unknown$/, "")))
    .flatMap(([end, count]) => (accepted === "any" ? [] : [`${count} × ${end}`]));
}

/** Whether the promise was kept: nothing twice, lost, misreported, silent, or unrecorded, and no unknown outcome that the row forbids. */
export function isKept(verdict: Verdict, accepted: Unknown): boolean {
  const { twice, lost, falseSuccess, falseFailure, silent, auditGaps } = verdict;
  const broken = twice + lost + falseSuccess + falseFailure + silent + auditGaps;
  return broken === 0 && tooUnknown(verdict, accepted).length === 0;
}

export function lineOf(verdict: Verdict): string {
  return [
    `${verdict.operations} operations, ${verdict.faults} faults`,
    `twice ${verdict.twice}`,
    `lost ${verdict.lost}`,
    `false success ${verdict.falseSuccess}`,
    `false failure ${verdict.falseFailure}`,
    `unknown ${verdict.unknown}`,
    `silent ${verdict.silent}`,
    `audit gaps ${verdict.auditGaps}`,
  ].join(" | ");
}

export async function askSlack<T>(
  control: string,
  question: string,
  ...args: unknown[]
): Promise<T> {
  const response = await fetch(control, {
    method: "POST",
    body: JSON.stringify({ question, args }),
  });
  const answer = (await response.json()) as { ok: boolean; value: T; error?: string };
  if (!answer.ok) throw new Error(answer.error);
  return answer.value;
}

/** Every request as it lies there, whatever version wrote it. */
export async function readJournal(redis: Redis, namespace: string): Promise<Journalled[]> {
  const prefix = `{${namespace}}:request:`;
  const journal: Journalled[] = [];
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 500, type: "hash" })) {
    for (const key of keys as string[]) {
      const fields = await redis.hgetall(key);
      const beside = await redis.lrange(`${key}:history`, 0, -1);
      const history = stepsIn(fields, beside);
      if (!fields["record"]) continue;
      const record = JSON.parse(fields["record"]) as {
        id: string;
        command: string;
        target: { id: string; name: string };
        requester: { id: string };
        origin: { kind: string };
        channelId: string;
      };
      journal.push({
        id: record.id,
        command: record.command,
        target: record.target.id || record.target.name,
        targetName: record.target.name,
        requester: record.requester.id,
        origin: record.origin.kind,
        state: fields["state"] ?? "",
        isFinal: fields["final"] === "1",
        attempt: Number(fields["attempt"] ?? 0),
        stage: JSON.parse(fields["stage"] ?? "{}") as Journalled["stage"],
        fields,
        movedAt: history.map(({ at }) => at),
        history: history.map(({ state }) => state),
      });
    }
  }
  return journal;
}

/** `<ms since it was made> ["sending",…]` in the request, or beside it, of an older version, `<time> {"state":"sending",…}`. */
function stepsIn(fields: Record<string, string>, beside: string[]) {
  const split = (row: string) => [Number.parseInt(row), row.slice(row.indexOf(" "))] as const;
  const madeAt = Number(fields["createdAt"]);
  const own = (fields["history"] ?? "")
    .split("\n")
    .slice(0, -1)
    .map(split)
    .map(([ms, step]) => ({ at: madeAt + ms, state: (JSON.parse(step) as [string])[0] }));
  // In the order in which they were written: Redis's clock may have been set back since
  if (beside.length === 0) return own;
  const older = beside
    .map(split)
    .map(([at, step]) => ({ at, ...(JSON.parse(step) as { state: string }) }));
  return [...older, ...own].toSorted((a, b) => a.at - b.at);
}

/**
 * Lost: an ask that was acked and has neither a request nor an answer to the person; a request that has neither ended nor
 * waits for a person.
 */
async function findLost(
  redis: Redis,
  { asked, namespace, slackControl }: Evidence,
  journal: readonly Journalled[],
): Promise<string[]> {
  const lost = journal
    .filter(({ isFinal, state }) => !isFinal && state !== "unknown" && state !== "draft")
    .map(
      ({ id, command, state, stage }) =>
        `lost: ${id} ${command} stands in ${state} (${stage.why ?? ""})`,
    );
  const marks = new Map([
    ...(await askSlack<Delivery[]>(slackControl, "deliveries", "command")).map(markOf),
    ...(await askSlack<Delivery[]>(slackControl, "deliveries", "interaction")).map(markOf),
  ]);
  /** What a delivery made; a button that stays in its message has another key. */
  async function requestOf(mark: string): Promise<string | undefined> {
    const keys = ["typed", "mention", "form", "button"].map(
      (kind) => `{${namespace}}:ask:${kind} ${mark}`,
    );
    return (await redis.mget(keys)).find((id) => id !== null) ?? undefined;
  }

  const known = new Set(journal.map(({ id }) => id));
  const taken = new Set<string>();
  const unanswered: Asked[] = [];
  for (const ask of asked.filter(({ acked }) => acked)) {
    const mark = marks.get(ask.deliveryId ?? "");
    const id = mark && (await requestOf(mark));
    if (id && known.has(id)) taken.add(id);
    else unanswered.push(ask);
  }
  // The marks of deliveries expire; what is left must be made up by requests of the same kind, or by words
  const answers = new Map<string, number>();
  for (const ask of unanswered) {
    const same = journal.find(
      (one) =>
        !taken.has(one.id) &&
        one.command === ask.command &&
        one.target === ask.target &&
        one.requester.toLowerCase().endsWith(ask.who),
    );
    if (same) {
      taken.add(same.id);
      continue;
    }
    const left = answers.get(ask.who) ?? (await wordsFor(slackControl, ask.who));
    answers.set(ask.who, left - 1);
    if (left <= 0)
      lost.push(`lost: ${ask.who} asked ${ask.command} ${ask.target} and heard nothing`);
  }
  return lost;
}

interface Delivery {
  id: string;
  payload: {
    trigger_id?: string;
    user?: { id: string };
    view?: { id: string; hash: string };
  };
}

/** Under what the bot notes which request a delivery became. */
function markOf({ id, payload }: Delivery): [deliveryId: string, mark: string] {
  const { view, user, trigger_id } = payload;
  return [id, view ? `submission:${view.id}:${view.hash}:${user?.id}` : `command:${trigger_id}`];
}

/** How many things only this person was told, where they asked or in their direct messages. */
async function wordsFor(slackControl: string, who: string): Promise<number> {
  type Message = { ephemeral: boolean; author: { isBot: boolean } };
  type Seen = { channels: { kind: string; messages: Message[] }[] };
  const seen = await askSlack<Seen>(slackControl, "seen", who);
  return seen.channels
    .flatMap(({ kind, messages }) =>
      messages.filter(({ ephemeral }) => ephemeral || kind === "direct"),
    )
    .filter(({ author }) => author.isBot).length;
}
