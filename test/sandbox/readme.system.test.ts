import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { methods } from "../../sandbox/slack/web-api/methods/index.ts";
import { readSources, root } from "../structure/sources.ts";
import { remoteSlack } from "../support/remote-slack.ts";
import { until } from "../support/until.ts";

const textOf = (name: string) => readFileSync(path.join(root, "sandbox", name), "utf8");
const readme = textOf("README.md");
const sandbox = JSON.parse(textOf("package.json")) as {
  name: string;
  exports: Record<string, string>;
  dependencies: object;
  devDependencies: object;
};

/** The words in code marks that follow this one, up to the end of their sentence. */
const listAfter = (words: string): string[] => {
  const [, list = ""] = new RegExp(`\\*\\*${words}:\\*\\* ([^]*?\`)\\.\\s`).exec(readme) ?? [];
  return [...list.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
};

/** A command of README as its program, words, and environment. */
function commandWith(part: string, port: number) {
  const line = readme.split("\n").find((one) => one.startsWith("    ") && one.includes(part)) ?? "";
  const words = line.trim().replaceAll("9001", String(port)).split(" ");
  const at = words.indexOf("node");
  const env = Object.fromEntries(words.slice(0, at).map((word) => word.split("=", 2)));
  return { args: words.slice(at + 1), env: { ...process.env, ...env } };
}

describe("the sandbox's README", () => {
  it("starts a Slack and another Bolt app by its two commands, and the app is answered", async () => {
    const port = await freePort();
    const [slackIs, appIs] = [commandWith("--manifest", port), commandWith("SLACK_API_URL", port)];
    const slack = spawn(process.execPath, slackIs.args, {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const started = [slack];
    try {
      const [line] = (await once(createInterface(slack.stdout), "line")) as [string];
      const { controlUrl = "", pageUrl = "" } = JSON.parse(line) as Record<string, string>;
      const page = await fetch(pageUrl);
      expect(await page.text()).toContain("<title>Sandbox</title>");

      const options = { cwd: root, env: appIs.env };
      started.push(
        spawn(process.execPath, appIs.args, { ...options, stdio: ["ignore", "pipe", "inherit"] }),
      );
      const people = remoteSlack(controlUrl);
      await until(() => people.question<number>("connections")).toBeGreaterThan(0);
      const hello = await people.act("olivia", "types", "ops", "/hello");
      expect(hello).toMatchObject({ acked: true });
      const sees = (words: string) => (seen: object) => JSON.stringify(seen).includes(words);
      await people.until("olivia", sees("Hello, olivia."));
      expect(await people.act("olivia", "presses", "Wave")).toMatchObject({ acked: true });
      await people.until("amir", sees("<@U0OLIVIA> waves."));
      expect((await people.messages()).map(({ text }) => text)).toEqual(["<@U0OLIVIA> waves."]);
    } finally {
      const gone = started.map((child) => child.exitCode === null && once(child, "exit"));
      for (const child of started) child.kill();
      await Promise.all(gone.filter((exit) => exit !== false));
    }
  });

  it("shows the test of that app as it is, and it passes", () => {
    expect(readme).toContain(`\`\`\`ts\n${textOf("examples/hello/hello.test.ts")}\`\`\`\n`);
    // Vitest's own variables would tell Node.js' runner that it is inside of another
    const env = Object.entries(process.env).filter(([name]) => !name.startsWith("NODE_TEST"));
    const { status, stdout } = spawnSync(
      process.execPath,
      ["--test", "--test-reporter=tap", "sandbox/examples/hello/hello.test.ts"],
      { cwd: root, encoding: "utf8", env: Object.fromEntries(env) },
    );
    expect(stdout).toMatch(/# pass 1\n# fail 0\n/);
    expect(status).toBe(0);
  });

  it("names each entry point, and each can be imported by the package's name", () => {
    const names = Object.keys(sandbox.exports).map((name) => name.replace(".", sandbox.name));
    const table = [...readme.matchAll(/^\| `(gatehouse-sandbox\/\w+)`/gm)].map(([, name]) => name);
    expect(table).toEqual(names);
    const script = `await Promise.all(${JSON.stringify(names)}.map((name) => import(name)))`;
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: path.join(root, "sandbox"),
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it("names each method and each event of its Slack, and each package with its reason", () => {
    expect(listAfter("Web API")).toEqual([...methods.keys()].toSorted());
    const sent = [...readSources(["sandbox/slack/acts"]).values()].flatMap((text) =>
      [...text.matchAll(/(?<!function )sendEvent\([^"`;]*["`]([^"`]+)["`]/g)].map(
        ([, name = ""]) => name,
      ),
    );
    const kinds = ["channels", "groups", "im", "mpim"];
    const events = sent.flatMap((name) =>
      name === "message.${kind}" ? kinds.map((kind) => `message.${kind}`) : [name],
    );
    expect(listAfter("Events")).toEqual([...new Set(events)].toSorted());
    const all = Object.keys({ ...sandbox.dependencies, ...sandbox.devDependencies });
    expect(all.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  });
});
