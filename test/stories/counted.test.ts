import { describe, expect, it } from "vitest";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { fire, minute, startAlertWorld } from "../features/alerts/sending.ts";
import { apiEnv, deployJob, deployPolicy } from "../features/proposals/deploy-job.ts";
import { policyWith, startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";

/** What an act puts before people: new messages, answers that only one person sees, files, and phones that buzz. */
async function counted(world: TestWorld, act: () => Promise<unknown>): Promise<string> {
  await quiet(world);
  const before = tally(world);
  await act();
  await quiet(world);
  const after = tally(world);
  const differs = (name: keyof typeof after) => after[name] - before[name];
  return `${differs("shared")} shared, ${differs("own")} own, ${differs("files")} files, ${differs("pushes")} pushes`;
}

const everyone = ({ olivia, amir, vera, ada }: TestWorld) => [olivia, amir, vera, ada];

function tally(world: TestWorld) {
  const seen = everyone(world).map((person) => person.sees());
  const all = new Map(
    seen.flatMap(({ channels }) =>
      channels.flatMap(({ messages }) => messages.map((one) => [one.ts, one] as const)),
    ),
  );
  const app = [...all.values()].filter(({ author }) => author.isBot);
  return {
    shared: app.filter(({ ephemeral }) => !ephemeral).length,
    own: app.filter(({ ephemeral }) => ephemeral).length,
    files: app.reduce((sum, { files }) => sum + files.length, 0),
    pushes: seen.reduce((sum, { inbox }) => sum + inbox.length, 0),
  };
}

/** Waits until nothing new has been said for a second. */
async function quiet(world: TestWorld): Promise<void> {
  await world.settled();
  for (let last = -1; ;) {
    const now = world.slack.messages().length;
    if (now === last) return;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

const pinned = `attestation:
  endorsements: endorsements
  pins: [{ targets: ["payments/web-2"], measurements: ["${launchMeasurement("web-2 v1", 4)}"] }]
`;
const restartsNeedOne = 'approvals: [{ operations: ["vm.restart"], required: 1 }]\n';

describe.concurrent("how often an act is told", () => {
  it("a restart is a card and a result, which calls the requester", async () => {
    await using world = await startWorld();
    expect(await counted(world, () => world.olivia.types("ops", "/vm restart web-2"))).toBe(
      "2 shared, 0 own, 0 files, 1 pushes",
    );
  });
  it("a refusal is an answer to one person", async () => {
    await using world = await startWorld();
    expect(await counted(world, () => world.vera.types("ops", "/vm restart web-2"))).toBe(
      "0 shared, 1 own, 0 files, 0 pushes",
    );
  });
  it("an approval calls those who may give it, and no message says that they did", async () => {
    await using world = await startWorld({ policy: policyWith({}, restartsNeedOne) });
    expect(
      await counted(world, async () => {
        await world.olivia.types("ops", "/vm restart web-2");
        await quiet(world);
        await world.amir.presses("Approve", { channel: "ops" });
      }),
    ).toBe("2 shared, 0 own, 0 files, 3 pushes");
  });
  it("a denial has its reason in a message of its own, since that is written later", async () => {
    await using world = await startWorld({ policy: policyWith({}, restartsNeedOne) });
    expect(
      await counted(world, async () => {
        await world.olivia.types("ops", "/vm restart web-2");
        await quiet(world);
        await world.amir.presses("Deny", { channel: "ops" });
        await world.amir.until(({ modals }) => modals.length > 0);
        await world.amir.submits({ reason: "the data since then is needed" });
      }),
    ).toBe("3 shared, 0 own, 0 files, 3 pushes");
  });
  it("a resize that breaks a pin is told as every resize, and not once more by the monitor", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}${pinned}`,
      pace: { inventoryRefreshMs: 300 },
    });
    expect(
      await counted(world, async () => {
        await world.olivia.types("ops", "/vm resize web-2 --cpu 8 --memory 32");
        await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
        await world.olivia.submits({});
      }),
    ).toBe("2 shared, 0 own, 0 files, 1 pushes");
  });
  it("a read of several VMs sends no file and calls nobody", async () => {
    await using world = await startWorld({ policy: `${testPolicy}${pinned}` });
    expect(await counted(world, () => world.olivia.types("ops", "/vm attest web-*"))).toBe(
      "0 shared, 1 own, 0 files, 0 pushes",
    );
  });
  it("an alert that is restarted from its message and ends calls only the requester", async () => {
    await using world = await startAlertWorld();
    expect(
      await counted(world, async () => {
        await fire(world, [{}]);
        await quiet(world);
        await world.olivia.presses("Restart…", { channel: "ops" });
        await quiet(world);
        await fire(world, [{ status: "resolved", endsAt: minute(20) }]);
      }),
    ).toBe("4 shared, 0 own, 0 files, 1 pushes");
  });
  it("a proposal that somebody runs is three messages and one push", async () => {
    await using world = await startWorld({ env: apiEnv, policy: deployPolicy() });
    expect(
      await counted(world, async () => {
        await deployJob(world).proposes("vm snapshot db-1 before-deploy");
        await quiet(world);
        await world.olivia.presses("Run", { channel: "ops" });
      }),
    ).toBe("3 shared, 0 own, 0 files, 1 pushes");
  });
  it("a change during a freeze is refused to its requester alone", async () => {
    await using world = await startWorld();
    await world.ada.types("ops", "/gatehouse freeze storage is failing");
    expect(await counted(world, () => world.olivia.types("ops", "/vm restart web-2"))).toBe(
      "0 shared, 1 own, 0 files, 0 pushes",
    );
  });
});
