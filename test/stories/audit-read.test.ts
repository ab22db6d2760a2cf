import { describe, expect, it } from "vitest";
import { addPerson } from "../../sandbox/slack/state/people.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { auditOf } from "../core/asking.ts";
import { append } from "../audit/trail-of.ts";
import { startWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

describe("reading the audit trail in Slack", () => {
  it("is for administrators alone, and who read or exported what stands in it", async () => {
    await using world = await startWorld();
    for (const who of [world.vera, world.olivia, world.amir]) {
      await who.types("random", "/gatehouse audit");
      await hears(who, "random", /Only ada can run \/gatehouse audit/);
    }
    await world.ada.types("random", "/gatehouse audit");
    await hears(world.ada, "random", /was refused gatehouse audit/);
    await world.ada.types("random", "/gatehouse audit web-2");
    await hears(world.ada, "random", /web-2/);
    const sealed = async () =>
      (await verifyAudit({ redis: world.client, key: world.key })).unsealed.count;
    await until(sealed).toBe(0);
    await world.ada.types("random", "/gatehouse audit verify");
    await hears(world.ada, "random", /The audit trail is intact/);
    await world.ada.types("random", "/gatehouse audit export");
    await hears(world.ada, "random", /file in your direct messages contains \d+ records/);
    const huge = { what: "request", request: "r-huge", why: "x".repeat(900_000) };
    await append({ redis: world.client, key: world.key }, 10, () => huge);
    await until(sealed).toBe(0);
    await world.ada.types("random", "/gatehouse audit export");
    const refused = /too large for a file in Slack: \d+ records\. Nothing was sent\./;
    const text = wordsOf(await hears(world.ada, "random", refused));
    expect(text).toContain("node gatehouse.mjs audit export FILE");
    const files = [...world.slack.workspace.files.values()];
    expect(files.map(({ name }) => name)).toEqual([expect.stringMatching(/^gatehouse-audit-/)]);
    const trail = await auditOf(world.client, world.key("audit"));
    const looks = trail.filter(({ what }) => String(what).startsWith("audit-"));
    expect(looks).toMatchObject([
      { what: "audit-read", who: "U0ADA", about: "" },
      { what: "audit-read", who: "U0ADA", about: "web-2" },
      { what: "audit-read", who: "U0ADA", about: "verify" },
      { what: "audit-export", who: "U0ADA", about: "export" },
      { what: "audit-export", who: "U0ADA", about: "export" },
    ]);
    expect(trail.filter(({ what }) => what === "refusal").map(({ who }) => who)).toEqual([
      "U0VERA",
      "U0OLIVIA",
      "U0AMIR",
    ]);
  });

  it("takes people by name, mention, and ID, and asks where a name is that of several", async () => {
    await using world = await startWorld();
    const { ada, olivia, vera } = world;
    await olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    await vera.types("ops", "/vm stop web-2");
    await hears(vera, "ops", /Only @oncall can stop web-2/);
    const found = /Audit trail about olivia \(U0OLIVIA\)/;
    for (const words of [
      "olivia",
      "@olivia",
      "OLIVIA",
      "<@U0OLIVIA>",
      "<@U0OLIVIA|olivia>",
      "U0OLIVIA",
    ]) {
      const answers = () =>
        ada.seesChannel("random").messages.filter((message) => found.test(wordsOf(message)));
      const before = answers().length;
      await ada.types("random", `/gatehouse audit ${words}`);
      await until(() => answers().length).toBe(before + 1);
      expect(JSON.stringify(answers().at(-1))).toContain("restarted `web-2`");
      expect(JSON.stringify(answers().at(-1))).not.toContain("stop");
    }
    // Who did nothing that is recorded isn't there, and that is said
    await ada.types("random", "/gatehouse audit @nobody");
    await hears(
      ada,
      "random",
      /Gatehouse found nobody called @?nobody in the audit trail\. It looks up the names of 100 people/,
    );
    await ada.types("random", "/gatehouse audit nothing-is-called-so");
    await hears(ada, "random", /The audit trail has no records about nothing-is-called-so\./);
    // What is gone is known by the name that it had
    await ada.types("ops", "/gatehouse freeze for a moment");
    await hears(ada, "ops", /froze all changes/);
    await ada.types("random", "/gatehouse audit ada");
    await hears(ada, "random", /Audit trail about ada \(U0ADA\)[^]*froze/);

    await olivia.types("random", "/gatehouse audit ada");
    await hears(olivia, "random", /Only ada can run \/gatehouse audit/);
  });

  it("asks which of two people, or of a person and a VM, is meant", async () => {
    await using world = await startWorld({
      prepare: ({ edit }) => void edit.addVm({ project: "payments", name: "vera" }),
    });
    const { ada, olivia, vera } = world;
    addPerson(world.slack.workspace, { id: "U0VERA2", name: "vera" });
    world.slack.workspace.channels.get("C01OPS")?.memberIds.add("U0VERA2");
    const other = world.slack.person("U0VERA2");
    await olivia.types("ops", "/vm restart vera");
    await world.ended("vm restart");
    for (const who of [vera, other]) {
      await who.types("ops", "/vm stop web-2");
      await hears(who, "ops", /Only @oncall can stop web-2/);
    }
    await ada.types("random", "/gatehouse audit vera");
    const asked = await hears(
      ada,
      "random",
      /vera can be 3 things in the audit trail\. Which one\?/,
    );
    expect(wordsOf(asked)).toContain("[vera (vm)] [vera (U0VERA2)] [vera (U0VERA)]");
    await ada.presses("vera (U0VERA)", { in: asked.ts });
    await hears(ada, "random", /Audit trail about vera \(U0VERA\)[^]*was refused vm stop of web-2/);
    await ada.presses("vera (vm)", { in: asked.ts });
    await hears(ada, "random", /Audit trail about vera \(vm-\w+\)[^]*olivia restarted vera/);
    await ada.types("random", "/gatehouse audit @vera");
    const people = await hears(ada, "random", /@vera can be 2 things/);
    expect(wordsOf(people)).not.toContain("(vm)");
  });
});
