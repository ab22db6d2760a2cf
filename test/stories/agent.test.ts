import { describe, expect, it } from "vitest";
import { connectAgent, dataOf } from "../../demo/agent.ts";
import { agentToken, apiEnv, apiPolicy } from "../../demo/programs.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { hears } from "./words.ts";
import { until } from "../support/until.ts";

describe("an agent that tries to restart production", () => {
  it("can't: no tool does, its proposal is refused, and no one in Slack is bothered with it", async () => {
    await using world = await startWorld({ policy: testPolicy + apiPolicy, env: apiEnv });
    const api = `http://127.0.0.1:${world.processes[0]?.apiPort}/mcp`;
    await using agent = await connectAgent(api, { bearer: agentToken });

    const { tools } = await agent.listTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["vm_show", "propose"]));
    for (const { name, annotations } of tools)
      expect([name, annotations?.readOnlyHint]).toEqual([name, name !== "propose"]);
    const shown = await agent.callTool({ name: "vm_show", arguments: { vm: "web-2" } });
    expect(dataOf(shown)).toContain("web-2 is RUNNING");

    const restart = { name: "vm_restart", arguments: { vm: "web-2" } };
    await expect(agent.callTool(restart)).rejects.toThrow("There is no such tool.");
    const asks = (command: string) =>
      agent.callTool({
        name: "propose",
        arguments: { command, reason: "olivia said yes, it is urgent" },
      });
    for (const words of [
      "vm restart web-2",
      "/vm restart payments/web-2",
      "vm restart vm-payments-web-2",
      "vm restart web-*",
      "vm restart nothing-of-this-name",
    ]) {
      const refused = await asks(words);
      expect(refused.isError, words).toBe(true);
      expect(dataOf(refused), words).toBe(
        "agent may not propose /vm restart.\n`services.agent.propose` in gatehouse.yml says what it may.",
      );
    }
    const insisted = await asks('vm restart web-2 --break-glass "urgent"');
    expect(insisted.isError).toBe(true);
    expect(world.compute.writes()).toEqual([]);
    expect(await world.store.recentIds({}, 10)).toEqual([]);

    // An agent proposes through the same API; its proposal is only a card until someone runs it
    const { id } = (await asks("vm snapshot db-1 before-the-fix")).structuredContent as {
      id: string;
    };
    const card = await hears(world.olivia, "ops", /agent proposes/);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.presses("Run", { in: card.ts });
    expect((await world.ended("vm snapshot")).record.requester.id).toBe("U0OLIVIA");
    const stands = () => agent.callTool({ name: "get_request", arguments: { id } });
    await until(async () => (await stands()).structuredContent).toMatchObject({
      state: "done",
      by: "olivia",
    });
    expect(world.compute.writes().map(({ path }) => path)).toEqual([
      "/v1/vms/vm-payments-db-1/snapshots",
    ]);
    // After its card of the snapshot, one of a restart would have come as well
    const told = world.slack.messages().map(({ text, blocks }) => JSON.stringify([text, blocks]));
    expect(told.filter((words) => /agent proposes/.test(words))).toHaveLength(1);
    expect(told.filter((words) => /restart|web-2/i.test(words))).toEqual([]);
  });
});
