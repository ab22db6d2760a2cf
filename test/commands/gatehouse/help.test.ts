import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { wordsOf } from "../../stories/words.ts";
import { policyWith, startWorld, type TestWorld } from "../../support/start-world.ts";

describe("/gatehouse help on a command that somebody may not run", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({
      policy: policyWith(
        { view: ["U0VERA"], administer: ["U0ADA"], breakGlass: [] },
        `teams:
  payments:
    projects: [payments]
    view: [U0VERA]
    operate: [U0AMIR]
  ml:
    projects: [ml]
    operate: [U0MIA]
`,
      ),
    });
  });
  afterAll(() => world.close());

  async function helpOf(who: PersonActions, topic: string): Promise<string> {
    const own = () => who.seesChannel("ops").messages.filter(({ ephemeral }) => ephemeral);
    const before = own().length;
    await who.types("ops", `/gatehouse help ${topic}`);
    await who.until(() => own().length > before);
    return own().slice(before).map(wordsOf).join("\n");
  }

  it("says who may, in names that notify nobody, and the rules in small print", async () => {
    const said = await helpOf(world.vera, "vm restart");
    expect(said).toMatch(
      /^Only @oncall and amir can restart VMs; which ones depends on the rule\.\n\/vm restart &lt;vm…&gt;\nRestart a running VM\./,
    );
    expect(said).toMatch(
      /\nRules: access\.operate and teams\.payments\.operate in gatehouse\.yml\.$/,
    );
    expect(JSON.stringify(world.vera.seesChannel("ops").messages)).not.toMatch(/<[@!]/);
    expect(await helpOf(world.vera, "gatehouse audit")).toMatch(
      /^Only ada can run \/gatehouse audit\.\n[^]*Rule: access\.administer in gatehouse\.yml\.$/,
    );
    expect(await helpOf(world.vera, "project create")).toMatch(/^Only [^]* can create projects;/);
  });

  it("explains break-glass and other flags, which are no commands", async () => {
    const said = await helpOf(world.vera, "break-glass");
    expect(said).toMatch(/^Only people under breakGlass in gatehouse\.yml can use --break-glass\./);
    expect(said).toMatch(/It works with \/vm stop, [^]*\/project delete, for one target/);
    for (const topic of ["--break-glass", "Break Glass", "break‑glass", "emergency"])
      expect(await helpOf(world.vera, topic)).toBe(said);
    expect(await helpOf(world.vera, "--status")).toMatch(
      /^--status belongs to:\n\/vm list only VMs/,
    );
    await using here = await startWorld({ policy: policyWith({ breakGlass: ["U0ADA"] }) });
    expect(await helpOf(here.ada, "break-glass")).toMatch(
      /^🚨 In an emergency you can skip approval[^]*You are under breakGlass/,
    );
  });

  it("names nobody of a team that they don't see", async () => {
    for (const topic of ["vm restart", "pins"])
      expect(await helpOf(world.vera, topic)).not.toMatch(/U0MIA|teams\.ml/);
    expect(await helpOf(world.ada, "vm restart")).toMatch(/U0MIA/);
  });

  it("names the rule that would have to say who, where nobody may", async () => {
    await using here = await startWorld({ policy: policyWith({ operate: [] }) });
    expect(await helpOf(here.vera, "vm restart")).toMatch(
      /^No one can restart VMs\.\n[^]*Rule: access\.operate in gatehouse\.yml\.$/,
    );
  });

  it("ends with an example that they can run", async () => {
    const [, topic = ""] =
      /\/gatehouse help (.+?) shows details/.exec(await helpOf(world.vera, "")) ?? [];
    expect(topic).toBe("vm show");
    expect(await helpOf(world.vera, topic)).toMatch(/^\/vm show &lt;vm&gt;\n/);
    expect(await helpOf(world.vera, "gatehouse why")).not.toMatch(/^Only/);
  });
});
