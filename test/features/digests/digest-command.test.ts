import { describe, expect, it } from "vitest";
import { commandsWith } from "../../../src/features/define-feature.ts";
import { digests } from "../../../src/features/digests/index.ts";
import { parseCommand } from "../../../src/registry/parse.ts";
import { person } from "../../core/permit/sample.ts";
import { startReading } from "../../commands/reading.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { policyWith, startWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";
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

describe("the time zone of a digest", () => {
  const turnedOn = async (words: string, timeZone?: string) => {
    await using at = await startReading({
      now: () => now,
      person: { ...person("U09ADMIN"), ...(timeZone === undefined ? {} : { timeZone }) },
    });
    return shownText(await at.reads(`gatehouse digest on ${words}`));
  };

  it("is that of its abbreviation, which the answer explains", async () => {
    expect(await turnedOn("09:00 CET")).toBe(
      "Done. A digest is posted in <#C01OPS> at 9:00 AM (Paris), daily. Next: Sat, Nov 21, 9:00 AM (Paris).\nCET is Central European time; Gatehouse uses the clocks of Europe/Paris.",
    );
  });

  it("is the asker's own where none is named, and the answer says so", async () => {
    expect(await turnedOn("9am", "America/Chicago")).toBe(
      "Done. A digest is posted in <#C01OPS> at 9:00 AM (Chicago), daily. Next: Fri, Nov 20, 9:00 AM (Chicago).\nThe time zone is America/Chicago, yours in Slack. `/gatehouse digest on 09:00 Europe/Paris` sets another.",
    );
  });

  it("is asked back where it has several meanings, and nothing is set", async () => {
    await expect(turnedOn("9am IST")).rejects.toThrow("IST can be India time");
  });
});

describe("the channel of a digest", () => {
  it("is one that Slack has, by its name or its ID, and no other word", async () => {
    await using world = await startWorld({
      policy: policyWith({ operate: ["S01ONCALL", "U0ADA"] }),
    });
    const answers = (who = world.ada) =>
      who
        .seesChannel("ops")
        .messages.filter(({ ephemeral }) => ephemeral)
        .map(wordsOf);
    const types = async (words: string, said: RegExp, who = world.ada) => {
      await who.types("ops", `/gatehouse digest ${words}`);
      await until(() => answers(who).at(-1)).toMatch(said);
    };
    await types(
      "on 09:00 Paris #status",
      /^Done\. A digest is posted in <#C02STATUS> at 9:00 AM \(Paris\)/,
    );
    await types(
      "on 08:00 UTC C02STATUS",
      /^Done\. A digest is posted in <#C02STATUS> at 8:00 AM \(UTC\)/,
    );
    await types("on 09:00 #nowhere", /^Gatehouse sees no channel #nowhere in Slack\. Nothing/);
    await types("on 09:00 C99NOPE", /^Gatehouse sees no channel C99NOPE in Slack\. Nothing/);
    await types("off #nowhere", /^Gatehouse sees no channel #nowhere in Slack\. Nothing/);
    await types("on 07:00 UTC #ops", /^Done\. .* in <#C01OPS> at 7:00 AM \(UTC\)/, world.olivia);
    await types("off #nowhere", /^Only an administrator/, world.olivia);
    await types("off #status", /^Only an administrator/, world.olivia);
    await types("off #status", /^Done\. Digests for <#C02STATUS> are turned off/);
    const kept = await world.client.hgetall(world.key("digest-schedules"));
    expect(Object.keys(kept).toSorted()).toEqual(["C01OPS", "C02STATUS"]);
  });
});

describe("a handover in a message", () => {
  it("is offered by its own name", async () => {
    await using world = await startWorld();
    await world.olivia.types("ops", "@gatehouse handover");
    await hears(world.olivia, "ops", /\[Run \/gatehouse handover\]$/);
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
