import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { storedFormat } from "../../src/operate/stored-format.ts";
import {
  copyThisRelease,
  lastReleaseFile,
  lastReleaseProblem,
  unpackLastRelease,
} from "../support/last-release.ts";
import { portsOf, type Program, startProgram } from "../support/start-program.ts";
import { startWorldForPrograms, type TestWorld, testPolicy } from "../support/start-world.ts";
import { hears } from "../stories/words.ts";
import { until } from "../support/until.ts";

const here = path.join(import.meta.dirname, "../..");

/** What waits for approval waits in its last project. */
const policy = `${testPolicy}approvals: [{ operations: [vm.restart], targets: ["vm-0001-*"], required: 1, expires: 30m }]
limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
services: { ci: { tokens: ["sha256:${"a".repeat(64)}"], view: ["*"] } }
`;

interface Process extends Program {
  /** The number of requests that it sent, as its log says. */
  sent(): number;
  ready(): Promise<string>;
  /** What it said last, for the error of a wait. */
  complaint(): string;
  started: Promise<void>;
}

/** One process of the release in this folder, with the directory that this release had before. */
function startOf(
  release: string,
  folder: string,
  { DATA_DIR, ...env }: Record<string, string>,
): Process {
  const its = { ...env, DATA_DIR: `${DATA_DIR}-${release}` };
  const program = startProgram([], its, { release: folder });
  const ports = portsOf(program);
  return {
    ...program,
    sent: () => program.output().match(/"event":"request.moved".*?"to":"accepted"/g)?.length ?? 0,
    complaint: () => program.output().slice(-1_000),
    async ready() {
      const answer = await fetch(`http://127.0.0.1:${(await ports).opsPort}/readyz`);
      return `${answer.status} ${await answer.text()}`;
    },
    started: ports.then(() => undefined),
  };
}

/**
 * Asks for one restart after the other, every second one of a VM whose restart needs an approval: as many as it is allowed, so that
 * no machine is too slow for the number of VMs.
 */
function startLoad(world: TestWorld) {
  const names = (project: string) =>
    Array.from({ length: 400 }, (_, at) => at)
      .filter((at) => at % 50 !== 49)
      .map((at) => `vm-${project}-${String(at).padStart(3, "0")}`);
  const [free, guarded] = [names("0000"), names("0001")];
  const asked: string[] = [];
  let allowed = 0;
  let isOver = false;
  const run = (async () => {
    while (!isOver) {
      const vm = (asked.length % 2 === 0 ? free : guarded)[Math.floor(asked.length / 2)];
      if (vm === undefined) throw new Error("the load ran out of VMs");
      if (asked.length < allowed) {
        const channel = asked.length % 2 === 0 ? "ops" : "status";
        const outcome = await world.olivia.types(channel, `/vm restart ${vm}`);
        // Between two processes Slack may have none; nothing was taken then
        if (outcome.acked) asked.push(vm);
      }
      await sleep(100);
    }
  })();
  return {
    asked,
    /** Lets it ask for this many more. */
    allow: (more = 60) => void (allowed = asked.length + more),
    async stop() {
      isOver = true;
      await run;
    },
  };
}

const problem = lastReleaseProblem();

/** Two formats don't run at the same time: then another copy of this release stands for the last one. */
const isOfThisFormat = () =>
  lastReleaseFile("src/operate/stored-format.ts").includes(`storedFormat = "${storedFormat}"`);

describe.skipIf(problem !== undefined)("the last release beside this one, on one Redis", () => {
  it("upgrade and way back under load: nothing is canceled, lost, or sent twice, and no process stands still", async () => {
    using last = isOfThisFormat() ? unpackLastRelease() : copyThisRelease();
    await using world = await startWorldForPrograms({
      policy,
      compute: { transitionMs: 200, world: { projects: 2, vmsPerProject: 400 } },
    });
    const { store } = world;
    const requests = async () => store.getMany(await store.recentIds({}, 2_000));
    const count = async (state: string) =>
      (await requests()).filter((request) => request.state === state).length;

    /** Approves as many of what waits, the oldest first. */
    async function approve(most: number): Promise<void> {
      const waiting = (await requests())
        .flatMap(({ state, delivered: { card }, record }) =>
          state === "draft" && card ? [{ card, record }] : [],
        )
        .toSorted((a, b) => a.record.createdAt - b.record.createdAt);
      for (const { card, record } of waiting.slice(0, most)) {
        await world.amir.presses("Approve", { in: card.ts });
        await until(
          async () => (await store.get(record.id))?.state !== "draft",
          () => `${record.target.name} still waits`,
        );
      }
    }

    await using before = startOf("last", last.folder, world.env);
    await before.started;
    await world.slack.connected();
    const load = startLoad(world);
    load.allow();
    await until(
      async () => (await count("done")) >= 4 && (await count("draft")) >= 10,
      before.complaint,
    );

    await using these = startOf("this", here, world.env);
    await these.started;
    await world.slack.connected(2);
    load.allow();
    const sentBefore = before.sent();
    await until(() => these.sent() >= 4 && before.sent() >= sentBefore + 4, these.complaint);
    await approve(4);
    for (const one of [before, these]) expect(await one.ready()).toMatch(/^200/);
    await before.stop();
    load.allow();
    const alone = these.sent();
    await until(() => these.sent() >= alone + 4, these.complaint);
    await approve(4);

    await using back = startOf("last", last.folder, world.env);
    await back.started;
    await world.slack.connected(2);
    load.allow();
    const sentThen = these.sent();
    await until(() => back.sent() >= 4 && these.sent() >= sentThen + 4, back.complaint);
    await approve(4);
    await these.stop();
    load.allow();
    const sentLast = back.sent();
    await until(() => back.sent() >= sentLast + 4, back.complaint);
    await load.stop();
    await until(
      async () => (await requests()).length >= load.asked.length,
      () => "some that were acknowledged are no requests",
    );
    await until(async () => {
      await approve(1_000);
      const open = (await requests()).filter(({ final }) => !final);
      return open.map(({ record, state }) => `${record.target.name} ${state}`);
    }, back.complaint).toEqual([]);

    const ends = (await requests()).map(({ record, state }) => [record.target.name, state]);
    expect(ends.filter(([, state]) => state !== "done")).toEqual([]);
    const restarted = world.compute.writes().map((call) => call.path);
    expect(restarted.toSorted()).toEqual(
      load.asked.map((vm) => `/v1/vms/${vm}/restart`).toSorted(),
    );
    for (const one of [before, these, back])
      expect(one.output()).not.toMatch(/"event":"policy\.(superseded|standstill)"/);
  });

  it("refuses to run beside another stored format, says how to go on, and the way back is the same", async () => {
    using last = unpackLastRelease();
    using next = copyThisRelease();
    const services = path.join(next.folder, "src/operate/stored-format.ts");
    const text = await readFile(services, "utf8");
    await writeFile(services, text.replace(/(storedFormat = )"\w+"/, '$1"next"'));
    await using world = await startWorldForPrograms({
      policy: `${testPolicy}approvals: [{ operations: [vm.restart], required: 1 }]`,
    });
    const refused = async (folder: string, name: string) => {
      await using late = startOf(`refused-${name}`, folder, world.env);
      late.started.catch(() => undefined);
      expect(await late.ended).toBe(78);
      return late.output();
    };

    await using before = startOf("last", last.folder, world.env);
    await before.started;
    await world.slack.connected();
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.olivia, "ops", /Restart web-2[^]*Waiting for approval/);
    expect(await refused(next.folder, "next")).toMatch(
      /holds stored format \w+ with 1 open request and 1 running process; .*Freeze changes, let the open requests end, stop all processes of the other version, then start this one/,
    );
    await world.ada.types("ops", "/gatehouse freeze upgrade");
    await world.olivia.presses("Cancel", { in: card.ts });
    await hears(world.olivia, "ops", /web-2[^]*[Cc]anceled/);
    await before.stop();

    await using after = startOf("next", next.folder, world.env);
    await after.started;
    await world.slack.connected();
    await world.ada.types("ops", "/gatehouse thaw");
    await hears(world.olivia, "ops", /Changes are allowed again/);
    await world.olivia.types("ops", "/vm snapshot db-1 after");
    await until(async () => {
      const open = await world.client.zcard(world.key("requests", "open"));
      return (world.compute.writes().length === 1 && open === 0) || undefined;
    });
    expect(await refused(last.folder, "last")).toMatch(
      /holds stored format next with 0 open requests and 1 running process/,
    );
    await after.stop();

    await using back = startOf("last", last.folder, world.env);
    await back.started;
    await world.slack.connected();
    await world.olivia.types("ops", "/vm snapshot db-1 back");
    await until(async () => world.compute.writes().length === 2 || undefined);
  });
});
