import { describe, expect, it } from "vitest";
import { verifyAudit } from "../../src/audit/verify.ts";
import { auditOf } from "../requests/asking.ts";
import { startWorld } from "../support/start-world.ts";
import { hears } from "./words.ts";

describe("reading the audit trail in Slack", () => {
  it("is for administrators alone, and who read or exported what stands in it", async () => {
    await using world = await startWorld();
    for (const who of [world.vera, world.olivia, world.amir]) {
      await who.types("random", "/gatehouse audit");
      await hears(who, "random", /You can't run \/gatehouse audit/);
    }
    await world.ada.types("random", "/gatehouse audit");
    await hears(world.ada, "random", /refusal/);
    await world.ada.types("random", "/gatehouse audit web-2");
    await hears(world.ada, "random", /web-2/);
    const sealed = async () =>
      (await verifyAudit({ redis: world.client, key: world.key })).unsealed.count;
    await expect.poll(sealed, { timeout: 10_000 }).toBe(0);
    await world.ada.types("random", "/gatehouse audit verify");
    await hears(world.ada, "random", /The audit trail is intact/);
    await world.ada.types("random", "/gatehouse audit export");
    await hears(world.ada, "random", /file in your direct messages contains \d+ records/);
    const trail = await auditOf(world.client, world.key("audit"));
    const looks = trail.filter(({ what }) => String(what).startsWith("audit-"));
    expect(looks).toMatchObject([
      { what: "audit-read", who: "U0ADA", about: "" },
      { what: "audit-read", who: "U0ADA", about: "web-2" },
      { what: "audit-read", who: "U0ADA", about: "verify" },
      { what: "audit-export", who: "U0ADA", about: "export" },
    ]);
    expect(trail.filter(({ what }) => what === "refusal").map(({ who }) => who)).toEqual([
      "U0VERA",
      "U0OLIVIA",
      "U0AMIR",
    ]);
  });
});
