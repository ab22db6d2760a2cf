import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { startGatehouseSlack } from "../../../demo/world.ts";
import { isUploadUrl, uploadFile } from "../../../src/core/deliver/upload.ts";
import { createWeb } from "../../../src/slack/web.ts";
import { listenLocally } from "../../slack/receive/local-server.ts";

async function startSlack() {
  const slack = await startGatehouseSlack({ rateLimits: "off" });
  const web = createWeb({
    token: slack.app.botToken,
    apiUrl: slack.apiUrl,
    log: silentLog(),
    timeoutMs: 60_000,
  });
  return {
    slack,
    web,
    file(content = "{}\n", userId = slack.seenBy("olivia").me.id) {
      const { apiUrl } = slack;
      return uploadFile({ web, apiUrl, userId, name: "report.json", title: "Report", content });
    },
    seen() {
      const direct = slack.seenBy("olivia").channels.find(({ kind }) => kind === "direct");
      return direct?.messages ?? [];
    },
    [Symbol.asyncDispose]: () => slack.close(),
  };
}

describe("an uploaded file", () => {
  it("goes to one person's direct messages", async () => {
    await using world = await startSlack();
    expect(await world.file("raw")).toBeUndefined();
    expect(world.seen()).toMatchObject([{ files: [{ name: "report.json", size: 3 }] }]);
  });

  it("is refused with a reason, never with an exception", async () => {
    await using world = await startSlack();
    expect(await world.file("")).toBe("0 bytes");
    expect(await world.file("{}", "U0NOBODY")).toBe("user_not_found");
    const method = "files.completeUploadExternal";
    world.slack.weather.add({ method, kind: "lost-after", times: 1 });
    expect(await world.file()).toBe("lost");
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
      expect(await world.file()).toBe(why);
      over();
    }
    expect(world.seen()).toEqual([]);
    // To send the same bytes twice makes one file.
    world.slack.weather.add({ method: "upload", kind: "lost-after", times: 1 });
    expect(await world.file()).toBeUndefined();
    expect(world.seen()).toHaveLength(1);
  });

  it("is sent to Slack only: an address elsewhere gets no byte", async () => {
    let asked = 0;
    await using elsewhere = await listenLocally((_request, response) => {
      asked += 1;
      response.end();
    });
    const channel = { id: "D0OLIVIA" };
    const told = { ok: true, channel, upload_url: `${elsewhere.url}/upload`, file_id: "F1" };
    await using strange = await listenLocally((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(told));
    });
    const apiUrl = `${strange.url}/api/`;
    const web = createWeb({ token: "xoxb-1", apiUrl, log: silentLog() });
    const spec = { web, apiUrl, userId: "U0OLIVIA", name: "a.csv", title: "a", content: "a" };
    expect(await uploadFile(spec)).toBe("an upload address that isn't Slack's");
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
