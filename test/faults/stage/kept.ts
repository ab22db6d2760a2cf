import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import type { Stage } from "./stage.ts";

/** Everything that is kept anywhere: in Redis and its files, logs, ledgers, and what Slack holds. */
export async function everythingKept(stage: Stage): Promise<string> {
  const kept: string[] = [];
  for (const key of await stage.redis.keys("*"))
    kept.push((await stage.redis.dumpBuffer(key))?.toString("latin1") ?? "");
  for (const file of await readdir(stage.folder, { recursive: true, withFileTypes: true }))
    if (file.isFile()) kept.push(await readFile(path.join(file.parentPath, file.name), "latin1"));
  kept.push(JSON.stringify(await stage.slack.messages()));
  // But for the one way on which an address is shown
  const calls = (await stage.slack.calls()).filter(({ method }) => method !== "response_url");
  kept.push(JSON.stringify(calls));
  for (const who of ["olivia", "amir", "ada", "vera"])
    kept.push(JSON.stringify(await stage.slack.seen(who)));
  return kept.join("\n");
}
