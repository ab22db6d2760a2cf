import { describe, expect, it } from "vitest";
import { commandsWith } from "../../../src/features/define-feature.ts";
import { digests } from "../../../src/features/digests/index.ts";
import { parseCommand } from "../../../src/registry/parse.ts";
import { person } from "../../core/permit/sample.ts";
import { startReading } from "../../commands/reading.ts";
import { shownText } from "../../commands/shown-text.ts";

const now = Date.parse("2026-11-20T12:00:00Z");

describe("/gatehouse digest", () => {
  it("is turned on with the given settings and defaults, and off again", async () => {
    await using at = await startReading({ now: () => now });
    expect(shownText(await at.reads("gatehouse digest"))).toMatch(
      /^No digest is set up for <#C01OPS>\./,
    );
    expect(shownText(await at.reads("gatehouse digest on 08:30 mon-fri"))).toBe(
      "Done. A digest is posted in <#C01OPS> at 8:30 AM (UTC), mon-fri. Next: Mon, Nov 23, 8:30 AM (UTC).\nThe time zone is UTC. `/gatehouse digest on 08:30 Europe/Paris` sets another.",
    );
    expect(shownText(await at.reads("gatehouse digest off"))).toBe(
      "Done. Digests for <#C01OPS> are turned off.",
    );
    expect(shownText(await at.reads("gatehouse digest off"))).toBe(
      "No digest is set up for <#C01OPS>.",
    );
  });

  it("is posted now if possible, and otherwise says why not", async () => {
    await using at = await startReading();
    expect(shownText(await at.reads("gatehouse digest now"))).toBe("The digest is in <#C01OPS>.");
    expect(at.told).toEqual([expect.stringMatching(/^C01OPS: Digest: /)]);
    await using closed = await startReading({ post: async () => "not_in_channel" });
    expect(shownText(await closed.reads("gatehouse digest now"))).toMatch(
      /^Can't post in <#C01OPS> \(not_in_channel\)\./,
    );
  });

  it("is for administrators where it is about another channel", async () => {
    await using at = await startReading();
    const words = "gatehouse digest on 09:00 C02STATUS";
    await expect(at.reads(words)).rejects.toThrow("Only an administrator");
    await using admin = await startReading({ person: person("U09ADMIN") });
    expect(shownText(await admin.reads(words))).toMatch(
      /^Done\. A digest is posted in <#C02STATUS>/,
    );
  });
});

describe("a handover", () => {
  const commands = commandsWith([digests]);

  it.each([
    ["gatehouse handover", { action: "handover" }],
    ["handover web-2 is being migrated", { action: "handover", when: "web-2 is being migrated" }],
  ])("is a digest in other words: %s", (text, input) => {
    expect(parseCommand(text, commands)).toMatchObject({
      command: { name: "gatehouse digest" },
      input,
    });
  });

  it("is still no digest when it is misspelt", () => {
    expect(parseCommand("gatehouse handovr careful", commands)).toMatchObject({
      refusal: {
        text: "/gatehouse has no handovr.",
        hint: "Did you mean `/gatehouse digest handover careful`?",
        near: [
          {
            command: { name: "gatehouse digest" },
            input: { action: "handover", when: "careful" },
          },
        ],
      },
    });
  });
});
