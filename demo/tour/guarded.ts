import { connectRedis } from "../../src/redis/redis.ts";
import { silentLog } from "../../src/log/log.ts";
import { agentToken, alertSecret, deployToken } from "../programs.ts";
import type { Tour } from "./tour.ts";

const people = ({ world }: Tour) => ({
  olivia: world.slack.person("olivia"),
  amir: world.slack.person("amir"),
  ada: world.slack.person("ada"),
});

const sent = ({ world }: Tour, ending: string) =>
  world.compute.writes().filter(({ path, method }) => `${method} ${path}`.endsWith(ending)).length;

/** Disruptive and destructive commands, and what guards them. */
export const guardedSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const { olivia } = people(tour);
    tour.scene("web-2 needs more memory. The dialog says what will happen.");
    await tour.types(olivia, "ops", "/vm resize web-2 --cpu 4 --memory 32");
    await tour.dialog(olivia, /CPU 4 → 4, memory 16 → 32/);
    await tour.submits(olivia, {});
    await tour.sees(olivia, "ops", /✅ (@olivia )?Resized web-2/);
    tour.holds(
      "the VM has the new specs",
      tour.world.compute.vm("payments/web-2").specs.memory === 32,
    );
  },
  async (tour) => {
    const { olivia, amir } = people(tour);
    tour.scene(
      "Before an upgrade Olivia takes a snapshot; after it the index is corrupt. She requests a restore.",
    );
    await tour.types(olivia, "ops", "/vm snapshot db-1 before-upgrade");
    await tour.sees(olivia, "ops", /✅ (@olivia )?Took a snapshot of db-1/);
    const taken = await tour.sees(olivia, "ops", /✅ @olivia [\s\S]*snap-/);
    const id = /snap-[\w-]+/.exec(JSON.stringify(taken))?.[0] ?? "";
    await tour.types(olivia, "ops", `/vm restore db-1 ${id}`);
    await tour.dialog(olivia, /All data of db-1 is replaced/);
    await tour.submits(olivia, {
      "Type db-1 to confirm": "db-1",
      Reason: "corrupt index after the upgrade",
    });
    await tour.sees(amir, "ops", /One other person must approve[\s\S]*Approve/);
    await tour.presses(olivia, "Approve");
    await tour.sees(olivia, "ops", /You requested this; someone else/);
    tour.holds("nothing was restored yet", sent(tour, "/restore") === 0);
    await tour.presses(amir, "Approve");
    await tour.sees(olivia, "ops", /✅ (@olivia )?Restored db-1/);
    tour.holds("it was restored exactly once", sent(tour, "/restore") === 1);
    // Three with the one whose answer was lost
    tour.holds("a safety snapshot was taken right before", sent(tour, "/snapshots") === 3);
  },
  async (tour) => {
    const { olivia, amir } = people(tour);
    tour.scene(
      "It was the wrong snapshot. Undo restores the safety snapshot: a restore like any other.",
    );
    await tour.sees(olivia, "ops", /Restored db-1[\s\S]*\[Undo\]/);
    await tour.presses(olivia, "Undo");
    await tour.dialog(olivia, /Undo the restore of[\s\S]*All data of db-1 is replaced/);
    await tour.submits(olivia, {
      "Type db-1 to confirm": "db-1",
      Reason: "wrong snapshot, back to where we were",
    });
    await tour.sees(amir, "ops", /wrong snapshot[\s\S]*Approve/);
    await tour.presses(amir, "Approve");
    await tour.until("db-1 is restored a second time", olivia, () => sent(tour, "/restore") === 2);
  },
  async (tour) => {
    const { olivia, amir } = people(tour);
    tour.scene("Olivia requests to delete staging. That takes two approvals; Amir denies it.");
    await tour.types(olivia, "ops", "/project delete staging");
    await tour.dialog(olivia, /Everything in staging is lost[\s\S]*worker-1[\s\S]*can't be undone/);
    await tour.submits(olivia, {
      "Type staging to confirm": "staging",
      Reason: "we don't use it any more",
    });
    await tour.sees(amir, "ops", /Delete staging[\s\S]*Two other people must approve/);
    await tour.presses(amir, "Deny");
    await tour.sees(olivia, "ops", /❌ (@olivia )?Delete of staging was denied by amir/);
    tour.holds("nothing was deleted", sent(tour, "DELETE /v1/projects/prj-staging") === 0);
  },
  async (tour) => {
    const { amir, ada } = people(tour);
    tour.scene(
      "Now staging leaks data, and the others are asleep. Ada breaks the glass: it runs at once, the audit channel hears of it, and someone else must sign.",
    );
    await tour.types(ada, "ops", '/project delete staging --break-glass "it leaks data right now"');
    await tour.dialog(ada, /This skips approval/);
    await tour.submits(ada, { "Type staging to confirm": "staging" });
    await tour.sees(ada, "audit", /Break-glass by ada: Deleted staging/);
    tour.holds("it was deleted once", sent(tour, "DELETE /v1/projects/prj-staging") === 1);
    await tour.until("Amir is asked to sign", amir, () =>
      JSON.stringify(amir.sees()).includes("Sign review"),
    );
  },
  async (tour) => {
    const { olivia } = people(tour);
    tour.scene("Olivia checks metrics and attestation; then the attestation fails.");
    await tour.types(olivia, "ops", "/vm metrics web-2 1h");
    await tour.sees(olivia, "ops", /CPU and memory of web-2/);
    await tour.types(olivia, "ops", "/vm attest web-2");
    await tour.sees(olivia, "ops", /only you.*Verified.*web-2/);
    tour.world.compute.edit.setMeasurement({ vm: "payments/web-2", measurement: "00".repeat(48) });
    await tour.types(olivia, "ops", "/vm attest web-2");
    await tour.sees(olivia, "ops", /only you.*Failed.*web-2/);
  },
  async (tour) => {
    const { olivia, amir } = people(tour);
    tour.scene(
      "Only the requester sees a console's address, for a short time; the channel sees that it is open.",
    );
    await tour.types(olivia, "ops", "/vm console payments/web-1");
    await tour.sees(olivia, "ops", /shown only to you[\s\S]*Open console/);
    await tour.presses(olivia, "Open console");
    await tour.sees(olivia, "ops", /Console on web-1, good until/);
    const token = /token=([\w-]+)/.exec(JSON.stringify(olivia.sees()))?.[1];
    if (token) tour.secrets.push(token);
    await tour.sees(amir, "ops", /olivia opened a console on web-1, until/);
    tour.holds("Amir sees no address", !JSON.stringify(amir.sees()).includes("wss://"));
    await tour.until(
      "the address is gone",
      olivia,
      () => !JSON.stringify(olivia.sees()).includes("wss://"),
    );
  },
  async (tour) => {
    const { olivia, ada } = people(tour);
    tour.scene(
      "Storage fails. Ada freezes all changes; requests are refused, with who froze them and why.",
    );
    await tour.types(ada, "ops", "/gatehouse freeze storage is failing");
    await tour.sees(ada, "audit", /ada froze all changes: storage is failing/);
    await tour.types(olivia, "ops", "/vm restart web-2");
    await tour.sees(olivia, "ops", /frozen by ada: storage is failing/);
    await tour.types(ada, "ops", "/gatehouse thaw");
    await tour.sees(ada, "audit", /Changes are allowed again/);
    await tour.types(ada, "ops", "/gatehouse audit verify");
    await tour.sees(ada, "ops", /The audit trail is intact/);
  },
];

/** The last one: by now everything that can be kept was. */
export const secretStep = async (tour: Tour): Promise<void> => {
  tour.scene("At the end, nothing that Gatehouse stored, logged, or posted holds a secret.");
  const { world } = tour;
  const { SLACK_BOT_TOKEN, SLACK_APP_TOKEN, COMPUTE_API_KEY } = world.env;
  const ofPrograms = [alertSecret, deployToken, agentToken];
  const own = [SLACK_BOT_TOKEN, SLACK_APP_TOKEN, COMPUTE_API_KEY];
  const secrets = [...own, ...ofPrograms, ...tour.secrets];
  const redis = await connectRedis(world.redisUrl, "commands", silentLog());
  const dumps: string[] = [];
  for (const key of await redis.keys("*"))
    dumps.push((await redis.dumpBuffer(key))?.toString("latin1") ?? "");
  redis.disconnect();
  const kept = [
    dumps.join("\n"),
    tour.lines.join("\n"),
    JSON.stringify(world.slack.messages()),
  ].join("\n");
  const found = secrets.filter((secret) => secret && kept.includes(secret));
  tour.holds(
    `none of ${secrets.length} secrets is in Redis, logs, or messages`,
    tour.secrets.length > 0 && found.length === 0,
  );
};
