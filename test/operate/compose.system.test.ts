import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { hears, wordsOf } from "../stories/words.ts";
import { drillScripts, gapWords } from "../support/backup-drill.ts";
import { allHealthy, engineProblem, unpackShipped } from "../support/shipped.ts";
import { startWorldForPrograms } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** Docker looks at each container's health four times a minute. */
const containers = { stillMs: 300_000, longestMs: 600_000 };

it("README's Docker way, from an unpacked release to a restored Redis, works in the containers that are shipped", async ({
  skip,
}) => {
  const problem = await engineProblem();
  if (problem !== undefined) skip(problem);
  await using world = await startWorldForPrograms();
  const { ada, olivia } = world;
  await using shipped = await unpackShipped(world, (example) =>
    example.replaceAll("U09ADMIN", ada.id),
  );
  const { compose, docker, folder } = shipped;
  const gatehouse = (service: string, ...words: string[]) => [
    "exec",
    "-T",
    service,
    "node",
    "gatehouse.mjs",
    ...words,
  ];
  const restarted = () =>
    olivia
      .seesChannel("ops")
      .messages.filter((message) => /Restarted [\w-]+ in/.test(wordsOf(message))).length;
  const restart = async (vm: string) => {
    const before = restarted();
    await olivia.types("ops", `/vm restart ${vm}`);
    await until(restarted).toBe(before + 1);
  };
  const areReady = () =>
    Promise.all(
      Object.values(shipped.ports).map(async (port) => {
        const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
        return answer?.status;
      }),
    );
  const ready = Object.keys(shipped.ports).map(() => 200);

  await compose(["up", "--build", "--detach"]);
  await until(shipped.health, () => "", containers).toEqual(allHealthy);
  await until(areReady, () => "", containers).toEqual(ready);
  await restart("web-2");
  await compose(gatehouse("gateway", "audit", "verify"));
  await compose(gatehouse("gateway", "doctor", "gateway"));
  await compose(["run", "--rm", "-T", "worker-1", "doctor", "worker"]);

  // What follows the name of the image are Gatehouse's own words
  expect(await docker(["run", "--rm", "gatehouse:local", "--version"])).toMatchObject({ code: 0 });
  const lacking = { code: 78, output: expect.stringContaining("SLACK_BOT_TOKEN: is missing") };
  expect(await docker(["run", "--rm", "gatehouse:local", "gateway"])).toMatchObject(lacking);

  // The drill of docs/operate.md: a copy, one more restart, and the copy put back
  const script = (name: string, copy: string) =>
    `set -eu\nDATA=/data COPY=${copy}\n${drillScripts.get(name) ?? "exit 1"}`;
  const copying = { input: script("copy the directory", "/data/copy") };
  await compose(["exec", "-T", "redis", "sh"], copying);
  await compose(["cp", "redis:/data/copy", "."]);
  await restart("db-1");
  await compose(["stop"]);
  const stopped = await docker([
    "compose",
    "ps",
    "--all",
    "--format",
    "{{.Service}} {{.ExitCode}}",
  ]);
  for (const service of Object.keys(shipped.ports))
    expect(stopped.output).toContain(`${service} 0\n`);
  const copy = path.join(folder, "copy");
  await promisify(execFile)("chmod", ["-R", "a+rX", copy]);
  const restoring = { input: script("restore the directory", "/copy") };
  await compose(
    ["run", "--rm", "--no-deps", "-T", "-v", `${copy}:/copy`, "redis", "sh"],
    restoring,
  );
  await compose(["start"]);
  await hears(ada, "ops", /Redis lost 1 sent request/);
  await compose(gatehouse("gateway", "audit", "verify"), { code: 1 });
  await compose(gatehouse("gateway", ...gapWords));
  const verified = await compose(gatehouse("gateway", "audit", "verify"), { code: 3 });
  expect(verified).toContain("as ada recorded: restored");
  await ada.types("ops", "/gatehouse thaw");
  await hears(ada, "ops", /ada ended the freeze/);
  await restart("web-2");
  await compose(["down", "--volumes"]);
});
