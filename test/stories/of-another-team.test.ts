import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type TestWorld, testTiming } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

const pin = "0a".repeat(48);

/** Olivia operates what no team has, and Amir what the team of #status has. Ada sees everything. */
const policy = `access:
  view: []
  operate: ["U0OLIVIA"]
  administer: ["U0ADA"]
teams:
  pay: { projects: ["payments", "prj-hidden"], operate: ["U0AMIR", "U0ADA"], channel: C02STATUS }
attestation: { pins: [{ targets: ["payments/*", "gpu-*"], measurements: ["${pin}"] }] }
audit: { channel: C03AUDIT }
${testTiming}
`;

describe("what another team has", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({
      policy,
      prepare: ({ edit }) => void edit.addProject({ id: "prj-hidden", name: "canary" }),
    });
  });
  afterAll(() => world.close());

  it("isn't compared with the name of a new project: the service answers for it", async () => {
    const create = "/project create --name canary --type CONTAINER --region eu-west-1";
    await world.olivia.types("ops", create);
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    await world.olivia.submits();
    const made = await world.ended("project create");
    expect(made.state).toBe("done");
    expect(world.compute.writes().map(({ path }) => path)).toEqual(["/v1/projects"]);
    const told = wordsOf(await hears(world.olivia, "ops", /canary/));
    expect(told).not.toMatch(/already exists|hidden|of that name/);
    // What she sees is in the way
    await world.olivia.types("ops", create.replace("canary", "staging"));
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    await world.olivia.submits();
    await hears(world.olivia, "ops", /A project called staging already exists/);
  });

  it("isn't promised: lists show what the person can see, and say so", async () => {
    await world.amir.types("status", "/vm show nothing-like-it");
    await hears(world.amir, "status", /\/vm list shows every VM you can see\./);
    await world.amir.types("status", "/project show nothing-like-it");
    await hears(world.amir, "status", /\/project list shows every project you can see\./);
    await world.amir.types("status", "/vm restart nothing-*");
    await hears(world.amir, "status", /matches none of the 3 VMs you can see\. Nothing was done/);
    await world.amir.types("status", "/vm restart *");
    await world.amir.until(({ modals }) =>
      JSON.stringify(modals).includes("This is every VM you can see"),
    );
  });

  it("isn't shown where an entry of pins names it too", async () => {
    await world.olivia.types("ops", "/gatehouse pins");
    const pins = wordsOf(await hears(world.olivia, "ops", /gpu- /));
    expect(pins).not.toContain("payments");
    expect(pins).toContain("Pins of VMs that you can see: 1 in gatehouse.yml");
    await world.ada.types("ops", "/gatehouse pins");
    expect(wordsOf(await hears(world.ada, "ops", /1 in gatehouse\.yml/))).toContain(
      "payments/ gpu-",
    );
  });
});
