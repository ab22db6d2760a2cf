import { cp, mkdtemp, rename, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { launchMeasurement } from "../../../../sandbox/compute/records.ts";
import { sandboxRoots, writeEndorsements } from "../../../../sandbox/evidence/vendors.ts";
import { listEndorsements } from "../../../../src/attestation/endorsement-folder.ts";
import { looking } from "../../stage/looking.ts";
import { createRandom } from "../../../../sandbox/random.ts";
import { startVendors } from "../../../support/vendor-server.ts";
import { answersTo, hears } from "../../people/hearing.ts";
import type { Stage, StageOptions } from "../../stage/stage.ts";
import {
  beginRollout,
  namesKnown,
  numbered,
  restartsSent,
  rolloutUntil,
  saidOf,
} from "../rollouts/rollout-stage.ts";
import { expected, onStage, type Row } from "../row.ts";

const image = "one for all";
const measurement = launchMeasurement(image, 4);
const pinned = `alerts: { channel: C02STATUS }
attestation:
  endorsements: endorsements
  pins: [{ targets: ["vm-*"], measurements: ["${measurement}"] }]
`;

/** VMs whose evidence is as it should be, and a service that vouches for it. */
const withEvidence: StageOptions = { endorsements: "endorsements", workers: 0 };

async function sameImage(stage: Stage, vms: readonly string[]): Promise<void> {
  for (const vm of vms) {
    await stage.service.edit("setMachine", { vm, image });
    await stage.service.edit("setStatus", { vm, status: "RUNNING" });
  }
}

const everyVm = async (stage: Stage) => (await stage.service.vms()).map(({ id }) => id);

async function pinsInTrail(stage: Stage): Promise<string[]> {
  const rows = await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+");
  return rows.flatMap(([, fields]) => {
    const text = fields[fields.indexOf("record") + 1] ?? "{}";
    const { pin } = JSON.parse(text) as { pin?: { vm: string } };
    return pin ? [pin.vm] : [];
  });
}

const alerts = async (stage: Stage, words: RegExp) =>
  (await stage.slack.messages()).filter(
    ({ channelId, text }) => channelId === "C02STATUS" && words.test(text),
  ).length;

/** How many VMs each reason keeps from being verified. */
async function unverified(stage: Stage): Promise<number[]> {
  const records = await stage.redis.hvals(`{${stage.namespace}}:drift`);
  const all = records.map((text) => JSON.parse(text) as { lacks: { what: string }[] });
  const reasons = all.flatMap(({ lacks }) => lacks.map(({ what }) => what));
  return [...Map.groupBy(reasons, (what) => what).values()].map((some) => some.length);
}

/** AMD's list of the sandbox's Genoa, as it is or ended. */
async function putList(stage: Stage, ranOut: boolean): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-list-"));
  await writeEndorsements(folder, { ranOut: ranOut ? ["Genoa"] : [] });
  const list = "amd/Genoa/vcek.crl";
  // Whole at once: half a list is another reason
  const there = path.join(stage.folder, "endorsements", list);
  await cp(path.join(folder, list), `${there}.new`);
  await rename(`${there}.new`, there);
  await rm(folder, { recursive: true });
}

const points = ["gate", "gated", "move"] as const;

export const attestationRows: Row[] = [
  {
    id: "V1",
    fault: "kill -9 of the worker between a pin's approval and its acceptance, and right after",
    must: "each approved pin is kept once, with one record; nothing is sent to the service",
    unknown: "not judged",
    run: ({ seed, times }) =>
      onStage(
        { ...withEvidence, seed, policy: "attestation: { endorsements: endorsements }\n" },
        async (stage) => {
          const vms = (await everyVm(stage)).slice(0, Math.min(12, Math.max(3, times)));
          await sameImage(stage, vms);
          await namesKnown(stage);
          for (const [n, vm] of vms.entries()) {
            await stage.slack.act("olivia", "types", "ops", `/gatehouse pins propose ${vm}`);
            const card = await hears(stage, "amir", new RegExp(`Pin ${vm}[^]*Approve`)).catch(
              async (error: Error) => {
                const [last = "nothing"] = (await answersTo(stage, "olivia")).toReversed();
                throw new Error(`${error.message}; olivia heard ${last}`);
              },
            );
            const doomed = await stage.addBot("worker", { slot: "doomed", begin: false });
            await doomed.arm({ point: points[n % points.length] ?? "gate", do: "kill" });
            await doomed.begin();
            await stage.slack.act("amir", "presses", "Approve", { in: card.ts, channel: "ops" });
            await doomed.exited;
            stage.faults += 1;
            const after = await stage.addBot("worker", { slot: "after" });
            await stage.until(({ target, isFinal }) => target === vm && isFinal);
            await after.stop();
          }
          const kept = await stage.redis.hgetall(`{${stage.namespace}}:pins`);
          const trail = await pinsInTrail(stage);
          const journal = await stage.journal();
          const said = (await stage.slack.messages()).filter(({ text }) => /Pinned/.test(text));
          return expected(
            [
              [
                `${vms.length} pins are kept (${Object.keys(kept).length})`,
                Object.keys(kept).length === vms.length,
              ],
              [
                "each is what its VM measures",
                Object.values(kept).every((text) => text.includes(measurement)),
              ],
              [
                `one record of each in the trail (${trail.length})`,
                trail.length === vms.length && new Set(trail).size === vms.length,
              ],
              [`each request is done`, journal.every(({ state }) => state === "done")],
              [`nothing was sent`, (await stage.service.writes()).length === 0],
              [`each is told (${said.length})`, said.length >= vms.length],
            ],
            [`${stage.faults} kills at ${points.join(", ")}`],
          );
        },
      ),
  },
  {
    id: "V2",
    fault:
      "repeated kill -9 of the endorsements' refresher, between the vendor's answer and the file",
    must: "the folder never holds a partial file; the next process fills it",
    unknown: "not judged",
    run: async ({ seed, times }) => {
      const random = createRandom(seed);
      let kill = () => undefined as unknown;
      const options = {
        ...withEvidence,
        endorsements: "theirs",
        seed,
        timing: { driftWatch: 300 },
      };
      let vendors: Awaited<ReturnType<typeof startVendors>> | undefined;
      const policyOf = (url: string) =>
        `${pinned.replace("endorsements: endorsements", "endorsements: ours")}  refresh: { intel: "${url}", intelRoot: "${url}/root.der", amd: "${url}" }\n`;
      const theirs = await mkdtemp(path.join(tmpdir(), "gatehouse-theirs-"));
      try {
        vendors = await startVendors(theirs, () => kill());
        return await onStage({ ...options, policy: policyOf(vendors.url) }, async (stage) => {
          await cp(path.join(stage.folder, "theirs"), theirs, { recursive: true });
          const vms = await everyVm(stage);
          await sameImage(stage, vms);
          await stage.service.edit("setMachine", { vm: vms[0], platform: "TDX" });
          const folder = path.join(stage.folder, "ours");
          const list = () =>
            listEndorsements(folder, { roots: sandboxRoots, now: Date.now() }).catch(() => []);
          const broken: string[] = [];
          const kills = Math.min(20, Math.max(6, times));
          for (let n = 0; n < kills; n++) {
            const doomed = await stage.addBot("worker", { slot: "doomed" });
            let isHit = false;
            kill = () => {
              if (isHit) return;
              isHit = true;
              setTimeout(() => void doomed.kill(), random() * 6);
            };
            await Promise.race([doomed.exited, sleep(8000)]);
            kill = () => undefined;
            if (!doomed.isGone()) await doomed.kill();
            if (isHit) stage.faults += 1;
            for (const { name, inspected } of await list())
              if ("problem" in inspected) broken.push(`${name}: ${inspected.problem}`);
            // As if they had never come, or every other worker would have nothing to do
            if (n % 2 === 1) await rm(folder, { recursive: true, force: true });
          }
          await stage.addBot("worker");
          const whole = await looking(
            async () => ((await list()).length >= 6 ? list() : undefined),
            20_000,
            async () => `only ${(await list()).map(({ name }) => name).join(", ")}`,
          );
          const left = await readdir(folder, { recursive: true });
          return expected(
            [
              [`at least 3 kills hit (${stage.faults})`, stage.faults >= 3],
              [`no part of a file (${broken.slice(0, 3).join("; ")})`, broken.length === 0],
              [
                `who comes next fills it (${whole.length} files)`,
                whole.every(({ inspected }) => !("problem" in inspected)),
              ],
            ],
            [
              `${vendors?.asked.length} answers of the vendors, ${left.filter((name) => name.endsWith(".new")).length} files left half-written under names that nobody reads`,
            ],
          );
        });
      } finally {
        await vendors?.close();
        await rm(theirs, { recursive: true, force: true });
      }
    },
  },
  {
    id: "V3",
    fault: "AMD's list expires for all VMs at once; two of three workers are killed",
    must: "one alarm for all, one message when it is over",
    unknown: "not judged",
    run: ({ seed }) =>
      onStage(
        { ...withEvidence, seed, policy: pinned, timing: { driftWatch: 300 } },
        async (stage) => {
          const vms = await everyVm(stage);
          await sameImage(stage, vms);
          const bots = await Promise.all([0, 1, 2].map(() => stage.addBot("worker")));
          const until = (words: RegExp) =>
            looking(
              async () => ((await alerts(stage, words)) > 0 ? true : undefined),
              30_000,
              async () => `nobody says ${String(words)}`,
            );
          await putList(stage, true);
          stage.faults += 1;
          await until(/can't be verified/);
          // The alarm counts those alone whose reports its look could read
          const many = await looking(
            async () => (await unverified(stage)).find((count) => count > 4),
            60_000,
            async () => `it is about ${(await unverified(stage)).join(" and ")} VMs`,
          );
          for (const bot of bots.slice(0, 2)) {
            await bot.kill();
            stage.faults += 1;
            await sleep(1500);
          }
          await stage.addBot("worker");
          await sleep(1500);
          const alarms = (await stage.slack.messages())
            .map(({ text }) => text)
            .filter((text) => /can't be verified/.test(text));
          const [words = ""] = alarms;
          const single = await alerts(stage, /Attestation of vm-/);
          await putList(stage, false);
          await until(/Resolved for all pinned VMs/);
          await sleep(1000);
          return expected(
            [
              [`one alarm (${alarms.join(" / ")})`, alarms.length === 1],
              [`it is about many of ${vms.length} (${many})`, many > 4],
              [`none for a VM alone (${single})`, single === 0],
              [
                "one message when it is over",
                (await alerts(stage, /Resolved for all pinned VMs/)) === 1,
              ],
            ],
            [words],
          );
        },
      ),
  },
  {
    id: "V4",
    fault: "in mid-rollout a VM turns out to be debugged; the worker is killed",
    must: "the rollout stops before that VM and says why",
    unknown: "not judged",
    run: ({ seed }) =>
      onStage({ ...withEvidence, seed, policy: pinned }, async (stage) => {
        const vms = numbered(0, 8);
        await sameImage(stage, vms);
        await stage.service.edit("setEvidence", { vm: vms[4], weather: "debugged" });
        const doomed = await stage.addBot("worker", { slot: "doomed", begin: false });
        await doomed.arm({ point: "gate", do: "kill", nth: 3 });
        await doomed.begin();
        const id = await beginRollout(stage, vms);
        await doomed.exited;
        stage.faults += 1;
        await stage.addBot("worker");
        const rollout = await rolloutUntil(stage, id, ({ isFinal }) => isFinal);
        await stage.quiet();
        const restarted = await restartsSent(stage);
        const [end] = await saidOf(stage, id, "end");
        const words = end?.words.join(" ") ?? "";
        const touched = vms.slice(4).filter((vm) => restarted.includes(vm));
        return expected(
          [
            [
              `it stopped (${rollout.state})`,
              rollout.state === "stopped" || rollout.state === "failed",
            ],
            [`nothing from that VM on was touched (${touched.join(", ")})`, touched.length === 0],
            [
              "those before it were, once",
              vms.slice(0, 3).every((vm) => restarted.filter((one) => one === vm).length <= 1),
            ],
            [
              `it says why: ${words.slice(0, 300)}`,
              /debugging is on/i.test(`${words} ${rollout.progress.why}`),
            ],
          ],
          [`${restarted.length} restarted before it stopped`],
        );
      }),
  },
];
