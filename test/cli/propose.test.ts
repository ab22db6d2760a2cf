import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hash } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeTokenSource, loadApiAccess } from "../../src/config/api-access.ts";
import {
  proposeExitCodes,
  type ProposePace,
  proposeUsage,
  runPropose,
} from "../../src/cli/propose.ts";
import { stretchDeadlines } from "../../src/deadline.ts";
import { root } from "../structure/sources.ts";
import { hears } from "../stories/words.ts";
import { policyWith, shortDeadlines, startWorld, type TestWorld } from "../support/start-world.ts";
import { deployJob, apiEnv, tokens } from "../features/proposals/deploy-job.ts";
import { until } from "../support/until.ts";

/** Tokens of services in these tests. They are nobody's secrets. */
const [deploy] = tokens;
const [brief, single, unknownToken] = ["fake-token-brief", "fake-token-single", "fake-token-none"];

const service = (name: string, token: string, operation: string, more: string) => `  ${name}:
    tokens: ["sha256:${hash("sha256", token)}"]
    view: ["payments"]
    propose: [{ operations: ["${operation}"], targets: ["payments/*"] }]
    channel: C01OPS
${more}`;

const startApi = (timing?: Readonly<Record<string, string>>, pace = {}) =>
  startWorld({
    env: apiEnv,
    pace,
    policy: policyWith(
      timing ? { timing } : {},
      [
        'approvals: [{ operations: ["vm.stop"], required: 1 }]\nservices:\n',
        service(
          "deploy",
          deploy,
          'vm.snapshot", "vm.stop',
          "    limits: { openProposals: 100, requestsPerMinute: 10000 }\n",
        ),
        service("brief", brief, "vm.snapshot", "    expires: 1s\n"),
        service("single", single, "vm.snapshot", "    limits: { openProposals: 1 }\n"),
      ].join(""),
    ),
  });

/** For tests in which something is tried again, and that aren't about when. */
const soon: ProposePace = { pauseMs: 100, slowMs: 600_000 };

/** As typed, by the job of these tests or another. */
function terminal(url: string, token: string = deploy, tokenSource = "GATEHOUSE_TOKEN") {
  const said: string[] = [];
  const complaints: string[] = [];
  let tell = () => "";
  const write = (text: string) => void said.push(text);
  const at = { api: () => ({ url, token }), tokenSource, write };
  return {
    said,
    /** On standard error, where the terminal has one. */
    complaint: () => complaints.join(""),
    /** What a signal would make it say. */
    lastWords: () => tell(),
    async proposes(words: readonly string[], pace?: ProposePace) {
      const code = await runPropose(words, { ...at, pace });
      return { code, said: said.splice(0).join("") };
    },
    async proposesAside(words: readonly string[], pace?: ProposePace) {
      const complain = (text: string) => void complaints.push(text);
      const onSignal = (next: () => string) => void (tell = next);
      const code = await runPropose(words, { ...at, complain, onSignal, pace });
      return { code, said: said.splice(0).join(""), complaint: complaints.join("") };
    },
  };
}

const why = ["--reason", "release 42"];
const words = ["vm snapshot db-1 before-deploy", ...why];
/** As long as it takes: it ends by itself. */
const waiting = ["--wait", "10m"];

/** A server on a port of its own, until it is closed. */
async function serving(
  answers: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
  on = 0,
) {
  const calls: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    calls.push(request);
    void answers(request, response);
  });
  server.listen(on, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  /** Resolves with the next call. */
  const asked = () => until(() => calls.splice(0).length).toBeGreaterThan(0);
  return { url: `http://127.0.0.1:${port}`, port, asked, [Symbol.asyncDispose]: close };
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

/** An address where nothing listens. */
async function nowhere() {
  const gone = await serving(() => undefined);
  await gone[Symbol.asyncDispose]();
  return gone;
}

describe("propose in a terminal", () => {
  let world: TestWorld;
  let api: string;
  beforeAll(async () => {
    world = await startApi(undefined, { inventoryRefreshMs: 500 });
    api = deployJob(world).url();
  });
  afterAll(() => world.close());

  const cardOf = async (name: string) =>
    (await hears(world.olivia, "ops", new RegExp(`${name}[^]*\\[Run\\]`))).ts;
  const snapshot = (name: string) => [`vm snapshot db-1 ${name}`, ...why];

  it("prints each state on a line, and ends with 0 once it is done", async () => {
    const { proposes, said } = terminal(api);
    const ending = proposes([...snapshot("printed"), ...waiting]);
    const card = await cardOf("printed");
    await until(() => said.length).toBe(1);
    expect(said).toEqual([
      expect.stringMatching(/^open: p-\w+ waits for someone to run it, until 20\d\d-.*Z\n$/),
    ]);
    await world.olivia.presses("Run", { in: card });
    const { code, said: all } = await ending;
    expect(code).toBe(0);
    expect(all).toMatch(/^open: .*\n(\w+: .*\n)*done: Took a snapshot of db-1 .*\(olivia\)\n$/);
  });

  it("ends with 0 at once where it doesn't wait, and with 8 where the wait is over", async () => {
    const { proposes, proposesAside } = terminal(api);
    const command = [...snapshot("kept-open"), "--key", "ci-41"];
    expect(await proposes(command)).toMatchObject({
      code: 0,
      said: expect.stringMatching(/^open: /),
    });
    await cardOf("kept-open");
    expect(await proposesAside([...command, "--wait", "1s"])).toEqual({
      code: 8,
      said: expect.stringMatching(/^open: .*\n$/),
      complaint: expect.stringMatching(
        /^Still open after 1 s\. p-\w+ stays open in Slack until 20.*; nothing was taken back\. .*--key ci-41 follows it\. Its card: https:\/\/\S+\/archives\/C01OPS\/p\d+\n$/,
      ),
    });
  });

  it("ends with 4 once it is dismissed", async () => {
    const ending = terminal(api).proposes([...snapshot("dismissed"), ...waiting]);
    await world.olivia.presses("Dismiss", { in: await cardOf("dismissed") });
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await world.olivia.submits({ Reason: "not today" });
    expect(await ending).toMatchObject({
      code: 4,
      said: expect.stringMatching(/dismissed: not today \(olivia\)\n$/),
    });
  });

  it("ends with 5 once it has expired", async () => {
    expect(await terminal(api, brief).proposes([...snapshot("expired"), ...waiting])).toMatchObject(
      {
        code: 5,
        said: expect.stringMatching(/expired: no one ran it in time\n$/),
      },
    );
  });

  it("ends with 6 once it is rejected", async () => {
    world.compute.weather({ match: "POST /v1/vms/*/snapshots", status: 422, times: 1 });
    const ending = terminal(api).proposes([...snapshot("rejected"), ...waiting]);
    await world.olivia.presses("Run", { in: await cardOf("rejected") });
    expect(await ending).toMatchObject({ code: 6 });
  });

  it.each<[state: string, code: number, meet: (card: string) => Promise<unknown>]>([
    ["denied", 4, (card) => world.amir.presses("Deny", { in: card })],
    ["cancelled", 4, (card) => world.olivia.presses("Cancel", { in: card })],
    [
      "failed",
      6,
      async (card) => {
        world.compute.weather({ match: "POST /v1/vms/*/stop", goesTo: "ERROR", times: 1 });
        return world.amir.presses("Approve", { in: card });
      },
    ],
  ])("ends a request that is %s with %i", async (state, code, meet) => {
    const name = `to-be-${state}`;
    world.compute.edit.addVm({ project: "payments", name, id: `vm-${name}` });
    const seen = async () => JSON.stringify(await names(api));
    await until(seen).toContain(name);
    const ending = terminal(api).proposes([`vm stop ${name}`, ...why, ...waiting]);
    await world.olivia.presses("Run", { in: await cardOf(name) });
    const asking = new RegExp(`Stop ${name}[^]*Waiting for approval`);
    await meet((await hears(world.olivia, "ops", asking)).ts);
    const { code: ended, said } = await ending;
    expect([said.split("\n").at(-2)?.split(":")[0], ended]).toEqual([state, code]);
  });

  it("makes one proposal, though the answer to it was lost and it is sent again", async () => {
    const proposals = async () => (await world.client.keys(world.key("proposal", "*"))).length;
    const before = await proposals();
    let lost = 0;
    await using proxy = await serving(async (request, response) => {
      const answer = await passed(request, api);
      lost += 1;
      if (lost === 1) response.destroy();
      else response.writeHead(answer.status).end(await answer.text());
    });
    const ended = await terminal(proxy.url).proposes(snapshot("lost-once"), soon);
    expect([lost, ended.code]).toEqual([2, 0]);
    expect(await proposals()).toBe(before + 1);
  });

  it("asks once where too many of its proposals are open, since a pause changes nothing", async () => {
    expect(await terminal(api, single).proposes(snapshot("the-first"))).toMatchObject({ code: 0 });
    let calls = 0;
    await using proxy = await serving(async (request, response) => {
      calls += 1;
      const answer = await passed(request, api);
      response.writeHead(answer.status, [...answer.headers]).end(await answer.text());
    });
    expect(
      await terminal(proxy.url, single).proposes([...snapshot("the-next"), ...waiting]),
    ).toEqual({
      code: 1,
      said: expect.stringMatching(/^1 of your proposals are open/),
    });
    expect(calls).toBe(1);
  });

  it("follows what was proposed until its wait is over, however often the API is away", async () => {
    let away = 2;
    await using proxy = await serving(async (request, response) => {
      if (request.method === "GET" && away > 0) {
        away -= 1;
        response.destroy();
        return;
      }
      const answer = await passed(request, api);
      response.writeHead(answer.status).end(await answer.text());
    });
    const { proposes } = terminal(proxy.url);
    const ending = proposes([...snapshot("followed"), ...waiting], soon);
    await until(() => away).toBe(0);
    await world.olivia.presses("Run", { in: await cardOf("followed") });
    expect(await ending).toMatchObject({ code: 0 });
    away = Infinity;
    // A machine that is so slow that the wait is over before it asks says that it is still open
    expect(await proposes([...snapshot("lost-sight-of"), "--wait", "500ms"], soon)).toEqual({
      code: 8,
      said: expect.stringMatching(
        /^open: .*\n(.*\n)*(No API answers at|Still open after) [^]*nothing was taken back\. .*--key \S+ follows it/,
      ),
    });
  });

  it("ends with 8 where the API refuses to say more of what was proposed: it stands", async () => {
    await using proxy = await serving(async (request, response) => {
      if (request.method === "GET") request.headers.authorization = "Bearer another";
      const answer = await passed(request, api);
      response.writeHead(answer.status).end(await answer.text());
    });
    expect(await terminal(proxy.url).proposes([...snapshot("unknown-token"), ...waiting])).toEqual({
      code: 8,
      said: expect.stringMatching(
        /^open: .*\nThe token in GATEHOUSE_TOKEN isn't one of any service in gatehouse\.yml\.\n(.*\n)?p-\w+ stays open in Slack/,
      ),
    });
  });

  it("says on a signal that what is open stays so, and the same command follows it", async () => {
    const command = [...snapshot("signaled"), ...waiting, "--key", "ci-43"];
    const first = terminal(api);
    const ending = first.proposesAside(command);
    await until(() => first.said.join("")).toMatch(/^open: /);
    expect(first.lastWords()).toMatch(
      /^p-\w+ stays open in Slack until 20.*Z; nothing was taken back\. The same command with --key ci-43 follows it\.( Its card: https:\S+)?\n$/,
    );
    const [id] = /p-\w+/.exec(first.lastWords()) ?? [];
    const again = terminal(api);
    const next = again.proposesAside(command);
    await until(() => again.said.join("")).toContain(`open: ${id} `);
    await world.olivia.presses("Run", { in: await cardOf("signaled") });
    for (const one of [ending, next]) expect(await one).toMatchObject({ code: 0, complaint: "" });
    expect(first.lastWords()).toBe(`${id} has ended: done.\n`);
  });

  it("names the variable or the file whose token no service has", async () => {
    const refused = await terminal(api, unknownToken).proposes(words);
    expect(refused).toEqual({
      code: 1,
      said: expect.stringMatching(
        /^The token in GATEHOUSE_TOKEN isn't one of any service in gatehouse\.yml\.\n/,
      ),
    });
    const source = describeTokenSource({ GATEHOUSE_TOKEN_FILE: "/run/token" });
    const ofFile = await terminal(api, unknownToken, source).proposes(words);
    expect(ofFile.said).toContain(
      "The token in /run/token (GATEHOUSE_TOKEN_FILE) isn't one of any service",
    );
    expect(`${refused.said}${ofFile.said}`).not.toContain(unknownToken);
  });

  it("keeps the path of its address, for a proxy that has the API below one", async () => {
    await using proxy = await serving(async (request, response) => {
      const { url = "" } = request;
      request.url = url.replace(/^\/gatehouse\//, "/");
      const answer = url === request.url ? undefined : await passed(request, api);
      response.writeHead(answer?.status ?? 404).end(await answer?.text());
    });
    for (const end of ["", "/"]) {
      const { proposes } = terminal(`${proxy.url}/gatehouse${end}`);
      expect(await proposes(snapshot(`below${end.length}`))).toMatchObject({ code: 0 });
    }
  });

  it("says what is wrong and ends with 1, or with 64 and its usage", async () => {
    expect(await terminal(api).proposes(["vm start web-1", ...why])).toEqual({
      code: 1,
      said: "deploy may not propose /vm start.\n`services.deploy.propose` in gatehouse.yml says what it may.\n",
    });
    for (const wrong of [
      [],
      ["vm snapshot db-1"],
      [...words, "--wait", "soon"],
      [...words, "--no"],
      [...words, "--key", "a\nb"],
    ])
      expect(await terminal(api).proposes(wrong)).toMatchObject({
        code: 64,
        said: expect.stringContaining("usage: node gatehouse.mjs propose"),
      });
  });
});

describe("propose, where a change ends in doubt", () => {
  it("ends with 7 where its outcome is unknown, and with 6 where it was not applied", async () => {
    await using world = await startApi(shortDeadlines.timing, shortDeadlines.pace);
    const api = deployJob(world).url();
    const rows = [
      ["vm snapshot db-1 n-7", "POST /v1/vms/*/snapshots", "after", 7, "unknown"],
      ["vm stop web-2", "POST /v1/vms/*/stop", "before", 6, "not-applied"],
    ] as const;
    const endings = rows.map(async ([command, match, lost, code, state]) => {
      world.compute.weather({ match, lost, times: 1 });
      const ending = terminal(api).proposes([command, ...why, ...waiting]);
      const [last = ""] = command.split(" ").slice(-1);
      const card = await hears(world.olivia, "ops", new RegExp(`${last}[^]*\\[Run\\]`));
      await world.olivia.presses("Run", { in: card.ts });
      if (command.startsWith("vm stop")) {
        const asking = await hears(world.olivia, "ops", /Stop web-2[^]*Waiting for approval/);
        await world.amir.presses("Approve", { in: asking.ts });
      }
      const { code: ended, said } = await ending;
      expect([said.split("\n").at(-2)?.split(":")[0], ended]).toEqual([state, code]);
    });
    await Promise.all(endings);
  });
});

describe.concurrent("propose, whatever answers", () => {
  // It shortens everybody's deadlines
  it(
    "is over when its wait is, where nothing answers, or answers only that it is busy",
    { concurrent: false },
    async () => {
      const short = [...words, "--wait", "1s"];
      expect(await terminal((await nowhere()).url).proposes(short)).toEqual({
        code: 1,
        said: expect.stringMatching(/^No API answers at /),
      });
      let calls = 0;
      await using busy = await serving((_, response) => {
        calls += 1;
        response.writeHead(429, { "retry-after": "50" }).end('{"title":"Too many calls."}');
      });
      expect(await terminal(busy.url).proposes(short)).toEqual({
        code: 1,
        said: "Too many calls.\n",
      });
      // Nor is it told twice
      expect(calls).toBe(1);
      await using frozen = await serving(() => undefined);
      stretchDeadlines(1);
      try {
        expect(await terminal(frozen.url).proposes(short)).toMatchObject({ code: 1 });
      } finally {
        stretchDeadlines(30);
      }
    },
  );

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
    expect(await terminal(hasty.url).proposes([...words, "--wait", "1s"])).toMatchObject({
      code: 8,
    });
    // A pause is longer than the wait: it proposes and asks once, and asks again when the wait is over
    expect(calls).toBeLessThanOrEqual(3);
    calls = 0;
    await using past = await serving((_request, response) => {
      calls += 1;
      response.writeHead(503, { "retry-after": "-5" }).end("{}");
    });
    expect(await terminal(past.url).proposes([...words, "--wait", "1s"])).toMatchObject({
      code: 1,
    });
    expect(calls).toBeLessThanOrEqual(2);
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
  });

  it("says that it may have been made where the answer was lost, and only there", async () => {
    const briefly = [...words, "--wait", "300ms", "--key", "ci-42"];
    const unclear = "The proposal may have been made. The same command with --key ci-42";
    await using lost = await serving((_, response) => void response.destroy());
    expect((await terminal(lost.url).proposes(briefly, soon)).said).toContain(unclear);
    await using broken = await serving((_, response) => void response.writeHead(502).end());
    expect((await terminal(broken.url).proposes(briefly, soon)).said).toContain(unclear);
    const gone = await nowhere();
    await using refusing = await serving(
      (_, response) => void response.writeHead(403).end('{"title":"It may not."}'),
    );
    for (const { url } of [gone, refusing])
      expect((await terminal(url).proposes(briefly, soon)).said).not.toContain("may have been");
  });

  it("says on a signal that the proposal may have been made, while it has no answer yet", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await using hanging = await serving(async (_, response) => {
      await promise;
      response.writeHead(403).end('{"title":"It may not."}');
    });
    const early = terminal(hanging.url);
    const ending = early.proposesAside([...words, ...waiting, "--key", "ci-42"], {
      ...soon,
      slowMs: 100,
    });
    await hanging.asked();
    expect(early.lastWords()).toBe(
      "The proposal may have been made. The same command with --key ci-42 asks again without making a second.\n",
    );
    await until(early.complaint).toMatch(/^No answer from .* yet/);
    resolve();
    expect(await ending).toMatchObject({ code: 1 });
    expect(early.lastWords()).toBe("Nothing was proposed.\n");
  });

  it("tells at once that no API answers, and why, and tries again", async () => {
    const { url, port } = await nowhere();
    const unreached = terminal(url);
    const ending = unreached.proposesAside([...words, ...waiting]);
    await until(unreached.complaint).toMatch(
      /^No API answers at http:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED 127\.0\.0\.1:\d+\. Trying again for up to \d+ min( \d+ s)?\.\n/,
    );
    expect(unreached.lastWords()).toBe("Nothing was sent.\n");
    await using back = await serving(
      (_, response) => void response.writeHead(403).end('{"title":"It may not."}'),
      port,
    );
    const { code, said, complaint } = await ending;
    // Once, however often it was tried
    expect([code, complaint.match(/Trying again/g)]).toEqual([1, ["Trying again"]]);
    expect(said).toBe("");
    expect(complaint.endsWith("It may not.\n")).toBe(true);
    expect(`${said}${complaint}`).not.toContain(deploy);
    await back.asked();
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
});

/** The names of the VMs that the API shows. */
async function names(url: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${deploy}` };
  return (await fetch(`${url}/v1/vms`, { headers })).json();
}
