import { looking } from "../../stage/looking.ts";
import type { Expectation } from "../row.ts";
import { createKeys } from "../../../../src/redis/redis.ts";
import { pendingOf } from "../../../support/pending.ts";
import type { Stage } from "../../stage/stage.ts";

export const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `vm-0000-${String(from + at).padStart(3, "0")}`);

/** A rollout as it lies in Redis, read without Gatehouse's own code. */
export interface SeenRollout {
  id: string;
  state: string;
  isFinal: boolean;
  /** When a worker last looked after it (ms). */
  seenAt: number;
  progress: {
    next: number;
    open: { n: number; request: string }[];
    ok: number;
    failed: number;
    why?: string;
  };
}

/** Resolves when Gatehouse knows the names of VMs. */
export async function namesKnown(stage: Stage): Promise<void> {
  await looking(
    async () =>
      (await stage.redis.hget(`{${stage.namespace}}:inventory:head`, "refreshedAt")) ?? undefined,
    15_000,
    async () => "nobody reads the inventory",
  );
}

/**
 * Asks for a rollout over VMs of the first project, says yes to its dialog, and remembers them for the checker. Resolves with
 * its id as soon as it runs.
 */
export async function beginRollout(
  stage: Stage,
  vms: readonly string[],
  options: { most?: number; failures?: number; canary?: boolean } = {},
): Promise<string> {
  await namesKnown(stage);
  const flags = [
    `--max-unavailable ${options.most ?? 1}`,
    `--stop-on-failure ${options.failures ?? 1}`,
    options.canary ? "--canary" : "",
  ];
  const before = new Set(await rolloutIds(stage));
  await stage.slack.act(
    "olivia",
    "types",
    "ops",
    `/vm restart ${vms.join(" ")} ${flags.join(" ")}`.trim(),
  );
  await stage.slack.until("olivia", ({ modals }) =>
    JSON.stringify(modals[0]?.blocks ?? []).includes("Max unavailable"),
  );
  const answer = await stage.slack.act("olivia", "submits", {});
  if (!answer.acked || answer.errors) throw new Error(`the dialog said ${JSON.stringify(answer)}`);
  const id = (await rolloutIds(stage)).find((one) => !before.has(one)) ?? "";
  await rolloutUntil(stage, id, ({ state }) => state !== "planned");
  return id;
}

async function rolloutIds(stage: Stage): Promise<string[]> {
  const keys = await stage.redis.keys(`{${stage.namespace}}:roll:roll-????????`);
  return keys.map((key) => key.split(":").at(-1) ?? "");
}

export async function rolloutNow(stage: Stage, id: string): Promise<SeenRollout> {
  const fields = await stage.redis.hgetall(`{${stage.namespace}}:roll:${id}`);
  return {
    id,
    state: fields["state"] ?? "gone",
    isFinal: fields["final"] === "1",
    seenAt: Number(fields["seenAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as SeenRollout["progress"],
  };
}

export async function rolloutUntil(
  stage: Stage,
  id: string,
  fits: (rollout: SeenRollout) => boolean,
  timeoutMs = 60_000,
): Promise<SeenRollout> {
  return looking(
    async () => {
      const rollout = await rolloutNow(stage, id);
      return fits(rollout) ? rollout : undefined;
    },
    timeoutMs,
    async () => `the roll stands ${JSON.stringify(await rolloutNow(stage, id))}`,
  );
}

/** Resolves when a worker has looked after it twice from now on: what it would have begun, it has. */
export async function lookedAfter(stage: Stage, id: string): Promise<SeenRollout> {
  const first = await rolloutNow(stage, id);
  const second = await rolloutUntil(stage, id, ({ seenAt }) => seenAt > first.seenAt);
  return rolloutUntil(stage, id, ({ seenAt }) => seenAt > second.seenAt);
}

/** Resolves when Slack has been told everything about rollouts. */
export async function rolloutsTold(stage: Stage): Promise<void> {
  await looking(
    async () =>
      (await pendingOf(stage.redis, createKeys(stage.namespace), "rollout")) === 0
        ? true
        : undefined,
    60_000,
    async () => "Slack is not told of the rolls",
  );
}

export const pressOn = (stage: Stage, label: string, ts: string) =>
  stage.slack.act("olivia", "presses", label, { in: ts, channel: "ops" });

/** What stands in Slack of a rollout: `card`, `end`. */
export async function saidOf(
  stage: Stage,
  id: string,
  what: "card" | "end",
): Promise<{ ts: string; words: string[] }[]> {
  return (await stage.slack.messages())
    .filter(({ metadata }) => {
      const { event_payload: payload } = (metadata ?? {}) as { event_payload?: object };
      const { request, said } = (payload ?? {}) as { request?: string; said?: string };
      return request === id && said === what;
    })
    .map(({ ts, blocks }) => ({ ts, words: textsIn(blocks) }));
}

/** The one message that its buttons are on, once it shows what it should. */
export async function cardWith(stage: Stage, id: string, wanted: RegExp): Promise<string> {
  const card = await looking(
    async () =>
      (await saidOf(stage, id, "card")).find(({ words }) => wanted.test(words.join("\n"))),
    45_000,
    async () =>
      `the card of ${id} does not show ${String(wanted)}: ${JSON.stringify(await saidOf(stage, id, "card"))}`,
  );
  return card.ts;
}

/** Which VMs were asked to restart so far, in the order of the calls. */
export async function restartsSent(stage: Stage): Promise<string[]> {
  return (await stage.service.writes()).map(({ path }) => path.split("/")[3] ?? "");
}

/**
 * How a rollout must have ended: one message with its buttons gone and its numbers right, one at the end whose table says of
 * each VM what the service knows of it, and no VM touched twice.
 */
export async function endsRight(
  stage: Stage,
  id: string,
  vms: readonly string[],
): Promise<Expectation[]> {
  await rolloutsTold(stage);
  const rollout = await rolloutNow(stage, id);
  const [cards, ends] = [await saidOf(stage, id, "card"), await saidOf(stage, id, "end")];
  const card = cards.flatMap(({ words }) => words).join("\n");
  const table = ends.flatMap(({ words }) => words);
  const { ok, failed } = rollout.progress;
  const truth = new Map((await stage.service.vms()).map((vm) => [vm.name, vm.restarts]));
  const wrong = vms.filter((vm) => {
    const result = table[table.indexOf(vm) + 1] ?? "not named";
    return !fitsTruth(result, truth.get(vm) ?? -1);
  });
  const twice = vms.filter((vm) => (truth.get(vm) ?? 0) > 1);
  return [
    [`it has ended (${rollout.state})`, rollout.isFinal],
    [`no VM twice: ${twice.join(" ")}`, twice.length === 0],
    [
      `one parent message, one at the end (${cards.length}, ${ends.length})`,
      cards.length === 1 && ends.length === 1,
    ],
    [
      `the parent message ends right: ${card}`,
      saysHowItEnded(card, { ok, failed, total: vms.length }) &&
        !/^(Pause|Resume|Stop)$/m.test(card),
    ],
    [
      `the table says of each VM what the service knows: ${wrong.join(" ")} ${table.join(" ")}`,
      wrong.length === 0,
    ],
  ];
}

/** The card counts what was done, like `Restarted 12 VMs` or `Restarted 10 of 12 VMs`, or says that it was stopped. */
function saysHowItEnded(card: string, is: { ok: number; failed: number; total: number }): boolean {
  if (/^Stopped after/m.test(card)) return card.includes(`${is.ok + is.failed} of ${is.total}`);
  const done = is.ok === is.total ? `${is.total}` : `${is.ok} of ${is.total}`;
  return is.ok + is.failed === is.total && new RegExp(`Restarted ${done}\\sVMs `).test(card);
}

function fitsTruth(result: string, restarts: number): boolean {
  if (result === "✅ Restarted") return restarts === 1;
  if (result === "❓ Unknown") return restarts === 0 || restarts === 1;
  return /^(❌ Failed|– Not started|❌ Canceled)$/.test(result) && restarts === 0;
}

/** Requests of this rollout that entered the journal after it was stopped, and were sent all the same. */
export async function begunAfterStop(stage: Stage, id: string): Promise<string[]> {
  const trail = await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+");
  type Move = { what?: string; roll?: string; request?: string; move?: string };
  const moves = trail.map(
    ([, fields]) => JSON.parse(fields[fields.indexOf("record") + 1] ?? "{}") as Move,
  );
  const stopped = moves.findIndex(
    ({ what, roll, move }) => what === "roll" && roll === id && /ending|stopped/.test(move ?? ""),
  );
  if (stopped < 0) throw new Error(`the trail has no stop of ${id}`);
  const before = new Set(moves.slice(0, stopped).map(({ request }) => request));
  const sent = moves.slice(stopped).filter(({ move }) => move === "sending");
  const ours = (await stage.journal()).filter(
    ({ fields }) => rolloutOf(fields["record"] ?? "{}") === id,
  );
  if (ours.length === 0) throw new Error(`the journal has no request of ${id}`);
  return ours
    .map((request) => request.id)
    .filter((one) => !before.has(one) && sent.some(({ request }) => request === one));
}

/** The rollout that made a request, as its record in the journal says. */
function rolloutOf(record: string): string | undefined {
  const { origin } = JSON.parse(record) as { origin?: { rollout?: string } };
  return origin?.rollout;
}

/** Every text in blocks, in their order. */
export function textsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) =>
    key === "text" && typeof part === "string" ? [part.replaceAll("\u2060", "")] : textsIn(part),
  );
}
