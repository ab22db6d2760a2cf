import { execFile } from "node:child_process";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../stage/child.ts";
import { hears } from "../../people/hearing.ts";
import { askEach, type Expectation, fresh, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";

type Rows = [id: string, fields: string[]][];

/** `audit verify` as whoever runs Gatehouse types it in a terminal. */
async function verify(stage: Stage): Promise<{ code: number; said: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number; said: string }>();
  const env = {
    ...process.env,
    REDIS_URL: stage.redisServer.url,
    DATA_DIR: path.join(stage.folder, "gateway-0"),
  };
  execFile(
    process.execPath,
    [path.join(root, "gatehouse.mjs"), "audit", "verify"],
    { env, cwd: stage.folder },
    (error, stdout, stderr) => {
      const code = typeof error?.code === "number" ? error.code : 0;
      resolve({ code, said: (stdout + stderr).split("\n")[0] ?? "" });
    },
  );
  return promise;
}

/** Writes a stream anew, as somebody with Redis's password could. */
async function rewrite(stage: Stage, key: string, edit: (rows: Rows) => Rows): Promise<void> {
  const rows = edit(await stage.redis.xrange(key, "-", "+"));
  await stage.redis.del(key);
  for (const [id, fields] of rows) await stage.redis.xadd(key, id, ...fields);
}

/** One bit of one byte in the middle. */
function flip(text: string): string {
  const bytes = Buffer.from(text);
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  return bytes.toString();
}

/** What somebody does to a trail of `count` records, and the record that must be named. */
function tamperings(stage: Stage, count: number) {
  const records = `{${stage.namespace}}:audit`;
  return [
    {
      name: "one bit of record 5 changed",
      first: 5,
      kind: "changed",
      act: () =>
        rewrite(stage, records, (rows) =>
          rows.map(([id, fields], at) => [
            id,
            at === 4
              ? fields.map((text, n) => (fields[n - 1] === "record" ? flip(text) : text))
              : fields,
          ]),
        ),
    },
    {
      name: "record 9 removed",
      first: 9,
      kind: "removed",
      act: () => rewrite(stage, records, (rows) => rows.filter((_, at) => at !== 8)),
    },
    {
      name: "records 7 and 8 swapped",
      first: 7,
      kind: "swapped",
      act: () =>
        rewrite(stage, records, (rows) =>
          rows.map(([id, fields], at) => [
            id,
            (at === 6 ? rows[7] : at === 7 ? rows[6] : undefined)?.[1] ?? fields,
          ]),
        ),
    },
    {
      name: "the last 10 cut off, with their seals and checkpoints",
      first: count - 9,
      kind: "truncated",
      async act() {
        for (const key of [records, `${records}:seals`])
          await rewrite(stage, key, (rows) => rows.slice(0, -10));
        await stage.redis.del(`${records}:checkpoints`);
      },
    },
  ];
}

/** Undoes everything that is done to the trail. */
async function keepTrail(stage: Stage): Promise<() => Promise<void>> {
  const records = `{${stage.namespace}}:audit`;
  const keys = [records, `${records}:seals`, `${records}:checkpoints`];
  const kept = await Promise.all(keys.map((key) => stage.redis.dumpBuffer(key)));
  return async () => {
    for (const [n, key] of keys.entries()) {
      await stage.redis.del(key);
      const dump = kept[n];
      if (dump) await stage.redis.restore(key, 0, dump);
    }
  };
}

export const auditRows: Row[] = [
  {
    id: "U2",
    fault: "Redis hangs in the middle of moves",
    must: "people are told that nobody knows; what Redis stored is done once; no send lacks an earlier record",
    unknown: "no trace",
    alone: "how soon people hear that nobody knows",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const [worker] = stage.workers();
        const expectations: Expectation[] = [];
        let saidIn = 0;
        let late = "";
        // Before the claim is recorded; after it; after the send, before its answer is recorded
        for (const point of ["gated", "claim", "answer"]) {
          const sends = async () => (await stage.service.writes()).length;
          await worker?.arm({ point, do: "wait" });
          await stage.request("vm stop", await take("vm stop"));
          await worker?.hit(point);
          const before = await sends();
          if (point === "gated") late = await take("vm restart");
          process.kill(stage.redisServer.pid, "SIGSTOP");
          stage.faults += 1;
          worker?.go();
          if (point === "gated") {
            const began = performance.now();
            await stage.request("vm restart", late);
            await hears(stage, "olivia", /doesn.t know whether Redis did/);
            saidIn = performance.now() - began;
          }
          await sleep(2500);
          const during = (await sends()) - before;
          process.kill(stage.redisServer.pid, "SIGCONT");
          await stage.quiet(45_000);
          const most = point === "claim" ? 1 : 0;
          expectations.push([`stopped at ${point}: ${during} sends meanwhile`, during <= most]);
        }
        const claims = (await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+")).flatMap(
          ([id, fields]) => {
            const record = JSON.parse(fields[fields.indexOf("record") + 1] ?? "{}") as {
              move?: string;
              target?: { id?: string };
            };
            return record.move === "sending" ? [{ at: Number.parseInt(id), ...record }] : [];
          },
        );
        const unrecorded = (await stage.service.writes()).filter(
          (call) =>
            !claims.some(({ at, target }) => call.path.includes(`${target?.id}/`) && at <= call.at),
        );
        const made = (await stage.journal()).filter(({ target }) => target === late);
        return judged(
          await stage.check(),
          [
            ...expectations,
            [
              `and Redis had it: ${made.map(({ state }) => state).join(" ")}`,
              made.map(({ state }) => state).join(" ") === "done",
            ],
            [`that nobody knows is said soon (${Math.round(saidIn)} ms)`, saidIn < 3000],
            [`no send without an older record (${unrecorded.length})`, unrecorded.length === 0],
          ],
          { notes: [`told after ${Math.round(saidIn)} ms`] },
        );
      }),
  },
  {
    id: "U3",
    fault: "a record changed, removed, or swapped; the last ten cut off",
    must: "`audit verify` names the first bad record and what was done to it",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1, namespace: "gatehouse" }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < 3; n++) await askEach(stage, take);
        await stage.quiet();
        // Whoever ends last has sealed everything and written the head to its disk
        for (const bot of [...stage.workers(), ...stage.gateways()]) await bot.stop();
        const count = await stage.redis.xlen(`{${stage.namespace}}:audit`);
        const undo = await keepTrail(stage);
        const untouched = await verify(stage);
        const found: Expectation[] = [];
        for (const { name, first, kind, act } of tamperings(stage, count)) {
          await act();
          stage.faults += 1;
          const { code, said } = await verify(stage);
          const isNamed =
            said.includes(`broken at record ${first} `) ||
            said.includes(`broken at record ${first}:`);
          found.push([`${name}: ${said}`, code === 1 && isNamed && said.includes(`(${kind})`)]);
          await undo();
        }
        const restored = await verify(stage);
        return judged(
          await stage.check(),
          [
            [`whole before: ${untouched.said}`, untouched.code === 0],
            ...found,
            [`whole after: ${restored.said}`, restored.code === 0],
          ],
          { notes: [`${count} records, ${found.length} ways`] },
        );
      }),
  },
];
