import { describe, expect, it } from "vitest";
import { startSlack } from "./start-slack.ts";
import type { Storm } from "../../../sandbox/slack/web-api/weather.ts";
import { callApi } from "./call-api.ts";

const post = "chat.postMessage";

async function postIn(storm: Omit<Storm, "method">) {
  const slack = await startSlack({ rateLimits: "off" });
  slack.weather.add({ method: post, times: 1, ...storm });
  const answer = await callApi(slack, post, { channel: "C01OPS", text: "hi" }).catch(
    (error: unknown) => String(error),
  );
  const posted = slack.messages().length;
  const [call] = slack.calls(post);
  await slack.close();
  return { answer, posted, call };
}

/** Whether each of 20 calls came through when every second one or so is refused. */
async function outcomes() {
  await using slack = await startSlack({ rateLimits: "off", weatherSeed: 7 });
  slack.weather.add({ method: "*", kind: "error", error: "storm", probability: 0.5 });
  const results: unknown[] = [];
  for (let i = 0; i < 20; i++) results.push((await callApi(slack, "auth.test"))["ok"]);
  slack.weather.clear();
  expect(await callApi(slack, "auth.test")).toMatchObject({ ok: true });
  return results;
}

describe("weather", () => {
  it("loses the answer after the message was posted", async () => {
    expect(await postIn({ kind: "lost-after" })).toMatchObject({
      answer: "TypeError: fetch failed",
      posted: 1,
      call: { ok: true, weather: "lost-after" },
    });
  });

  it("loses the call before anything was done", async () => {
    expect(await postIn({ kind: "lost-before" })).toMatchObject({
      answer: "TypeError: fetch failed",
      posted: 0,
      call: { ok: false },
    });
  });

  it("limits, fails and refuses as told", async () => {
    expect(await postIn({ kind: "rate-limited", retryAfter: 30 })).toMatchObject({
      answer: { status: 429, retryAfter: "30" },
      posted: 0,
    });
    expect(await postIn({ kind: "server-error", status: 502 })).toMatchObject({
      answer: { status: 502 },
      posted: 0,
    });
    expect(await postIn({ kind: "server-error", applied: true })).toMatchObject({
      answer: { status: 503 },
      posted: 1,
    });
    expect(await postIn({ kind: "error", error: "fatal_error" })).toMatchObject({
      answer: { status: 200, error: "fatal_error" },
      posted: 0,
      call: { error: "fatal_error" },
    });
    expect(await postIn({ kind: "slow", ms: 5 })).toMatchObject({
      answer: { ok: true },
      posted: 1,
    });
  });

  it("hits as often and as likely as told, the same with the same seed", async () => {
    const first = await outcomes();
    expect(first).toContain(true);
    expect(first).toContain(false);
    expect(await outcomes()).toEqual(first);
  });

  it("hits only the calls it is meant for", async () => {
    await using slack = await startSlack({ rateLimits: "off" });
    const end = slack.weather.add({
      method: post,
      kind: "error",
      error: "storm",
      where: { channel: "C02STATUS" },
    });
    const to = (channel: string) => callApi(slack, post, { channel, text: "a" });
    expect(await to("C01OPS")).toMatchObject({ ok: true });
    expect(await to("C02STATUS")).toMatchObject({ error: "storm" });
    end();
    expect(await to("C02STATUS")).toMatchObject({ ok: true });
  });
});

describe("rate limits", () => {
  it("let one message a second into a channel, with a short burst", async () => {
    let clock = 1_795_000_000_000;
    await using slack = await startSlack({ now: () => clock });
    const to = (channel: string) => callApi(slack, post, { channel, text: "a" });
    for (let i = 0; i < 5; i++) expect(await to("C01OPS")).toMatchObject({ ok: true });
    expect(await to("C01OPS")).toMatchObject({
      status: 429,
      error: "ratelimited",
      retryAfter: "1",
    });
    expect(await to("C02STATUS")).toMatchObject({ ok: true });
    clock += 1000;
    expect(await to("C01OPS")).toMatchObject({ ok: true });
    expect(await to("C01OPS")).toMatchObject({ status: 429 });
    expect(slack.calls(post).filter(({ status }) => status === 429)).toHaveLength(2);
  });

  it("let fifty edits a minute through for the whole workspace", async () => {
    let clock = 1_795_000_000_000;
    await using slack = await startSlack({ now: () => clock });
    const { ts } = await callApi(slack, post, { channel: "C01OPS", text: "a" });
    const edit = () => callApi(slack, "chat.update", { channel: "C01OPS", ts, text: "b" });
    for (let i = 0; i < 50; i++) expect((await edit()).status).toBe(200);
    expect((await edit()).status).toBe(429);
    slack.setRateLimits({ "chat.update": { count: 1, perMs: 60_000, by: "workspace" } });
    expect((await edit()).status).toBe(200);
    expect(await edit()).toMatchObject({ status: 429, retryAfter: "60" });
    clock += 60_000;
    expect((await edit()).status).toBe(200);
    slack.setRateLimits("off");
    expect((await edit()).status).toBe(200);
  });
});
