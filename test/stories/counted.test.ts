import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { pendingList } from "../../src/redis/pending.ts";
import { redisNow } from "../../src/redis/redis.ts";
import { fire, minute, sources, sourceSecrets } from "../features/alerts/sending.ts";
import { deployJob, deployPolicy } from "../features/proposals/deploy-job.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { hears } from "./words.ts";

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

/** Waits until all that is due, now or soon, has been told. */
async function quiet({ settled, client, key }: TestWorld): Promise<void> {
  await settled();
  const soon = async () => (await redisNow(client)) + 5_000;
  await until(async () => client.zcount(pendingList(key), "-inf", await soon())).toBe(0);
}

/** Lets what is requested be sent only once its card is there: else one message says both what is requested and how it ended. */
async function afterCard(
  { client, key, compute, olivia }: TestWorld,
  vm: string,
  request: () => Promise<unknown>,
): Promise<void> {
  const lock = key("lock", `vm:${compute.edit.findVm(vm).id}`);
  await client.set(lock, "r-somebody22");
  await request();
  await hears(olivia, "ops", new RegExp(`${vm}[^]*Waiting for another request`));
  await client.del(lock);
}

/** Waits until the monitor has compared the VMs with their pins after this. */
async function monitored({ lines }: TestWorld): Promise<void> {
  const refreshes = () => lines.filter((line) => line.includes('"inventory.refreshed"')).length;
  const before = refreshes();
  await until(refreshes).toBeGreaterThan(before + 1);
}

const more = `attestation:
  endorsements: endorsements
  pins: [{ targets: ["payments/web-2"], measurements: ["${launchMeasurement("web-2 v1", 4)}"] }]
approvals: [{ operations: ["vm.restart"], targets: ["careful-*"], required: 1 }]
${sources}`;

describe("how often an act is told", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({
      policy: deployPolicy(more),
      env: sourceSecrets,
      pace: { inventoryRefreshMs: 500 },
      prepare({ edit }) {
        for (const name of ["usual-1", "careful-1", "careful-2", "loud-1"])
          edit.addVm({ project: "payments", name });
      },
    });
  });
  afterAll(() => world.close());

  it("a restart is a card and a result, which calls the requester", async () => {
    const restarts = () => world.olivia.types("ops", "/vm restart usual-1");
    expect(await counted(world, () => afterCard(world, "usual-1", restarts))).toBe(
      "2 shared, 0 own, 0 files, 1 pushes",
    );
  });
  it("a refusal is an answer to one person", async () => {
    expect(await counted(world, () => world.vera.types("ops", "/vm restart web-2"))).toBe(
      "0 shared, 1 own, 0 files, 0 pushes",
    );
  });
  it("an approval calls those who may give it, and no message says that they did", async () => {
    expect(
      await counted(world, async () => {
        await world.olivia.types("ops", "/vm restart careful-1");
        await quiet(world);
        await world.amir.presses("Approve", { channel: "ops" });
      }),
    ).toBe("2 shared, 0 own, 0 files, 3 pushes");
  });
  it("a denial has its reason in a message of its own, since that is written later", async () => {
    expect(
      await counted(world, async () => {
        await world.olivia.types("ops", "/vm restart careful-2");
        await quiet(world);
        await world.amir.presses("Deny", { channel: "ops" });
        await world.amir.until(({ modals }) => modals.length > 0);
        await world.amir.submits({ reason: "the data since then is needed" });
      }),
    ).toBe("3 shared, 0 own, 0 files, 3 pushes");
  });
  it("a read of several VMs sends no file and calls nobody", async () => {
    expect(await counted(world, () => world.olivia.types("ops", "/vm attest web-*"))).toBe(
      "0 shared, 1 own, 0 files, 0 pushes",
    );
  });
  it("a resize that breaks a pin is told as every resize, and not once more by the monitor", async () => {
    expect(
      await counted(world, async () => {
        await world.olivia.types("ops", "/vm resize web-2 --cpu 8 --memory 32");
        await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
        await afterCard(world, "web-2", () => world.olivia.submits({}));
        await quiet(world);
        await monitored(world);
      }),
    ).toBe("2 shared, 0 own, 0 files, 1 pushes");
  });
  it("an alert that is restarted from its message and ends calls only the requester", async () => {
    const vm = "loud-1";
    expect(
      await counted(world, async () => {
        await fire(world, [{ vm }]);
        await quiet(world);
        await afterCard(world, vm, () => world.olivia.presses("Restart…", { channel: "ops" }));
        await quiet(world);
        await fire(world, [{ vm, status: "resolved", endsAt: minute(20) }]);
      }),
    ).toBe("4 shared, 0 own, 0 files, 1 pushes");
  });
  it("a proposal that somebody runs is three messages and one push", async () => {
    expect(
      await counted(world, async () => {
        await deployJob(world).proposes("vm snapshot db-1 before-deploy");
        await quiet(world);
        await afterCard(world, "db-1", () => world.olivia.presses("Run", { channel: "ops" }));
      }),
    ).toBe("3 shared, 0 own, 0 files, 1 pushes");
  });
  it("a change during a freeze is refused to its requester alone", async () => {
    await world.ada.types("ops", "/gatehouse freeze storage is failing");
    expect(await counted(world, () => world.olivia.types("ops", "/vm restart web-2"))).toBe(
      "0 shared, 1 own, 0 files, 0 pushes",
    );
  });
});
