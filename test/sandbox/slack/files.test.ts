import { describe, expect, it } from "vitest";
import { listOf } from "../../../sandbox/slack/fields.ts";
import { startSlack } from "./start-slack.ts";
import { callApi } from "./call-api.ts";

describe("a file", () => {
  it("can be shown in a block only once Slack has processed it", async () => {
    await using slack = await startSlack({
      rateLimits: "off",
      app: { fileReadyMs: 60_000 },
    });
    const { upload_url, file_id } = await callApi(slack, "files.getUploadURLExternal", {
      filename: "a.png",
      length: 3,
    });
    expect((await fetch(String(upload_url), { method: "POST", body: "toolong" })).status).toBe(400);
    await fetch(String(upload_url), { method: "POST", body: "png" });
    const post = () =>
      callApi(slack, "chat.postMessage", { channel: "C01OPS", text: "a", blocks: image });
    const image = [{ type: "image", alt_text: "a", slack_file: { id: file_id } }];
    expect(
      await callApi(slack, "files.completeUploadExternal", { files: [{ id: file_id }] }),
    ).toMatchObject({ ok: true });
    expect(await post()).toMatchObject({ error: "invalid_blocks" });
    expect(await callApi(slack, "files.info", { file: file_id })).toMatchObject({
      file: { mimetype: "" },
    });
    slack.app.fileReadyMs = 0;
    expect(await callApi(slack, "files.info", { file: file_id })).toMatchObject({
      file: { mimetype: "image/png" },
    });
    expect(await post()).toMatchObject({ ok: true });
  });

  it("without words is notified by its title", async () => {
    await using slack = await startSlack();
    const announced = await callApi(slack, "files.getUploadURLExternal", {
      filename: "vms.csv",
      length: "2",
    });
    await fetch(String(announced["upload_url"]), { method: "POST", body: "ab" });
    await callApi(slack, "files.completeUploadExternal", {
      files: [{ id: announced["file_id"], title: "All VMs" }],
      channel_id: "D0OLIVIA",
    });
    expect(slack.person("olivia").sees().inbox).toMatchObject([{ text: "Sent a file: All VMs" }]);
  });

  it("is for the app with its token, and for people with their key", async () => {
    await using slack = await startSlack({ rateLimits: "off" });
    const args = { filename: "a.txt", length: 5 };
    const { upload_url, file_id } = await callApi(slack, "files.getUploadURLExternal", args);
    const complete = {
      files: [{ id: file_id, title: "A" }],
      channel_id: "C01OPS",
      initial_comment: "see",
    };
    expect(await callApi(slack, "files.completeUploadExternal", complete)).toMatchObject({
      error: "file_not_found",
    });
    await fetch(String(upload_url), { method: "POST", body: "hello" });
    expect(
      await callApi(slack, "files.completeUploadExternal", {
        ...complete,
        channel_id: "C04RANDOM",
      }),
    ).toMatchObject({ error: "not_in_channel" });
    const { files } = await callApi(slack, "files.completeUploadExternal", complete);
    const [file] = listOf(files);
    const address = String(file?.["url_private"]);
    expect((await fetch(address)).status).toBe(404);
    const headers = { authorization: `Bearer ${slack.app.botToken}` };
    expect(await (await fetch(address, { headers })).text()).toBe("hello");
    const seen = slack.person("gina").seesChannel("ops").messages[0]?.files[0];
    expect(await (await fetch(String(seen?.url))).text()).toBe("hello");
    expect(seen).toMatchObject({ name: "a.txt", title: "A", mimetype: "text/plain", size: 5 });
    await callApi(slack, "files.delete", { file: file_id });
    expect(await callApi(slack, "files.info", { file: file_id })).toMatchObject({
      error: "file_not_found",
    });
  });
});
