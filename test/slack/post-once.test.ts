import { expect, it } from "vitest";
import { silentLog } from "../../src/log.ts";
import { sentence } from "../../src/messages/message.ts";
import { md } from "../../src/messages/text.ts";
import { createPostOnce } from "../../src/slack/post-once.ts";

const said = sentence(md`Restarted web-2`);

/** Posts with what was read of a request's marks; `redis` holds them as they are by now. */
async function post(read: string, redis: string) {
  const marks = new Map([["said:result", redis]]);
  const calls: string[] = [];
  const postOnce = createPostOnce({
    web: {
      async call(method) {
        calls.push(method);
        return { ok: true, data: { ts: "2.2", channel: "C1" } };
      },
    },
    pace: {
      post: async () => 0,
      edit: async () => 0,
      pause: async () => undefined,
    },
    log: silentLog(),
    async remember(_id, fields) {
      for (const [field, value] of Object.entries(fields)) marks.set(field, value);
    },
    async mark(_id, field, before, mark) {
      if ((marks.get(field) ?? "") !== before) return false;
      marks.set(field, mark);
      return true;
    },
    now: async () => Date.now(),
  });
  const subject = { id: "r-1", createdAt: Date.now(), said: { result: read } };
  const posted = await postOnce(subject, "result", said, { channelId: "C1" });
  return { posted: posted.is, calls, mark: marks.get("said:result") };
}

it("a message is posted and marked with where it stands", async () => {
  expect(await post("", "")).toEqual({ posted: "said", calls: ["chat.postMessage"], mark: "2.2" });
});

it("one that was said meanwhile is not posted over it, whether the caller knows or not", async () => {
  expect(await post("1.1", "1.1")).toEqual({ posted: "said", calls: [], mark: "1.1" });
  expect(await post("", "1.1")).toEqual({ posted: "later", calls: [], mark: "1.1" });
});
