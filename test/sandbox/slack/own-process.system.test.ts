import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { remoteSlack } from "../../support/remote-slack.ts";

it("the sandbox Slack runs as its own process, with everything asked over a control port", async () => {
  const child = spawn(
    process.execPath,
    ["sandbox/slack/main.ts", "--manifest", "manifest.yml", "--rate-limits", "off"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  try {
    const [line] = await once(createInterface(child.stdout), "line");
    const { apiUrl, controlUrl, botToken }: Record<string, string> = JSON.parse(String(line));
    const slack = remoteSlack(String(controlUrl));
    const say = (text: string) =>
      fetch(`${apiUrl}chat.postMessage`, {
        method: "POST",
        headers: { authorization: `Bearer ${botToken}` },
        body: new URLSearchParams({ channel: "C01OPS", text }),
      });

    const waiting = slack.until("vera", ({ inbox }) => inbox.length === 1);
    await say("for <@U0VERA>");
    expect((await waiting).channels[0]?.messages).toMatchObject([{ text: "for <@U0VERA>" }]);
    expect(await slack.act("vera", "types", "ops", "/vm list")).toMatchObject({
      acked: false,
      error: "dispatch_failed",
    });
    await slack.edit("archive", "ops");
    await say("too late");
    await slack.question("addWeather", { method: "*", kind: "lost-before", times: 1 });
    await expect(say("lost")).rejects.toThrow("fetch failed");
    expect(await slack.calls()).toMatchObject([
      { ok: true },
      { error: "is_archived" },
      { weather: "lost-before" },
    ]);
    expect(await slack.messages()).toHaveLength(1);
    await expect(slack.question("nonsense")).rejects.toThrow("There is no nonsense");
    await expect(slack.act("vera", "submits")).rejects.toThrow("vera has no modal open");
  } finally {
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
  }
});
