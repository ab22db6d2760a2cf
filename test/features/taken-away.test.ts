import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { features } from "../../src/features/index.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { fire, startAlertWorld } from "./alerts/sending.ts";

const without = (...taken: readonly string[]) =>
  features.filter(({ name }) => !taken.includes(name));

describe("a Gatehouse without rollouts, snapshots, consoles, and freeze", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({
      features: without("rollouts", "snapshots", "consoles", "freeze"),
    });
  });
  afterAll(() => world.close());

  it("says that a command takes one VM, and how to go on", async () => {
    const refused = (names: string) =>
      new RegExp(
        `Here /vm restart takes one VM, not a list or a glob\\. Nothing was done\\.\nRun it for each: ${names}\\.`,
      );
    await world.olivia.types("ops", "/vm restart web-*");
    await hears(world.olivia, "ops", refused("payments/web-1, web-2, staging/web-1"));
    await world.olivia.types("ops", "/vm restart payments/web-1 db-1");
    await hears(world.olivia, "ops", refused("payments/web-1, db-1"));
    await world.olivia.types("ops", "/gatehouse can-i vm restart staging/web-1 web-2");
    await hears(world.olivia, "ops", refused("staging/web-1, web-2"));
    await world.olivia.types("ops", "/vm restart payments/web-1 --canary");
    await hears(world.olivia, "ops", /\/vm restart has no --canary\. Nothing was done\./);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.types("ops", "/vm restart payments/web-1");
    await hears(world.olivia, "ops", /Restarted/);
  });

  it("says that commands of snapshots aren't there, and no card offers them or a console", async () => {
    await world.olivia.types("ops", "/vm restore db-1 snap-1");
    await hears(world.olivia, "ops", /\/vm has no restore\./);
    await world.olivia.types("ops", "/vm show train-7");
    await hears(world.olivia, "ops", /\[Metrics\] \[Attest\] \[Refresh\]\n\[Restart\]/);
    await world.olivia.types("ops", "/vm restart train-7");
    const refused = await hears(world.olivia, "ops", /Restart of train-7 was not done/);
    expect(wordsOf(refused)).toMatch(/\[Attest\]/);
    expect(wordsOf(refused)).not.toMatch(/\[Restore\]|\[Console\]/);
    const next = / Next: check its attestation or read the compute service's own logs\./;
    await hears(world.olivia, "ops", next);
  });

  it("says that Gatehouse stopped all changes, and offers no command to end that", async () => {
    world.compute.weather({ match: "POST /v1/*", status: 401, message: "key revoked" });
    world.compute.weather({ match: "GET /v1/projects", status: 401 });
    await world.olivia.types("ops", "/vm restart db-1");
    const told = await hears(world.olivia, "ops", /Gatehouse froze all changes: /);
    expect(told.text).toMatch(/reads still work\.$/);
  });
});

describe("a Gatehouse without break-glass and attestation's commands", () => {
  const policy = `${testPolicy}attestation:
  pins: [{ targets: ["payments/web-2"], measurements: ["${"0a".repeat(48)}"] }]
`;
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({ features: without("break-glass", "attest"), policy });
  });
  afterAll(() => world.close());

  it("says that a command with break-glass did nothing, and has no word of it elsewhere", async () => {
    const { ada } = world;
    await ada.types("ops", '/vm stop payments/web-1 --break-glass "it leaks"');
    await hears(
      ada,
      "ops",
      /--break-glass isn't part of this Gatehouse\. Nothing was done\.\nRun the command without it/,
    );
    await ada.types("ops", '/gatehouse can-i vm stop payments/web-1 --break-glass "it leaks"');
    await hears(ada, "ops", /--break-glass isn't part of this Gatehouse/);
    await ada.types("ops", "/gatehouse can-i vm stop payments/web-1");
    expect(wordsOf(await hears(ada, "ops", /^No\. /))).not.toMatch(/break-glass/);
    await ada.types("ops", "/gatehouse help all");
    expect(wordsOf(await hears(ada, "ops", /What you can run/))).not.toMatch(/break-glass/);
    expect(world.compute.writes()).toEqual([]);
  });

  it("says why a console is refused, and names no command of attestation", async () => {
    await world.olivia.types("ops", "/vm console web-2");
    const refused = wordsOf(await hears(world.olivia, "ops", /No console on web-2/));
    expect(refused).toMatch(/An administrator can insist: \/vm console web-2 --insist/);
    expect(refused).not.toMatch(/\/vm attest/);
  });
});

describe("a Gatehouse without remedies", () => {
  it("says in an alert what became of a press, and nothing of earlier ones", async () => {
    await using world = await startAlertWorld({
      features: without("remedies"),
      pace: { remedyMs: 200 },
    });
    await fire(world, [{}]);
    const card = await hears(world.olivia, "ops", /HighCpu on web-2/);
    await world.olivia.presses("Restart…", { in: card.ts });
    const said = await hears(
      world.olivia,
      "ops",
      /Restarted web-2 in .*\. Still firing, as far as \w+ has told\./,
    );
    expect(wordsOf(said)).not.toMatch(/didn't help/);
    expect(await world.client.keys(world.key("remed*"))).toEqual([]);
  });
});
