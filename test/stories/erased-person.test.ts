import { describe, expect, it } from "vitest";
import { runAudit } from "../../src/cli/audit.ts";
import { everythingIn, keysWith } from "../support/everything-in.ts";
import { policyWith, startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { hears } from "./words.ts";

const approvals = 'approvals: [{ operations: ["vm.restart"], required: 1 }]\n';

describe("somebody leaves the company", () => {
  it("and is erased while Gatehouse runs, once nothing of theirs is under way", async () => {
    await using world = await startWorld({ policy: policyWith({}, approvals) });
    const { olivia, amir, key, client } = world;
    const everything = () => everythingIn(client, key);
    const audit = async (...words: string[]) => {
      let said = "";
      const access = () => ({
        redisUrl: world.redisUrl,
        namespace: key.namespace,
        dataDir: world.env["DATA_DIR"],
      });
      const code = await runAudit(words, { access, write: (text) => void (said += text) });
      return { code, said };
    };
    const erase = () =>
      audit(
        ..."erase --person U0OLIVIA --name olivia --who ada --why left --name".split(" "),
        "Olivia Ortiz",
      );

    await olivia.types("ops", "/gatehouse subscribe web-*");
    await olivia.types("ops", "/gatehouse digest on 09:00 Europe/Paris");
    await olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    await olivia.types("ops", "/vm restart web-2");
    const card = await hears(amir, "ops", /Waiting for approval/);

    const early = await erase();
    expect(early.code).toBe(2);
    expect(early.said).toMatch(/U0OLIVIA is still active, so nothing is erased now/);
    expect(early.said).toMatch(/the request r-\w+ is under way: deny or cancel it, or come back/);

    await amir.presses("Approve", { in: card.ts });
    await world.ended("vm restart");
    await world.slack.edit.setGroupMembers("oncall", ["vera"]);
    await hears(world.ada, "audit", /vera joined; olivia left/);
    const erased = await until(async () => {
      const { code, said } = await erase();
      return code === 0 ? said : undefined;
    });
    expect(erased).toMatch(
      /^U0OLIVIA is erased-1 now: in \d+ records of the audit trail, and in \d+ other keys\./,
    );
    expect(erased).toContain("backups of Redis, exports, archives");
    expect(keysWith(await everything(), "U0OLIVIA")).toEqual([]);
    const named = [...(await everything())].filter(([name, texts]) =>
      /\bolivia\b/i.test(`${name} ${texts.join(" ")}`),
    );
    expect(named).toEqual([]);
    expect(await until(async () => (await audit("verify")).code)).toBe(0);

    // The others go on, with their history
    await world.vera.types("ops", "/vm restart payments/web-1");
    const next = await hears(amir, "ops", /web-1[^]*Waiting for approval/);
    await amir.presses("Approve", { in: next.ts });
    expect(await world.ended("vm restart")).toMatchObject({ state: "done" });
    await world.ada.types("audit", "/gatehouse audit web-2");
    await hears(world.ada, "audit", /erased-1/);
  });
});
