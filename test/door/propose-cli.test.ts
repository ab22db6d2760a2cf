import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { hash } from "node:crypto";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { runCompletion, runPropose, runToken } from "../../src/start/propose-cli.ts";
import { hears } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { deployJob, deployPolicy, doorEnv, tokens } from "./deploy-job.ts";

const startDoor = (more = "") => startWorld({ env: doorEnv, policy: deployPolicy(more) });

/** As typed, by the job of these tests or another. */
function terminal(url: string, token: string = tokens[0]) {
  const said: string[] = [];
  const write = (text: string) => void said.push(text);
  const at = { door: () => ({ url, token }), write };
  return {
    said,
    async proposes(words: readonly string[]) {
      const code = await runPropose(words, at);
      return { code, said: said.splice(0).join("") };
    },
    async completes(...words: string[]) {
      const programs = ["doctor", "propose"];
      await runCompletion(words, { ...at, main: "/opt/o'clock/gatehouse.mjs", programs });
      return said.splice(0).join("");
    },
  };
}

const words = ["vm snapshot db-1 before-deploy", "--reason", "release 42"];

async function cardOf(world: TestWorld) {
  return (await hears(world.olivia, "ops", /deploy proposes/)).ts;
}

describe("propose in a terminal", () => {
  it("prints each state on a line, and ends with 0 once it is done", async () => {
    await using world = await startDoor();
    const { proposes, said } = terminal(deployJob(world).url());
    const ending = proposes([...words, "--wait", "30s"]);
    const card = await cardOf(world);
    expect(said).toEqual([
      expect.stringMatching(/^open: p-\w+ waits for someone to run it, until 20\d\d-.*Z\n$/),
    ]);
    await world.olivia.presses("Run", { in: card });
    const { code, said: all } = await ending;
    expect(code).toBe(0);
    expect(all).toMatch(/^open: .*\n(\w+: .*\n)*done: Took a snapshot of db-1 .*\(olivia\)\n$/);
    expect(await world.store.recentIds({}, 10)).toHaveLength(1);
  });

  it("ends with 0 at once where it doesn't wait, and with 8 where the wait is over", async () => {
    await using world = await startDoor();
    const { proposes } = terminal(deployJob(world).url());
    expect(await proposes(words)).toMatchObject({
      code: 0,
      said: expect.stringMatching(/^open: /),
    });
    expect(await proposes([...words, "--wait", "1s"])).toMatchObject({ code: 8 });
  });

  it("has a code for each other end: 4 dismissed, 5 expired, 6 failed, 7 unknown", async () => {
    await using world = await startDoor("    expires: 6s\n");
    const { proposes } = terminal(deployJob(world).url());
    const dismissed = proposes([...words, "--wait", "30s"]);
    await world.olivia.presses("Dismiss", { in: await cardOf(world) });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await world.olivia.submits({ Reason: "not today" });
    expect(await dismissed).toMatchObject({
      code: 4,
      said: expect.stringMatching(/dismissed: not today \(olivia\)\n$/),
    });
    const send = "POST /v1/vms/vm-payments-db-1/snapshots";
    for (const [weather, code] of [
      [{ match: send, status: 422 }, 6],
      [{ match: send, lost: "after" as const }, 7],
    ] as const) {
      world.compute.weather({ ...weather, times: 1 });
      const ending = proposes([
        "vm",
        "snapshot",
        "db-1",
        `n-${code}`,
        ...words.slice(1),
        "--wait",
        "30s",
      ]);
      const card = await hears(world.olivia, "ops", new RegExp(`n-${code}[^]*\\[Run\\]`));
      await world.olivia.presses("Run", { in: card.ts });
      expect(await ending).toMatchObject({ code });
    }
    expect(await proposes([...words, "--wait", "20s"])).toMatchObject({
      code: 5,
      said: expect.stringMatching(/expired: no one ran it in time\n$/),
    });
  }, 60_000);

  it("makes one proposal, though the answer to it was lost and it is sent again", async () => {
    await using world = await startDoor();
    const door = deployJob(world).url();
    let lost = 0;
    const pass = async (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = "GET", headers, url = "" } = request;
      const { authorization = "", "idempotency-key": key = "" } = headers;
      const answer = await fetch(new URL(url, door), {
        method,
        headers: { authorization, "idempotency-key": String(key) },
        body: Buffer.concat(chunks),
      });
      lost += 1;
      if (lost === 1) response.destroy();
      else response.writeHead(answer.status).end(await answer.text());
    };
    const proxy = createServer((request, response) => void pass(request, response));
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const { port } = proxy.address() as AddressInfo;
    const ended = await terminal(`http://127.0.0.1:${port}`).proposes(words);
    proxy.close();
    expect([lost, ended.code]).toEqual([2, 0]);
    expect(await world.client.keys(world.key("proposal", "*"))).toHaveLength(1);
  });

  it("says what is wrong and ends with 1, or with 64 and its usage", async () => {
    await using world = await startDoor();
    const url = deployJob(world).url();
    expect(await terminal(url).proposes(["vm stop web-1", "--reason", "why"])).toEqual({
      code: 1,
      said: "deploy may not propose /vm stop.\n`services.deploy.propose` in gatehouse.yml says what it may.\n",
    });
    expect(await terminal(url, "fake-token-three").proposes(words)).toEqual({
      code: 1,
      said: "Unauthorized\n",
    });
    for (const wrong of [
      [],
      ["vm snapshot db-1"],
      [...words, "--wait", "soon"],
      [...words, "--no"],
    ])
      expect(await terminal(url).proposes(wrong)).toMatchObject({
        code: 64,
        said: expect.stringContaining("usage: node gatehouse.mjs propose"),
      });
  });
});

describe("token", () => {
  it("is new each time, with the hash that lets it in", async () => {
    const made: string[] = [];
    for (const _ of [1, 2]) expect(await runToken([], (text) => void made.push(text))).toBe(0);
    expect(made[0]).not.toBe(made[1]);
    const [, token = "", line] =
      /^token: (\S{43})\nin gatehouse.yml: (\S+)\n$/.exec(made[0] ?? "") ?? [];
    expect(line).toBe(`"sha256:${hash("sha256", token)}"`);
  });
});

describe("completion", () => {
  it("is a function for bash and zsh that asks Gatehouse what may follow", async () => {
    const { completes } = terminal("http://127.0.0.1:1");
    for (const shell of ["bash", "zsh"])
      expect(await completes(shell)).toMatch(
        /^gatehouse\(\) \{ node '\/opt\/o'\\''clock\/gatehouse\.mjs' "\$@"; \}\n_gatehouse\(\) \{/,
      );
    expect(await completes("fish")).toContain("usage: node gatehouse.mjs completion");
    expect(await completes("words")).toBe("doctor\npropose\n");
    expect(await completes("words", "propose")).toBe("vm\nproject\ngatehouse\n");
    expect((await completes("words", "propose", "vm")).split("\n")).toContain("snapshot");
    // No door: the flags alone
    expect(await completes("words", "propose", "vm", "restart")).toBe("--reason\n--wait\n--key\n");
    expect(await completes("words", "doctor")).toBe("\n");
  });
});
