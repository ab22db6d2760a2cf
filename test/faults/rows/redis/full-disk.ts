import { chmod, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ensureRedis } from "../../../../sandbox/ensure-redis.ts";
import { answersTo } from "../../people/hearing.ts";
import { cannotLimitFiles, limitFiles } from "../../stage/limit-files.ts";
import { looking } from "../../stage/looking.ts";
import { askEach, fresh, judged, onStage, type Row } from "../row.ts";
import { readiness } from "../../stage/readiness.ts";
import type { Stage } from "../../stage/stage.ts";

/** A Redis that takes a failed write for one: by default the signal that comes with it ends a process. */
async function survivingRedis(): Promise<{ program: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-redis-program-"));
  const program = path.join(folder, "redis-server");
  await writeFile(program, `#!/bin/sh\ntrap "" XFSZ\nexec "${await ensureRedis()}" "$@"\n`);
  await chmod(program, 0o755);
  const gone = () => rm(folder, { recursive: true, force: true });
  return { program, [Symbol.asyncDispose]: gone };
}

async function longestFile(folder: string): Promise<number> {
  const names = await readdir(folder);
  const sizes = await Promise.all(
    names.map(async (name) => (await stat(path.join(folder, name))).size),
  );
  return Math.max(...sizes);
}

async function writes(stage: Stage): Promise<string> {
  try {
    await stage.redis.set("probe", "1");
    return "ok";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const untilWrites = (stage: Stage, wanted: RegExp) =>
  looking(
    async () => (wanted.test(await writes(stage)) ? true : undefined),
    10_000,
    async () => `Redis should say ${String(wanted)}; it says ${await writes(stage)}`,
  );

export const redisDiskRows: Row[] = [
  {
    id: "R7",
    fault: "the disk of Redis's append-only file is full",
    must: "nothing is sent; people and health checks get the reason; work resumes once there is room",
    unknown: "no trace",
    async run({ seed }) {
      const lacking = cannotLimitFiles();
      if (lacking !== undefined) return { wrong: [], notes: [], notRun: lacking };
      await using redis = await survivingRedis();
      const slowly = { workers: 1, transitionMs: [600, 900] } as const;
      return await onStage({ seed, redis, ...slowly }, async (stage) => {
        const take = fresh(stage);
        const running = await askEach(stage, take);
        await looking(
          async () => ((await stage.service.writes()).length === running.length ? true : undefined),
          10_000,
          async () => "not everything was sent",
        );
        const folder = path.join(stage.redisServer.dir, "appendonlydir");
        await limitFiles(stage.redisServer.pid, await longestFile(folder));
        stage.faults += 1;
        await untilWrites(stage, /^MISCONF/);
        const sent = (await stage.service.writes()).length;
        const refused = await stage.request("vm restart", await take("vm restart"));
        await looking(
          async () =>
            (await answersTo(stage, "olivia")).some((text) =>
              /Redis can't write to its disk: nothing was done/.test(text),
            )
              ? true
              : undefined,
          5000,
          async () => `olivia hears ${JSON.stringify(await answersTo(stage, "olivia"))}`,
        );
        const ready = await readiness(stage);
        const during = (await stage.service.writes()).length - sent;
        await limitFiles(stage.redisServer.pid, "unlimited");
        await untilWrites(stage, /^ok$/);
        await stage.quiet(45_000);
        const again = await askEach(stage, take, ["vm restart"]);
        const journal = await stage.quiet();
        const isDone = (target: string) =>
          journal.some((one) => one.target === target && one.state === "done");
        return judged(await stage.check(), [
          [
            "what was refused was not done",
            !journal.some(({ target }) => target === refused.target),
          ],
          [`nothing was sent meanwhile (${during})`, during === 0],
          [
            `each process says it can't work (${ready.join(" / ")})`,
            ready.every((said) => /^503.*Redis can't write to its disk/s.test(said)),
          ],
          [
            "what ran has ended",
            journal.filter(({ target }) => running.some((one) => one.target === target)).length ===
              running.length,
          ],
          ["all goes on afterwards", again.every(({ target }) => isDone(target))],
        ]);
      });
    },
  },
];
