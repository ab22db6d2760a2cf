import { afterAll, expect, it } from "vitest";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import { auditOf } from "../core/asking.ts";
import { alertmanagerBody, send, startAlertWorld } from "../features/alerts/sending.ts";
import { rollouts } from "../features/rollouts/rollout-world.ts";
import { testPolicy } from "../support/start-world.ts";
import { features } from "../../src/features/index.ts";
import { createPending } from "../../src/redis/pending.ts";
import { until } from "../support/until.ts";
import { hears, wordsOf } from "./words.ts";
import { isOffered } from "../support/is-offered.ts";

/** web-2 is pinned to what it measures with its four CPUs, and a stop of edge-4 needs a second person. */
const policy = `${testPolicy}
approvals: [{ operations: [vm.stop], targets: ["edge-4"], required: 1 }]
attestation:
  endorsements: endorsements
  pins: [{ targets: ["payments/web-2"], measurements: ["${launchMeasurement("web-2 v1", 4)}"] }]
sources:
  prometheus: { format: alertmanager, channel: C01OPS }
`;
const world = await startAlertWorld({
  policy,
  pace: { remedyMs: 3_000 },
  prepare: ({ edit }) => {
    for (const name of ["edge-1", "edge-2", "edge-3", "edge-4", "queue-1"])
      edit.addVm({ project: "payments", name, id: name });
  },
});
afterAll(() => world.close());
const { olivia, amir, ada, vera } = world;

const began = new Date(Date.now() - 1_000).toISOString();
const tells = (more: object) =>
  send(world, "prometheus", alertmanagerBody([{ name: "HighCpu", vm: "db-1", ...more }]));

/** Resolves when this many changes were judged by their alerts. */
const areJudged = (count: number) =>
  until(async () => {
    const records = await auditOf(world.client, world.key("audit"));
    return records.filter(({ what }) => what === "remedy").length === count;
  });

/** A night as it happens: a fire that a restart doesn't end, one that it does, a broken pin, a rollout that stops, a freeze, and an ask. */
async function happens(): Promise<void> {
  const disk = { name: "DiskFull", vm: "queue-1", startsAt: began };
  const tellsOfDisk = (more: object) =>
    send(world, "prometheus", alertmanagerBody([{ ...disk, ...more }], "DiskFull"));
  await tellsOfDisk({});
  await hears(olivia, "ops", /🔥 DiskFull on queue-1/);
  await olivia.types("ops", "/vm restart queue-1");
  await hears(olivia, "ops", /DiskFull on queue-1 still fires, /);
  await tellsOfDisk({ status: "resolved", endsAt: new Date().toISOString() });
  await hears(olivia, "ops", /✅ DiskFull on queue-1 ended/);
  await areJudged(1);
  const startsAt = new Date().toISOString();
  await tells({ startsAt });
  await hears(olivia, "ops", /🔥 HighCpu on db-1/);
  await olivia.types("ops", "/vm restart db-1");
  await hears(olivia, "ops", /✅ [^]*Restarted db-1/);
  await tells({ startsAt, status: "resolved", endsAt: new Date().toISOString() });
  await hears(olivia, "ops", /✅ HighCpu on db-1 ended/);
  await areJudged(2);
  await olivia.types("ops", "/vm resize web-2 --cpu 8 --memory 32");
  await olivia.until(({ modals }) => /is pinned/.test(JSON.stringify(modals)));
  await olivia.submits({});
  await hears(olivia, "ops", /🔴 .*Resized web-2.*, but its measurement no longer matches/);
  world.compute.weather({ match: "POST /v1/vms/edge-2/restart", goesTo: "ERROR" });
  await rollouts(olivia, "/vm restart edge-*");
  await hears(olivia, "ops", /^❌ \S+ Restart of 4 VMs was stopped at edge-2/);
  await amir.types("ops", "/gatehouse freeze the storage fails");
  await hears(amir, "ops", /froze all changes/);
  await ada.types("ops", "/gatehouse thaw");
  await hears(ada, "ops", /ended the freeze/);
  await vera.types("ops", "/vm stop edge-4");
  const refused = await hears(vera, "ops", /\[Ask @oncall to do it\]/);
  await vera.presses("Ask @oncall to do it", { in: refused.ts });
  await vera.until(({ modals }) => modals.some(({ submit }) => submit === "Ask"));
  await vera.submits({ Reason: "it answers nobody" });
  const asked = await hears(olivia, "ops", /vera asks /);
  await olivia.presses("Run", { in: asked.ts });
  const draft = await hears(amir, "ops", /Stop edge-4[^]*\[Approve\]/);
  await amir.presses("Approve", { in: draft.ts });
  expect(await world.ended("vm stop")).toMatchObject({ state: "done" });
}

/** The lines of a message that tell an event: a time, a sign, and a sentence. */
const eventsIn = (words: string) =>
  words.split("\n").filter((line) => /^\w{3} \d+, \d+:\d\d [AP]M UTC \S/u.test(line));

const answerTo = async (text: string, begins: RegExp): Promise<string> => {
  await olivia.types("ops", text);
  return wordsOf(await hears(olivia, "ops", begins));
};

it("the same hour is told by night, digest, handover, cards, Home, why, the audit trail, subscriptions, and a recap with the same signs, names, times, and order", async () => {
  if (isOffered("gatehouse subscribe")) {
    await olivia.types("status", "/gatehouse subscribe * trouble,drift,changes");
    await hears(olivia, "status", /Gatehouse tells/);
  }
  const from = Date.now();
  await happens();
  const night = eventsIn(await answerTo("/gatehouse night 1h", /^The night/));
  expect(night.map((line) => line.replace(/^.*? UTC /, ""))).toEqual([
    expect.stringMatching(/^✅ DiskFull on queue-1 ended /),
    expect.stringMatching(/^✅ olivia restarted queue-1 in \d+ s\.$/),
    "🔥 DiskFull went on after the vm restart of queue-1 by olivia.",
    expect.stringMatching(/^✅ HighCpu on db-1 ended /),
    expect.stringMatching(/^✅ olivia restarted db-1 in \d+ s\.$/),
    "✅ HighCpu ended after the vm restart of db-1 by olivia.",
    expect.stringMatching(
      /^🔴 olivia resized web-2.*, but its measurement no longer matches its pin\.$/,
    ),
    "🔴 web-2 failed attestation: the measurement matches no pin.",
    expect.stringMatching(
      /^❌ olivia rolled out restarting edge-1.*: 1 done, 1 failed, 2 never began\.$/,
    ),
    "🧊 amir froze all changes: “the storage fails”.",
    "🧊 ada allowed changes again, which ended the freeze by amir: “the storage fails”.",
    expect.stringMatching(/^✅ olivia stopped edge-4 in \d+ s.*; approved by amir\.$/),
  ]);
  // What goes on is told as it stands, and not as an event. Changes that differ only in their
  // target are one line, where the last of them happened.
  const over = night.flatMap((line) => {
    if (line.includes("failed attestation") || line.includes("olivia restarted queue-1")) return [];
    return line.replace(/olivia restarted db-1 .*/, "olivia restarted queue-1, db-1.");
  });
  if (isOffered("gatehouse digest"))
    for (const [text, title] of [
      ["/gatehouse digest now", /^Digest/],
      ["/gatehouse handover", /^Handover/],
    ] as const) {
      const words = await answerTo(text, title);
      expect(eventsIn(words)).toEqual(over);
      expect(words).toMatch(/🔴 web-2 in payments: attestation has failed since/);
    }

  // The judgment of a change is one of its steps there.
  await ada.types("ops", "/gatehouse audit");
  const audit = eventsIn(wordsOf(await hears(ada, "ops", /^Audit trail/))).toReversed();
  const deeds = (lines: readonly string[]) => lines.map((line) => line.replace(/^.*? UTC /, ""));
  const inNight = new Set(deeds(night));
  expect(deeds(audit).filter((deed) => inNight.has(deed))).toEqual(
    deeds(night).filter((deed) => !/^\S+ \S+ (?:ended|went on) after the /.test(deed)),
  );

  if (isOffered("gatehouse subscribe")) {
    const feed = olivia.seesChannel("status").messages.map(wordsOf);
    const changes = deeds(night).filter((deed) => /^\S+ olivia (re|st)/.test(deed));
    for (const deed of [...changes, ...deeds(night).filter((line) => line.startsWith("🔴 web-2"))])
      expect(feed.filter((words) => words.startsWith(deed.replace(/\.$/, "")))).toHaveLength(1);
  }

  const requests = await world.store.getMany(await world.store.recentIds({}, 50));
  const told = requests.filter(({ record }) => record.origin.kind !== "rollout");
  await olivia.opensHome();
  await olivia.until(({ home }) =>
    wordsIn(home?.blocks ?? [])
      .join("\n")
      .includes("Stopped"),
  );
  const home = wordsIn(olivia.sees().home?.blocks ?? [])
    .join("\n")
    .replaceAll(/[*`\u2060]/g, "");
  const messages = olivia.seesChannel("ops").messages.map(wordsOf);
  for (const { record } of told) {
    const line = night.find(
      (one) => one.includes(` ${record.target.name}`) && / olivia (re|st)/.test(one),
    );
    const [, sign = "", deed = ""] =
      / UTC (\S+) olivia ([^;]*?)(?:: “[^]*|; [^]*)?\.?$/u.exec(line ?? "") ?? [];
    const sentence = `${deed.slice(0, 1).toUpperCase()}${deed.slice(1)}`;
    expect(home).toContain(`${sign} ${sentence}`);
    expect(messages.filter((words) => words.startsWith(`${sign} ${sentence}`))).toHaveLength(1);
  }

  if (features.some(({ name }) => name === "outages")) {
    const recaps = createPending(world.client, world.key, "recap");
    const outage = `service-${from} ${from} ${Date.now()}`;
    await world.client.zadd(recaps.list, 0, recaps.memberOf(outage));
    const recap = wordsOf(await hears(olivia, "ops", /was unavailable/));
    const changes = deeds(night).filter((deed) => / olivia (?:re|st)/.test(deed));
    expect(changes).toHaveLength(4);
    for (const deed of changes) expect(recap).toContain(deed);
  }

  const why = await answerTo("/gatehouse why queue-1", /queue-1/);
  expect(why, why).toMatch(/olivia restarted/);
  expect(await answerTo("/gatehouse why web-2", /^🔴 web-2/)).toContain("attestation");
});
