import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { card, sentence } from "../../../src/messages/card.ts";
import { md } from "../../../src/messages/markdown.ts";
import { table } from "../../../src/messages/table.ts";
import type { Mark, TurnAnswer } from "../../../src/core/deliver/rate-limiter.ts";
import { createPostOnce, type Owed } from "../../../src/core/deliver/post-once.ts";

const said = sentence(md`Restarted web-2`);

/**
 * Makes one attempt to post or edit a message. `owed` has the marks that were read before; `redis`
 * has the marks that are stored now. `refuses` returns Slack's error for a call, or "lost".
 */
async function attempt(
  owed: Owed,
  redis: Record<string, string>,
  refuses: (args: Record<string, unknown>) => string | undefined = () => undefined,
) {
  const marks = new Map(Object.entries(redis));
  const calls: string[] = [];
  const begin = ({ field, before, doing }: Omit<Mark, "hash">) => {
    if ((marks.get(field) ?? "") !== before) return undefined;
    const at = Date.now();
    marks.set(field, `${doing} ${at}`);
    return at;
  };
  const take = async ({ mark }: { mark: Mark }): Promise<TurnAnswer> => {
    const at = begin(mark);
    return at === undefined ? { kind: "changed" } : { kind: "taken", at };
  };
  const postOnce = createPostOnce({
    web: {
      async call(method, args = {}) {
        calls.push(method);
        const error = refuses(args);
        if (error === "lost") return { ok: false, kind: "lost", reason: "reset" };
        if (error !== undefined) return { ok: false, kind: "refused", error, detail: [] };
        return { ok: true, data: { ts: "2.2", channel: "C1" } };
      },
    },
    rateLimiter: {
      post: async (_channel, turn) => take(turn),
      edit: take,
      pause: async () => undefined,
    },
    log: silentLog(),
    refusal: async () => undefined,
    us: () => ({ botId: "B0GATEHOUSE", botUserId: "U0GATEHOUSE" }),
    now: async () => Date.now(),
    retryMs: 3_000,
  });
  const outbox = {
    async remember(_id: string, fields: Record<string, string>) {
      for (const [field, value] of Object.entries(fields)) marks.set(field, value);
    },
    async mark(_id: string, field: string, before: string, mark: string) {
      if ((marks.get(field) ?? "") !== before) return false;
      marks.set(field, mark);
      return true;
    },
    hashOf: (id: string) => id,
  };
  const subject = { kind: "request", id: "r-1", createdAt: Date.now(), outbox };
  const { kind } = await postOnce(subject, owed);
  return { isSaid: kind === "settled", calls, marks: Object.fromEntries(marks) };
}

const post = (over: Partial<Owed>): Owed => ({
  key: "card",
  mark: "",
  place: { channelId: "C1" },
  render: () => said,
  ...over,
});
const shows = { field: "face", now: "ended", isLast: true };

it("a message is posted and marked with where it stands", async () => {
  expect(await attempt(post({ key: "result" }), {})).toEqual({
    isSaid: true,
    calls: ["chat.postMessage"],
    marks: { "said:result": "2.2" },
  });
  const posted = await attempt(post({ shows: { ...shows, before: "", standsAt: undefined } }), {});
  expect(posted.marks).toEqual({ "said:card": "2.2", card: "C1 2.2", face: "ended" });
});

it("one that was said meanwhile is not posted over it", async () => {
  expect(await attempt(post({ key: "result" }), { "said:result": "1.1" })).toEqual({
    isSaid: false,
    calls: [],
    marks: { "said:result": "1.1" },
  });
});

it("one whose answer was lost isn't looked for while Slack may not have it yet, whoever asks for it", async () => {
  const lost = await attempt(post({ key: "result" }), {}, () => "lost");
  const mark = String(lost.marks["said:result"]);
  expect(await attempt(post({ key: "result", mark }), lost.marks)).toEqual({
    isSaid: false,
    calls: [],
    marks: lost.marks,
  });
  const then = `posting ${Number(mark.split(" ")[1]) - 3_000}`;
  expect(await attempt(post({ key: "result", mark: then }), { "said:result": then })).toEqual({
    isSaid: true,
    calls: ["conversations.history", "chat.postMessage"],
    marks: { "said:result": "2.2" },
  });
});

it("one that stands there is edited, unless another process edited it or is at it", async () => {
  const standsAt = { channelId: "C1", ts: "1.1" };
  const edit = (before: string, face: string) =>
    attempt(post({ mark: "1.1", shows: { ...shows, before, standsAt } }), { face });
  const edited = { isSaid: true, calls: ["chat.update"], marks: { face: "ended" } };
  expect(await edit("running", "running")).toEqual(edited);
  expect(await edit("editing 0", "editing 0")).toEqual(edited);
  const another = `editing ${Date.now()}`;
  for (const [before, face] of [
    ["running", "waiting"],
    ["running", another],
    [another, another],
  ] as const) {
    expect(await edit(before, face)).toEqual({ isSaid: false, calls: [], marks: { face } });
  }
});

describe("a message whose chart or table Slack refuses", () => {
  const rows = card({ push: md`Restarts`, body: [table("Restarts", ["VM"], [["web-1"]]).part] });
  const owed = (mark: string) => post({ key: "end", mark, render: () => rows });
  const refuses = ({ blocks }: Record<string, unknown>) =>
    JSON.stringify(blocks).includes("data_table") ? "invalid_blocks" : undefined;

  it("is posted once more in words, under the same mark", async () => {
    const first = await attempt(owed(""), {}, refuses);
    expect(first).toEqual({
      isSaid: false,
      calls: ["chat.postMessage"],
      marks: { "said:end": "posting words" },
    });
    // It isn't looked up, because it is provably not posted.
    const second = await attempt(owed("posting words"), first.marks, refuses);
    expect(second).toEqual({
      isSaid: true,
      calls: ["chat.postMessage"],
      marks: { "said:end": "2.2" },
    });
  });

  it("is posted by one process only, then as text alone, and given up once that is refused too", async () => {
    const redis = { "said:end": `posting ${Date.now()}` };
    expect(await attempt(owed("posting words"), redis, refuses)).toMatchObject({ calls: [] });
    const bad = () => "bad";
    const inWords = await attempt(owed("posting words"), { "said:end": "posting words" }, bad);
    expect(inWords).toMatchObject({ isSaid: false, marks: { "said:end": "posting text" } });
    const never = await attempt(owed("posting text"), inWords.marks, bad);
    expect(never).toMatchObject({ isSaid: true, marks: { "said:end": "refused" } });
  });

  it("is text alone where Slack takes no block, with what the blocks say", async () => {
    const sent: unknown[] = [];
    const text = await attempt(owed("posting text"), { "said:end": "posting text" }, (args) => {
      sent.push({ text: args["text"], blocks: args["blocks"] });
      return undefined;
    });
    expect(text).toMatchObject({ isSaid: true, marks: { "said:end": "2.2" } });
    expect(sent).toEqual([{ text: "*VM*\nweb-1", blocks: [] }]);
  });

  it("isn't tried in words where its place or the app is refused", async () => {
    for (const [error, mark] of [
      ["is_archived", "nowhere"],
      ["invalid_auth", ""],
    ])
      expect(await attempt(owed(""), {}, () => error)).toMatchObject({
        calls: ["chat.postMessage"],
        marks: { "said:end": mark },
      });
  });
});

describe("a card that asks, and that Slack lets nobody edit any more", () => {
  const standsAt = { channelId: "C1", ts: "1.1" };
  const owed = (mark: string, before: string, asks = true) =>
    post({ mark, shows: { ...shows, before, standsAt, asks } });

  it("is marked by one process to be posted anew, and then posted beside the former", async () => {
    const refuses = ({ ts }: Record<string, unknown>) => (ts ? "edit_window_closed" : undefined);
    const redis = { "said:card": "1.1", card: "C1 1.1", face: "asking 0" };
    const first = await attempt(owed("1.1", "asking 0"), redis, refuses);
    expect(first).toMatchObject({ calls: ["chat.update"], marks: { "said:card": "posting anew" } });
    const second = await attempt(owed("posting anew", String(first.marks["face"])), first.marks);
    expect(second).toMatchObject({
      isSaid: true,
      calls: ["chat.postMessage"],
      marks: { "said:card": "2.2", card: "C1 2.2", "was:card": "C1 1.1", face: "ended" },
    });
    // A process that read the marks before the new post does nothing.
    const late = await attempt(owed("posting anew", "asking 0"), second.marks);
    expect(late).toMatchObject({ isSaid: false, calls: [] });
    const racing = { ...redis, "said:card": "posting anew" };
    expect(await attempt(owed("1.1", "asking 0"), racing, refuses)).toMatchObject({
      isSaid: true,
      calls: ["chat.update"],
      marks: { "said:card": "posting anew" },
    });
  });

  it("stays as it is where it asks nobody, or was posted anew before", async () => {
    const redis = { "said:card": "1.1", card: "C1 1.1", face: "running" };
    expect(
      await attempt(owed("1.1", "running", false), redis, () => "edit_window_closed"),
    ).toMatchObject({ isSaid: true, marks: { "said:card": "1.1", face: "ended" } });
  });
});
