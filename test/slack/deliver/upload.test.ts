import { describe, expect, it } from "vitest";
import { chartOf } from "../../../src/charts/chart.ts";
import { closeCharts } from "../../../src/charts/charts.ts";
import { createLog, silentLog } from "../../../src/log/log.ts";
import { message, section } from "../../../src/messages/message.ts";
import { md } from "../../../src/messages/text.ts";
import type { AppSettings } from "../../../sandbox/slack/state/app-settings.ts";
import { startSandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { type ChartSpec, postChart } from "../../../src/slack/deliver/post-chart.ts";
import { isUploadUrl, uploadFile, uploadImage } from "../../../src/slack/deliver/upload.ts";
import { createWeb } from "../../../src/slack/web.ts";
import { listenLocally } from "../receive/local-server.ts";

const channelId = "C01OPS";
const png = Buffer.from("89504e470d0a1a0a", "hex");
const samples = Array.from({ length: 60 }, (_, index) => ({
  timestamp: new Date(1_780_000_000_000 + index * 60_000).toISOString(),
  value: index,
}));

async function startSlack(app: Partial<AppSettings> = {}) {
  const slack = await startSandboxSlack({ rateLimits: "off", app });
  const lines: string[] = [];
  const web = createWeb({
    token: slack.app.botToken,
    apiUrl: slack.apiUrl,
    log: silentLog(),
    timeoutMs: 500,
  });
  const shared = { web, apiUrl: slack.apiUrl, channelId };
  const chart: ChartSpec = {
    ...shared,
    log: createLog({ level: "debug", write: (line) => void lines.push(line) }),
    message: message("Metrics of web-1", section(md`Metrics of web-1`)),
    chart: chartOf({ cpuUsage: samples, memoryUsage: samples.slice(5) }, "web-1", "1h"),
    altText: "CPU from 0 to 59",
  };
  return {
    slack,
    lines,
    image: (change: { channelId?: string; readyWithinMs?: number } = {}) =>
      uploadImage({
        ...shared,
        png,
        name: "web-1.png",
        title: "web-1",
        altText: "CPU from 1 to 9",
        text: "Metrics of web-1",
        ...change,
      }),
    file: (to: Parameters<typeof uploadFile>[0]["to"], content = "{}\n") =>
      uploadFile({ ...shared, to, name: "report.json", title: "Report", content }),
    web,
    drawn: () => postChart(chart),
    chart: (change: Partial<ChartSpec> = {}) =>
      postChart({ ...chart, render: () => Promise.resolve(png), ...change }),
    seen: () => slack.seenBy("olivia").channels.find(({ id }) => id === channelId)?.messages ?? [],
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

describe("an uploaded picture", () => {
  it("stands in a message that can be found again, with its words for screen readers", async () => {
    await using world = await startSlack();
    const posted = await world.image();
    expect(posted).toMatchObject({ is: "posted", channelId });
    const [shown] = world.seen();
    expect(posted).toMatchObject({ ts: shown?.ts });
    expect(shown).toMatchObject({ text: "Metrics of web-1" });
    expect(shown?.blocks).toMatchObject([
      { type: "image", alt_text: "CPU from 1 to 9", title: { text: "web-1" } },
    ]);
    const [file] = world.slack.workspace.files.values();
    expect(file).toMatchObject({ bytes: png, mimetype: "image/png", altText: "CPU from 1 to 9" });
  });

  it("waits until Slack has processed it, within bounds", async () => {
    await using world = await startSlack({ fileReadyMs: 400 });
    expect(await world.image()).toMatchObject({ is: "posted" });
    expect(world.slack.calls("chat.postMessage").length).toBeGreaterThan(1);
    world.slack.app.fileReadyMs = 60_000;
    expect(await world.image({ readyWithinMs: 300 })).toEqual({
      is: "failed",
      step: "post",
      why: "invalid_blocks",
    });
    expect(world.seen()).toHaveLength(1);
  });

  it("leaves nothing behind where it can't be shown", async () => {
    await using world = await startSlack();
    expect(await world.image({ channelId: "C04RANDOM" })).toEqual({
      is: "failed",
      step: "post",
      why: "not_in_channel",
    });
    expect(world.slack.workspace.files.size).toBe(0);
  });

  it("says at which step it failed, and tries only what may be done twice", async () => {
    const cases = [
      [
        { method: "files.getUploadURLExternal", kind: "rate-limited", retryAfter: 9 },
        "announce",
        "limited",
      ],
      [
        { method: "files.getUploadURLExternal", kind: "error", error: "missing_scope" },
        "announce",
        "missing_scope",
      ],
      [{ method: "upload", kind: "server-error", status: 500 }, "send", "status 500"],
      [
        {
          method: "files.completeUploadExternal",
          kind: "error",
          error: "posting_to_channel_denied",
        },
        "complete",
        "posting_to_channel_denied",
      ],
    ] as const;
    await using world = await startSlack();
    for (const [storm, step, why] of cases) {
      const over = world.slack.weather.add(storm);
      expect(await world.image()).toEqual({ is: "failed", step, why });
      over();
    }
    expect(world.seen()).toEqual([]);
    // Bytes sent twice are the same bytes, and a completed upload that was not heard of is still completed
    world.slack.weather.add({ method: "upload", kind: "lost-after", times: 1 });
    world.slack.weather.add({
      method: "files.completeUploadExternal",
      kind: "lost-after",
      times: 1,
    });
    expect(await world.image()).toMatchObject({ is: "posted" });
    world.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    expect(await world.image()).toEqual({ is: "unsure", why: "lost" });
    expect(world.seen()).toHaveLength(2);
  });

  it("is sent to Slack only: an address elsewhere gets no byte", async () => {
    let asked = 0;
    await using elsewhere = await listenLocally((_request, response) => {
      asked += 1;
      response.end();
    });
    const told = { ok: true, upload_url: `${elsewhere.url}/upload`, file_id: "F1" };
    await using strange = await listenLocally((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(told));
    });
    const apiUrl = `${strange.url}/api/`;
    const web = createWeb({ token: "xoxb-1", apiUrl, log: silentLog() });
    const spec = {
      web,
      apiUrl,
      channelId,
      png,
      name: "a.png",
      title: "a",
      altText: "a",
      text: "a",
    };
    expect(await uploadImage(spec)).toMatchObject({ is: "failed", step: "announce" });
    expect(asked).toBe(0);
    const api = "https://slack.com/api/";
    for (const url of [
      "https://files.slack.com/upload/v1/abc",
      "https://files.slack-gov.com/upload",
    ])
      expect(isUploadUrl(url, api)).toBe(true);
    for (const url of [
      "http://files.slack.com/upload",
      "https://files.slack.com.evil.example/",
      "https://evilslack.com/",
      "https://user:pass@files.slack.com/",
      "https://files.slack.com:8443/",
      "https://169.254.169.254/",
      "file:///etc/passwd",
      "",
    ])
      expect(isUploadUrl(url, api)).toBe(false);
  });
});

describe("an uploaded file", () => {
  it("goes into a thread, or to one person", async () => {
    await using world = await startSlack();
    const first = await world.image();
    const threadTs = first.is === "posted" ? first.ts : "";
    expect(await world.file({ channelId, threadTs })).toMatchObject({ is: "posted", channelId });
    expect(world.seen().at(-1)).toMatchObject({ threadTs, files: [{ name: "report.json" }] });
    const olivia = world.slack.seenBy("olivia").me.id;
    const given = await world.file({ userId: olivia }, "raw");
    expect(given).toMatchObject({ is: "posted" });
    const direct = world.slack
      .seenBy("olivia")
      .channels.find(({ id }) => given.is === "posted" && id === given.channelId);
    expect(direct).toMatchObject({ kind: "direct", messages: [{ files: [{ size: 3 }] }] });
  });

  it("is refused with a reason, never with an exception", async () => {
    await using world = await startSlack();
    expect(await world.file({ channelId }, "")).toMatchObject({ step: "announce", why: "0 bytes" });
    expect(await world.file({ userId: "U0NOBODY" })).toMatchObject({
      step: "open",
      why: "user_not_found",
    });
    expect(await world.file({ channelId: "C04RANDOM" })).toMatchObject({
      step: "complete",
      why: "not_in_channel",
    });
    world.slack.weather.add({
      method: "files.completeUploadExternal",
      kind: "lost-after",
      times: 1,
    });
    expect(await world.file({ channelId })).toEqual({ is: "unsure", why: "lost" });
  });
});

describe("a chart in Slack", () => {
  it("is a picture, drawn by the real thread", async () => {
    await using world = await startSlack();
    expect(await world.drawn()).toMatchObject({ is: "picture", channelId });
    expect(
      world
        .seen()
        .at(-1)
        ?.blocks.map(({ type }) => type),
    ).toEqual(["section", "image"]);
    await closeCharts();
  });

  it("is Slack's own chart where uploads or drawing fail", async () => {
    await using world = await startSlack();
    world.slack.weather.add({
      method: "files.getUploadURLExternal",
      kind: "error",
      error: "missing_scope",
      times: 1,
    });
    expect(await world.chart()).toMatchObject({ is: "block" });
    expect(
      await world.chart({ render: () => Promise.reject(new Error("no thread")) }),
    ).toMatchObject({ is: "block" });
    for (const shown of world.seen())
      expect(shown.blocks.map(({ type }) => type)).toEqual(["section", "data_visualization"]);
    expect(world.lines.join("")).toContain("chart.not-uploaded");
    expect(world.lines.join("")).toContain("chart.not-drawn");
  });

  it("is text where Slack refuses that too", async () => {
    await using world = await startSlack({ fileReadyMs: 60_000 });
    let refusals = 0;
    const { web } = world;
    expect(
      await world.chart({
        readyWithinMs: 100,
        web: {
          call: (method, args) => {
            const isNative = JSON.stringify(args?.["blocks"] ?? "").includes("data_visualization");
            if (!isNative) return web.call(method, args);
            refusals += 1;
            return Promise.resolve({
              ok: false,
              kind: "refused",
              error: "invalid_blocks",
              detail: [],
            });
          },
        },
      }),
    ).toMatchObject({ is: "text" });
    expect(refusals).toBe(1);
    expect(JSON.stringify(world.seen().at(-1)?.blocks)).toMatch(/[▁▂▃▄▅▆▇█]{20,} CPU/);
  });

  it("is never shown twice: what may have been posted is left", async () => {
    await using world = await startSlack();
    world.slack.weather.add({ method: "chat.postMessage", kind: "lost-after", times: 1 });
    expect(await world.chart()).toEqual({ is: "unsure" });
    expect(world.seen()).toHaveLength(1);
  });

  it("comes back as text where nothing can be posted", async () => {
    await using world = await startSlack();
    const posted = await world.chart({ channelId: "C04RANDOM" });
    expect(posted).toMatchObject({ is: "closed", why: "not_in_channel" });
    expect(JSON.stringify(posted)).toMatch(/[▁▂▃▄▅▆▇█]{20,} CPU/);
    expect(world.slack.calls("chat.postMessage")).toHaveLength(1);
  });
});
