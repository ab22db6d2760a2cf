import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { startSandboxSlack } from "../../../sandbox/slack/sandbox-slack.ts";
import { isUploadUrl, uploadFile } from "../../../src/slack/deliver/upload.ts";
import { createWeb } from "../../../src/slack/web.ts";
import { listenLocally } from "../receive/local-server.ts";

const channelId = "C01OPS";

async function startSlack() {
  const slack = await startSandboxSlack({ rateLimits: "off" });
  const web = createWeb({
    token: slack.app.botToken,
    apiUrl: slack.apiUrl,
    log: silentLog(),
    timeoutMs: 500,
  });
  return {
    slack,
    web,
    file: (to: Parameters<typeof uploadFile>[0]["to"], content = "{}\n") =>
      uploadFile({ web, apiUrl: slack.apiUrl, to, name: "report.json", title: "Report", content }),
    seen: () => slack.seenBy("olivia").channels.find(({ id }) => id === channelId)?.messages ?? [],
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

describe("an uploaded file", () => {
  it("goes into a thread, or to one person", async () => {
    await using world = await startSlack();
    await world.web.call("chat.postMessage", { channel: channelId, text: "Report of web-2" });
    const threadTs = world.seen()[0]?.ts ?? "";
    expect(await world.file({ channelId, threadTs })).toEqual({ is: "posted" });
    expect(world.seen().at(-1)).toMatchObject({ threadTs, files: [{ name: "report.json" }] });
    const olivia = world.slack.seenBy("olivia").me.id;
    const given = await world.file({ userId: olivia }, "raw");
    expect(given).toMatchObject({ is: "posted" });
    const direct = world.slack.seenBy("olivia").channels.find(({ kind }) => kind === "direct");
    expect(direct).toMatchObject({ kind: "direct", messages: [{ files: [{ size: 3 }] }] });
  });

  it("is refused with a reason, never with an exception", async () => {
    await using world = await startSlack();
    expect(await world.file({ channelId }, "")).toMatchObject({ why: "0 bytes" });
    expect(await world.file({ userId: "U0NOBODY" })).toMatchObject({
      why: "user_not_found",
    });
    expect(await world.file({ channelId: "C04RANDOM" })).toMatchObject({
      why: "not_in_channel",
    });
    world.slack.weather.add({
      method: "files.completeUploadExternal",
      kind: "lost-after",
      times: 1,
    });
    expect(await world.file({ channelId })).toEqual({ is: "unsure", why: "lost" });
  });

  it("says why it failed, and tries only what may be done twice", async () => {
    const cases = [
      [{ method: "files.getUploadURLExternal", kind: "rate-limited", retryAfter: 9 }, "limited"],
      [
        { method: "files.getUploadURLExternal", kind: "error", error: "missing_scope" },
        "missing_scope",
      ],
      [{ method: "upload", kind: "server-error", status: 500 }, "status 500"],
      [
        {
          method: "files.completeUploadExternal",
          kind: "error",
          error: "posting_to_channel_denied",
        },
        "posting_to_channel_denied",
      ],
    ] as const;
    await using world = await startSlack();
    for (const [storm, why] of cases) {
      const over = world.slack.weather.add(storm);
      expect(await world.file({ channelId })).toEqual({ is: "failed", why });
      over();
    }
    expect(world.seen()).toEqual([]);
    // Bytes sent twice are the same bytes
    world.slack.weather.add({ method: "upload", kind: "lost-after", times: 1 });
    expect(await world.file({ channelId })).toMatchObject({ is: "posted" });
    expect(world.seen()).toHaveLength(1);
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
    const spec = { web, apiUrl, to: { channelId }, name: "a.csv", title: "a", content: "a" };
    expect(await uploadFile(spec)).toEqual({
      is: "failed",
      why: "an upload address that isn't Slack's",
    });
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
