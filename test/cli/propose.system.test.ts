import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadApiAccess } from "../../src/config/config.ts";
import { proposeExitCodes, proposeUsage, runPropose } from "../../src/cli/propose.ts";
import { root } from "../structure/sources.ts";
import { compileCache } from "../support/compile-cache.ts";
import { hears } from "../stories/words.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { deployJob, deployPolicy, apiEnv, tokens } from "../features/proposals/deploy-job.ts";
import { until } from "../support/until.ts";

const startApi = (more = "") => startWorld({ env: apiEnv, policy: deployPolicy(more) });

/** As typed, by the job of these tests or another. */
function terminal(url: string, token: string = tokens[0]) {
  const said: string[] = [];
  const write = (text: string) => void said.push(text);
  const at = { api: () => ({ url, token }), write };
  return {
    said,
    async proposes(words: readonly string[]) {
      const code = await runPropose(words, at);
      return { code, said: said.splice(0).join("") };
    },
  };
}

/** The program itself, as a shell starts it. */
function started(url: string, more: readonly string[] = [], env = {}) {
  const path = process.env["PATH"];
  const how = {
    env: { ...compileCache, PATH: path, GATEHOUSE_URL: url, GATEHOUSE_TOKEN: tokens[0], ...env },
  };
  const child = execFile(process.execPath, [gatehouse, "propose", ...words, ...more], how);
  const said = { out: "", err: "" };
  child.stdout?.on("data", (text: string) => (said.out += text));
  child.stderr?.on("data", (text: string) => (said.err += text));
  const ended = once(child, "close").then(([code]) => ({ code: Number(code), ...said }));
  return { child, said, ended };
}

const gatehouse = join(root, "gatehouse.mjs");
const why = ["--reason", "release 42"];
const words = ["vm snapshot db-1 before-deploy", ...why];

async function cardOf(world: TestWorld) {
  return (await hears(world.olivia, "ops", /deploy proposes/)).ts;
}

/** A server on a port of its own, until it is closed. */
async function serving(
  answers: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
) {
  const calls: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    calls.push(request);
    void answers(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  /** Resolves with the next call. */
  const asked = () => until(() => calls.splice(0).length).toBeGreaterThan(0);
  return { url: `http://127.0.0.1:${port}`, asked, [Symbol.asyncDispose]: close };
}

/** What comes in, and what the API answers to it. */
async function passed(request: IncomingMessage, api: string): Promise<Response> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { method = "GET", headers, url = "" } = request;
  const { authorization = "", "idempotency-key": key = "" } = headers;
  return fetch(new URL(url, api), {
    method,
    headers: { authorization, ...(key === "" ? {} : { "idempotency-key": String(key) }) },
    ...(method === "GET" ? {} : { body: Buffer.concat(chunks) }),
  });
}

function folder() {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-propose-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

/** How long it took, too. */
async function timed<T>(ending: Promise<T>) {
  const began = performance.now();
  return { ended: await ending, tookMs: performance.now() - began };
}

describe.concurrent("propose in a terminal", () => {
  it("prints each state on a line, and ends with 0 once it is done", async () => {
    await using world = await startApi();
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
    await using world = await startApi();
    const { proposes } = terminal(deployJob(world).url());
    expect(await proposes(words)).toMatchObject({
      code: 0,
      said: expect.stringMatching(/^open: /),
    });
    expect(await proposes([...words, "--wait", "1s"])).toMatchObject({ code: 8 });
  });

  it("has a code for each other end: 4 dismissed, 5 expired, 6 failed, 7 unknown", async () => {
    await using world = await startApi("    expires: 6s\n");
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
      const command = ["vm", "snapshot", "db-1", `n-${code}`];
      const ending = proposes([...command, ...why, "--wait", "30s"]);
      const card = await hears(world.olivia, "ops", new RegExp(`n-${code}[^]*\\[Run\\]`));
      await world.olivia.presses("Run", { in: card.ts });
      expect(await ending).toMatchObject({ code });
    }
    expect(await proposes([...words, "--wait", "20s"])).toMatchObject({
      code: 5,
      said: expect.stringMatching(/expired: no one ran it in time\n$/),
    });
  });

  it("makes one proposal, though the answer to it was lost and it is sent again", async () => {
    await using world = await startApi();
    const api = deployJob(world).url();
    let lost = 0;
    await using proxy = await serving(async (request, response) => {
      const answer = await passed(request, api);
      lost += 1;
      if (lost === 1) response.destroy();
      else response.writeHead(answer.status).end(await answer.text());
    });
    const ended = await terminal(proxy.url).proposes(words);
    expect([lost, ended.code]).toEqual([2, 0]);
    expect(await world.client.keys(world.key("proposal", "*"))).toHaveLength(1);
  });

  it.each<
    [state: string, code: number, meet: (world: TestWorld, card: string) => Promise<unknown>]
  >([
    ["denied", 4, async ({ amir }, card) => amir.presses("Deny", { in: card })],
    ["cancelled", 4, async ({ olivia }, card) => olivia.presses("Cancel", { in: card })],
    [
      "failed",
      6,
      async ({ amir, compute }, card) => {
        compute.weather({ match: "POST /v1/vms/*/stop", goesTo: "ERROR" });
        return amir.presses("Approve", { in: card });
      },
    ],
    [
      "not-applied",
      6,
      async ({ amir, compute }, card) => {
        compute.weather({ match: "POST /v1/vms/*/stop", lost: "before" });
        return amir.presses("Approve", { in: card });
      },
    ],
  ])("ends a request that is %s with %i", async (state, code, meet) => {
    const approvals = 'approvals: [{ operations: ["vm.stop"], required: 1 }]\n';
    const policy = deployPolicy(approvals).replace('"vm.restart"', '"vm.stop"');
    await using world = await startWorld({ env: apiEnv, policy });
    const { proposes } = terminal(deployJob(world).url());
    const ending = proposes(["vm stop web-2", ...why, "--wait", "30s"]);
    await world.olivia.presses("Run", { in: await cardOf(world) });
    const asking = await hears(world.olivia, "ops", /Stop web-2[^]*Waiting for approval/);
    await meet(world, asking.ts);
    const { code: ended, said } = await ending;
    expect([said.split("\n").at(-2)?.split(":")[0], ended]).toEqual([state, code]);
  });

  it("is over when its wait is: no try and no pause goes beyond it", async () => {
    const waiting = [...words, "--wait", "1s"];
    const gone = await serving(() => undefined);
    await gone[Symbol.asyncDispose]();
    const dead = await timed(terminal(gone.url).proposes(waiting));
    expect(dead.ended).toEqual({
      code: 1,
      said: expect.stringMatching(/^No API answers at /),
    });
    let calls = 0;
    await using busy = await serving((_, response) => {
      calls += 1;
      response.writeHead(429, { "retry-after": "50" }).end('{"title":"Too many calls."}');
    });
    const told = await timed(terminal(busy.url).proposes(waiting));
    expect(told.ended).toEqual({ code: 1, said: "Too many calls.\n" });
    // Nor is it told twice
    expect(calls).toBe(1);
    await using frozen = await serving(() => undefined);
    const hung = await timed(terminal(frozen.url).proposes(waiting));
    expect(hung.ended.code).toBe(1);
    for (const { tookMs } of [dead, told, hung]) expect(tookMs).toBeLessThan(4_000);
  });

  it("asks once where too many of its proposals are open, since a pause changes nothing", async () => {
    await using world = await startApi("    limits: { openProposals: 1 }\n");
    const job = deployJob(world);
    await job.proposes("vm snapshot db-1 first");
    const { ended, tookMs } = await timed(
      terminal(job.url()).proposes([...words, "--wait", "30s"]),
    );
    expect(ended).toEqual({
      code: 1,
      said: expect.stringMatching(/^1 of your proposals are open/),
    });
    expect(tookMs).toBeLessThan(4_000);
  });

  it("follows what was proposed until its wait is over, however often the API is away", async () => {
    await using world = await startApi();
    const api = deployJob(world).url();
    let away = 0;
    await using proxy = await serving(async (request, response) => {
      const isFollowing = request.method === "GET";
      if (isFollowing && away > 0) {
        away -= 1;
        response.destroy();
        return;
      }
      const answer = await passed(request, api);
      response.writeHead(answer.status).end(await answer.text());
    });
    const { proposes } = terminal(proxy.url);
    away = 2;
    const ending = proposes([...words, "--wait", "30s"]);
    await world.olivia.presses("Run", { in: await cardOf(world) });
    expect(await ending).toMatchObject({ code: 0 });
    away = Infinity;
    const { ended, tookMs } = await timed(proposes([...words, "--wait", "3s"]));
    expect(ended).toEqual({
      code: 8,
      said: expect.stringMatching(/^open: .*\nNo API answers at .*\n/),
    });
    expect(tookMs).toBeGreaterThan(2_900);
    expect(tookMs).toBeLessThan(6_000);
  });

  it("ends with 8 where the API refuses to say more of what was proposed: it stands", async () => {
    await using world = await startApi();
    const api = deployJob(world).url();
    await using proxy = await serving(async (request, response) => {
      if (request.method === "GET") request.headers.authorization = "Bearer revoked";
      const answer = await passed(request, api);
      response.writeHead(answer.status).end(await answer.text());
    });
    expect(await terminal(proxy.url).proposes([...words, "--wait", "30s"])).toEqual({
      code: 8,
      said: expect.stringMatching(
        /^open: .*\nThe token in GATEHOUSE_TOKEN isn't one of any service in gatehouse\.yml\.\n(.*\n)?p-\w+ stays open in Slack/,
      ),
    });
  });

  it.each([
    ["a page", "<html>Welcome</html>"],
    ["null", "null"],
    ["another JSON", '{"title":"Blog","state":"ok"}'],
  ])("says that it isn't the API where %s answers", async (_, body) => {
    await using elsewhere = await serving((_request, response) => void response.end(body));
    expect(await terminal(elsewhere.url).proposes(words)).toEqual({
      code: 1,
      said: `No API answers at ${elsewhere.url}: what is there answered 200.\nCheck GATEHOUSE_URL.\n`,
    });
  });

  it("follows no redirect, and tells the token to nobody else", async () => {
    let reached = 0;
    await using elsewhere = await serving((_request, response) => {
      reached += 1;
      response.end("{}");
    });
    for (const status of [301, 302, 307, 308]) {
      await using api = await serving(
        (_request, response) =>
          void response.writeHead(status, { location: `${elsewhere.url}/v1/proposals` }).end(),
      );
      expect(await terminal(api.url).proposes(words)).toEqual({
        code: 1,
        said: expect.stringMatching(/answers with a redirect \(\d+\), which isn't followed/),
      });
    }
    expect(reached).toBe(0);
  });

  it("says each thing on one line, whatever others have written into it", async () => {
    const state = {
      id: "p-1",
      state: "dismissed",
      final: true,
      command: "vm snapshot db-1",
      reason: "release 42",
      expiresAt: "2026-11-25T14:30:00.000Z",
      by: "olivia\n::set-output name=ok::1\u001b[2J",
      why: "no\r\n::error::injected",
    };
    await using api = await serving(
      (_request, response) => void response.end(JSON.stringify(state)),
    );
    const { said, code } = await terminal(api.url).proposes([...words, "--wait", "5s"]);
    expect(code).toBe(4);
    expect(said.split("\n")).toHaveLength(2);
    for (const obeyed of ["\u001b", "\r"]) expect(said).not.toContain(obeyed);
    await using refusing = await serving(
      (_request, response) =>
        void response
          .writeHead(403)
          .end(JSON.stringify({ title: "a\n::warning::b", detail: "c\n::d::" })),
    );
    const refused = await terminal(refusing.url).proposes(words);
    expect(refused.said.split("\n")).toHaveLength(3);
  });

  it("is no command to the program that reads the log, and no state is more than a word", async () => {
    await using api = await serving(
      (_request, response) =>
        void response
          .writeHead(403)
          .end(JSON.stringify({ title: " ::error::a ##vso[b]", detail: "::c" })),
    );
    const { said } = await terminal(api.url).proposes(words);
    expect(said).not.toMatch(/^\s*::|##\w*\[/m);
    const state = {
      id: "p-1",
      state: "constructor",
      final: true,
      command: "",
      reason: "",
      expiresAt: "2026-11-25T14:30:00.000Z",
    };
    await using odd = await serving(
      (_request, response) => void response.end(JSON.stringify(state)),
    );
    expect(await terminal(odd.url).proposes([...words, "--wait", "5s"])).toMatchObject({ code: 8 });
  });

  it("pauses between two calls, whatever it is told", async () => {
    const open = {
      id: "p-1",
      state: "open",
      final: false,
      command: "",
      reason: "",
      expiresAt: "2026-11-25T14:30:00.000Z",
    };
    let calls = 0;
    // It doesn't wait where it is asked to
    await using hasty = await serving((_request, response) => {
      calls += 1;
      response.end(JSON.stringify(open));
    });
    expect(await terminal(hasty.url).proposes([...words, "--wait", "3s"])).toMatchObject({
      code: 8,
    });
    expect(calls).toBeLessThan(6);
    calls = 0;
    await using past = await serving((_request, response) => {
      calls += 1;
      response.writeHead(503, { "retry-after": "-5" }).end("{}");
    });
    expect(await terminal(past.url).proposes([...words, "--wait", "3s"])).toMatchObject({
      code: 1,
    });
    expect(calls).toBeLessThan(6);
  });

  it("takes no answer for the API's that isn't, or that has no end", async () => {
    const page = "x".repeat(1024 * 1024);
    await using endless = await serving(async (_request, response) => {
      for (let n = 0; n < 64 && !response.destroyed; n++) response.write(page);
      response.end();
    });
    const { said, code } = await terminal(endless.url).proposes(words);
    expect([code, said]).toEqual([1, expect.stringMatching(/^No API answers at /)]);
    await using odd = await serving(
      (_request, response) =>
        void response.end(
          JSON.stringify({
            id: "../../v1/vms",
            state: "open",
            final: false,
            command: "",
            reason: "",
            expiresAt: "2026-11-25T14:30:00.000Z",
          }),
        ),
    );
    expect(await terminal(odd.url).proposes(words)).toMatchObject({ code: 1 });
    expect((await terminal(odd.url).proposes([...words, "--key", "a\nb"])).code).toBe(64);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("says on %s what stands, and ends with %i", async (signal, code) => {
    await using hanging = await serving(() => undefined);
    const early = started(hanging.url, ["--key", "ci-42"]);
    await hanging.asked();
    early.child.kill(signal);
    expect(await early.ended).toEqual({
      code,
      out: "",
      err: expect.stringMatching(
        /^The proposal may have been made\. The same command with --key ci-42 asks again without making a second\.\n$/,
      ),
    });

    const gone = await serving(() => undefined);
    await gone[Symbol.asyncDispose]();
    const unreached = started(gone.url);
    await until(() => unreached.said.err).toContain("Trying again");
    unreached.child.kill(signal);
    expect(await unreached.ended).toEqual({
      code,
      out: "",
      err: expect.stringMatching(/^No API answers at .*\nNothing was sent\.\n$/),
    });

    await using world = await startApi();
    const open = started(deployJob(world).url(), ["--wait", "30s", "--key", "ci-43"]);
    await until(() => open.said.out).toMatch(/^open: /);
    open.child.kill(signal);
    expect(await open.ended).toMatchObject({
      code,
      err: expect.stringMatching(
        /^p-\w+ stays open in Slack until 20.*Z; nothing was taken back\. The same command with --key ci-43 follows it\.( Its card: https:\S+)?\n$/,
      ),
    });
    // As it says: the same proposal, which stands
    const again = started(deployJob(world).url(), ["--wait", "30s", "--key", "ci-43"]);
    await world.olivia.presses("Run", { in: await cardOf(world) });
    expect(await again.ended).toMatchObject({ code: 0, err: "" });
    expect(await world.client.keys(world.key("proposal", "*"))).toHaveLength(1);
  });

  it("says what stands when its wait is over, or when the API says no more of it", async () => {
    await using world = await startApi();
    const api = deployJob(world).url();
    const stands =
      /p-\w+ stays open in Slack until 20.*; nothing was taken back\. .*--key \S+ follows it\.( Its card: \S+)?\n$/;
    expect(await started(api, ["--wait", "2s"]).ended).toEqual({
      code: 8,
      out: expect.stringMatching(/^open: .*\n$/),
      err: expect.stringMatching(
        /^Still open after 2 s\. .* Its card: https:\/\/\S+\/archives\/C01OPS\/p\d+\n$/,
      ),
    });
    await using proxy = await serving(async (request, response) => {
      if (request.method === "GET") response.destroy();
      else {
        const answer = await passed(request, api);
        response.writeHead(answer.status).end(await answer.text());
      }
    });
    const { code, said } = await terminal(proxy.url).proposes([...words, "--wait", "1s"]);
    expect([code, said]).toEqual([8, expect.stringMatching(stands)]);
  });

  it("says that it may have been made where the answer was lost, and only there", async () => {
    const waiting = [...words, "--wait", "1s", "--key", "ci-42"];
    const unclear = "The proposal may have been made. The same command with --key ci-42";
    await using lost = await serving((_, response) => void response.destroy());
    expect((await terminal(lost.url).proposes(waiting)).said).toContain(unclear);
    await using broken = await serving((_, response) => void response.writeHead(502).end());
    expect((await terminal(broken.url).proposes(waiting)).said).toContain(unclear);
    const gone = await serving(() => undefined);
    await gone[Symbol.asyncDispose]();
    await using refusing = await serving(
      (_, response) => void response.writeHead(403).end('{"title":"It may not."}'),
    );
    for (const { url } of [gone, refusing])
      expect((await terminal(url).proposes(waiting)).said).not.toContain("may have been");
  });

  it("tells at once that no API answers, and why, and tries again", async () => {
    const gone = await serving(() => undefined);
    await gone[Symbol.asyncDispose]();
    const { ended, said } = started(gone.url, ["--wait", "5s"]);
    await until(() => said.err).toMatch(
      /^No API answers at http:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED 127\.0\.0\.1:\d+\. Trying again for up to 5 s\.\n/,
    );
    const { code, out, err } = await ended;
    // Once, however often it was tried
    expect([code, err.match(/Trying again/g)]).toEqual([1, ["Trying again"]]);
    expect(out).toMatch(/^No API answers at .*\nCheck GATEHOUSE_URL\.\n$/);
    expect(`${out}${err}`).not.toContain(tokens[0]);

    await using slow = await serving(() => undefined);
    const waiting = started(slow.url, ["--wait", "6s"]);
    await slow.asked();
    await until(() => waiting.said.err).toMatch(/^No answer from .* yet/);
    waiting.child.kill("SIGINT");
    await waiting.ended;
  });

  it("names the variable or the file whose token no service has", async () => {
    await using world = await startApi();
    const url = deployJob(world).url();
    const wrong = "test-token-of-nobody";
    const refused = await started(url, [], { GATEHOUSE_TOKEN: wrong }).ended;
    expect([refused.code, refused.out]).toEqual([
      1,
      expect.stringMatching(
        /^The token in GATEHOUSE_TOKEN isn't one of any service in gatehouse\.yml\.\n/,
      ),
    ]);
    using here = folder();
    const file = join(here.path, "token");
    writeFileSync(file, wrong);
    const env = { GATEHOUSE_TOKEN: "", GATEHOUSE_TOKEN_FILE: file };
    const { out } = await started(url, [], env).ended;
    expect(out).toContain(`The token in ${file} (GATEHOUSE_TOKEN_FILE) isn't one of any service`);
    expect(`${refused.out}${out}`).not.toContain(wrong);
  });

  it("says in a sentence what is missing, then its usage, and sends nothing", async () => {
    let calls = 0;
    await using api = await serving(() => void (calls += 1));
    for (const [typed, missing] of [
      [["vm restart web-2"], "--reason is missing"],
      [["vm restart web-2", "--reason", " "], "--reason is missing"],
      [why, "The command is missing"],
      [["", ...why], "The command is missing"],
      [[], "The command is missing"],
    ] as const) {
      const { code, said } = await terminal(api.url).proposes(typed);
      const [first, second] = said.split("\n");
      expect([code, first]).toEqual([64, expect.stringContaining(missing)]);
      expect(second).toMatch(/^usage: node gatehouse\.mjs propose/);
    }
    expect(calls).toBe(0);
  });

  it("has each of its exit codes in its usage and in docs/automation.md", () => {
    const codes = Object.values(proposeExitCodes).toSorted((a, b) => a - b);
    const [, listed = ""] = proposeUsage.split("exit codes\n");
    const inUsage = [...listed.matchAll(/^ {2}(\d+)|, (\d+) by/gm)];
    expect(inUsage.map(([, first, second]) => Number(first ?? second))).toEqual(codes);
    const docs = readFileSync(join(root, "docs/automation.md"), "utf8");
    const [, table = ""] = /\| exit code .*\n\|[- |]+\n((?:\|.*\n)+)/.exec(docs) ?? [];
    const inDocs = table
      .matchAll(/^\| ([\d, ]+?) +\|/gm)
      .flatMap(([, cell = ""]) => cell.split(", "));
    expect([...inDocs].map(Number)).toEqual(codes);
  });

  it("ends with 78 where a variable is wrong, and names it", async () => {
    const { code, err } = await started("ftp://gatehouse.example").ended;
    expect([code, err]).toEqual([78, expect.stringMatching(/GATEHOUSE_URL: must be/)]);
  });

  it("prints no token that isn't one", () => {
    for (const token of ["test-token\nanother-line", "test token", "tëst", "test\ttoken"]) {
      const read = () =>
        loadApiAccess({ GATEHOUSE_URL: "https://gatehouse.example", GATEHOUSE_TOKEN: token });
      expect(read).toThrow(/GATEHOUSE_TOKEN: must be a token alone/);
      expect(read).not.toThrow(/test.token/s);
    }
    for (const url of [
      "https://me:secret@gatehouse.example",
      "http://gatehouse.example",
      "https://gatehouse.example/?a",
    ])
      expect(() => loadApiAccess({ GATEHOUSE_URL: url, GATEHOUSE_TOKEN: "test-token" })).toThrow(
        /GATEHOUSE_URL: (?!.*:secret)/,
      );
  });

  it("keeps the path of its address, for a proxy that has the API below one", async () => {
    await using world = await startApi();
    const api = deployJob(world).url();
    await using proxy = await serving(async (request, response) => {
      const { url = "" } = request;
      request.url = url.replace(/^\/gatehouse\//, "/");
      const answer = url === request.url ? undefined : await passed(request, api);
      response.writeHead(answer?.status ?? 404).end(await answer?.text());
    });
    for (const end of ["", "/"]) {
      const { proposes } = terminal(`${proxy.url}/gatehouse${end}`);
      expect(await proposes([...words, "--wait", "1s"])).toMatchObject({ code: 8 });
    }
  });

  it("says what is wrong and ends with 1, or with 64 and its usage", async () => {
    await using world = await startApi();
    const url = deployJob(world).url();
    expect(await terminal(url).proposes(["vm stop web-1", "--reason", "why"])).toEqual({
      code: 1,
      said: "deploy may not propose /vm stop.\n`services.deploy.propose` in gatehouse.yml says what it may.\n",
    });
    expect(await terminal(url, "fake-token-three").proposes(words)).toEqual({
      code: 1,
      said: expect.stringMatching(/^The token in GATEHOUSE_TOKEN isn't one of any service /),
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
