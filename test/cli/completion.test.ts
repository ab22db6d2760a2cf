import { describe, expect, it } from "vitest";
import { runCompletion } from "../../src/cli/completion.ts";
import { startWorld } from "../support/start-world.ts";
import { apiEnv, deployJob, deployPolicy, tokens } from "../features/proposals/deploy-job.ts";
import { until } from "../support/until.ts";
import { evilNames } from "./evil-names.ts";

/** What the program says for these words with the API at this address; by default none answers. */
async function completes(words: readonly string[], url = "http://127.0.0.1:1"): Promise<string> {
  const said: string[] = [];
  await runCompletion(words, {
    api: () => ({ url, token: tokens[0] }),
    write: (text) => void said.push(text),
    main: "/opt/o'clock/gatehouse.mjs",
    programs: ["doctor", "propose"],
  });
  return said.join("");
}

describe("completion", () => {
  it("is a function for bash and zsh that asks Gatehouse what may follow", async () => {
    for (const shell of ["bash", "zsh"])
      expect(await completes([shell])).toMatch(
        /^gatehouse\(\) \{ node '\/opt\/o'\\''clock\/gatehouse\.mjs' "\$@"; \}\n_gatehouse\(\) \{/,
      );
    expect(await completes(["fish"])).toContain("usage: node gatehouse.mjs completion");
    expect(await completes(["words"])).toBe("doctor\npropose\n");
    expect(await completes(["words", "propose"])).toBe("vm\nproject\ngatehouse\n");
    expect((await completes(["words", "propose", "vm"])).split("\n")).toContain("snapshot");
    // No API: the flags alone
    expect(await completes(["words", "propose", "vm", "restart"])).toBe(
      "--reason\n--wait\n--key\n",
    );
    expect(await completes(["words", "doctor"])).toBe("");
  });

  it("offers the VMs whose names are plain, before the flags", async () => {
    await using world = await startWorld({ env: apiEnv, policy: deployPolicy() });
    for (const [at, vm] of ["vm-payments-web-2", "vm-payments-db-1"].entries())
      world.compute.edit.renameVm({ vm, name: evilNames[at] ?? "" });
    const url = deployJob(world).url();
    const headers = { authorization: `Bearer ${tokens[0]}` };
    const names = async () => (await fetch(`${url}/v1/vms`, { headers })).text();
    await until(names).toContain("`touch made`");
    expect(await completes(["words", "propose", "vm", "restart"], url)).toBe(
      "web-1\n--reason\n--wait\n--key\n",
    );
  });
});
