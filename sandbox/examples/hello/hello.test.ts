import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { startSandboxSlack } from "gatehouse-sandbox/slack";
import { parse } from "yaml";

const file = (name: string) => path.join(import.meta.dirname, name);

await test("/hello greets one person, and its button waves to all", async () => {
  const manifest: unknown = parse(readFileSync(file("manifest.yml"), "utf8"));
  await using slack = await startSandboxSlack({ manifest });
  const { botToken, appToken } = slack.app;
  const app = spawn(process.execPath, [file("app.ts")], {
    env: { SLACK_API_URL: slack.apiUrl, SLACK_BOT_TOKEN: botToken, SLACK_APP_TOKEN: appToken },
  });
  try {
    await slack.connected();
    const [olivia, amir] = [slack.person("olivia"), slack.person("amir")];
    await olivia.types("ops", "/hello");
    await olivia.until(({ channels }) => JSON.stringify(channels).includes("Hello, olivia."));
    await olivia.presses("Wave");
    await amir.until(({ channels }) => JSON.stringify(channels).includes("<@U0OLIVIA> waves."));
  } finally {
    app.kill();
  }
});
