import { createServer, request as call } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen } from "../../../sandbox/listen.ts";
import { describeSeen } from "../../../sandbox/slack/describe-seen.ts";
import { auditOf } from "../../core/asking.ts";
import { policyWith, startWorld, type TestWorld } from "../../support/start-world.ts";
import { buttonOn, pressPayload, sendSigned } from "../../stories/forge.ts";
import { hears } from "../../stories/words.ts";
import { passQuiet } from "../../support/pass-time.ts";
import { until } from "../../support/until.ts";

const policy = policyWith({}, `approvals: [{ operations: ["vm.console"], required: 1 }]\n`);

/** Between Gatehouse and the service: a console of `slow-1` isn't asked for before that ends. */
const slow = Promise.withResolvers<void>();
let computeUrl = "";
const front = createServer((request, response) => {
  const { url = "", method, headers } = request;
  const forward = () =>
    request.pipe(
      call(new URL(url, computeUrl), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      }),
    );
  if (url.endsWith("/vm-slow-1/console")) void slow.promise.then(forward);
  else forward();
});

/** Each test has VMs of its own. */
let world: TestWorld;
let closeFront: () => Promise<void>;
beforeAll(async () => {
  const { url, close } = await listen(front, 0);
  closeFront = close;
  world = await startWorld({
    policy,
    receive: "http",
    compute: { consoleMs: 900 },
    pace: { sweepMs: 500 },
    env: { COMPUTE_API_URL: url },
    prepare(compute) {
      computeUrl = compute.url;
      for (const name of ["usual-1", "forged-1", "unvoted-1", "refused-1", "lost-1", "slow-1"])
        compute.edit.addVm({ project: "payments", name, id: `vm-${name}` });
    },
  });
});
afterAll(async () => {
  await world.close();
  await closeFront();
});

const opened = (vm: string) =>
  world.compute.writes().filter(({ path }) => path === `/v1/vms/vm-${vm}/console`).length;

/** Olivia requests a console and Amir approves it. Resolves with the card that waits for her. */
async function approved(vm: string) {
  const { olivia, amir } = world;
  await olivia.types("ops", `/vm console ${vm}`);
  const waits = new RegExp(`Console ${vm}[^]*One other person must approve`);
  await amir.presses("Approve", { in: (await hears(amir, "ops", waits)).ts });
  return hears(olivia, "ops", new RegExp(`Console ${vm}[^]*requester has not opened it yet`));
}

/** The message with the button that only Olivia sees. */
const offered = (vm: string) =>
  hears(world.olivia, "ops", new RegExp(`Anyone with the address[^]*${vm}`));

/** Olivia presses the button of the card, and then the one that only she sees. */
async function opens(vm: string, card: { ts: string }) {
  await world.olivia.presses("Open console", { in: card.ts });
  await world.olivia.presses("Open console", { in: (await offered(vm)).ts });
}

const requestOf = async (vm: string) => {
  const [id = ""] = await world.store.recentIds({ targetId: `vm-${vm}` }, 1);
  const request = await world.store.get(id);
  if (!request) throw new Error(`nothing was requested on ${vm}`);
  return request;
};

const refusals = async () =>
  (await auditOf(world.client, world.key("audit"))).flatMap(({ rule }) => (rule ? [rule] : []));

describe("a console that needs approval", () => {
  it("waits for approval, opens once, only for the requester, and leaves no trace of its address", async () => {
    const { olivia, amir, vera, slack, client } = world;
    await slack.edit.setGroupMembers("oncall", ["olivia", "vera"]);
    await olivia.types("ops", "/gatehouse can-i vm console usual-1");
    await hears(olivia, "ops", /1 other person must approve it/);
    const card = await approved("usual-1");
    expect(opened("usual-1")).toBe(0);
    await vera.presses("Open console", { in: card.ts });
    await hears(vera, "ops", /requested by someone else/);
    await opens("usual-1", card);
    const seen = await olivia.until((now) => describeSeen(now).includes("wss://"));
    const token = /token=([\w-]+)/.exec(describeSeen(seen))?.[1] ?? "";
    expect(token).not.toBe("");
    expect(await world.ended("vm console")).toMatchObject({ state: "done", attempt: 1 });
    expect(describeSeen(amir.sees())).not.toContain("wss://");
    expect(opened("usual-1")).toBe(1);
    await olivia.until((now) => !describeSeen(now).includes("wss://"));
    for (const key of await client.keys(`${world.key.prefix}*`))
      expect((await client.dumpBuffer(key))?.includes(token) ?? false).toBe(false);
    expect(world.lines.join("\n")).not.toContain(token);
    expect(await refusals()).toEqual(["console.requester"]);
  });

  it("isn't opened by a button without its request, or after an approver said no", async () => {
    const card = await approved("forged-1");
    const request = await requestOf("forged-1");
    await world.olivia.presses("Open console", { in: card.ts });
    const { action, value } = buttonOn(await offered("forged-1"), "Open console");
    const presses = (changed: Record<string, unknown>) => {
      const forged = JSON.stringify({ ...(JSON.parse(value) as object), ...changed });
      return sendSigned(world, pressPayload(world, "olivia", card, { action, value: forged }));
    };
    const before = (await refusals()).length;
    await presses({ request: undefined });
    await hears(world.olivia, "ops", /This console needs approval: approvals\[1\]/);
    await presses({ request: "r-2222222222" });
    await until(() => refusals()).toHaveLength(before + 2);
    await presses({ insist: "because I say so" });
    await until(() => refusals()).toHaveLength(before + 3);
    const digest = request.record.approval?.digest.slice(0, 16) ?? "";
    await world.store.vote(request, { id: "U0ADA", name: "ada" }, "deny", digest);
    await presses({});
    await hears(world.olivia, "ops", /can't be opened: its request is denied/);
    expect(opened("forged-1")).toBe(0);
  });

  it("isn't opened by an authorization that nobody voted for", async () => {
    await world.olivia.types("ops", "/vm console unvoted-1");
    const card = await hears(world.amir, "ops", /Console unvoted-1[^]*Waiting for approval/);
    const { id } = (await requestOf("unvoted-1")).record;
    await world.client.hset(world.key("request", id), "state", "authorized");
    await hears(world.olivia, "ops", /Console unvoted-1[^]*requester has not opened it yet/);
    await opens("unvoted-1", card);
    await hears(world.olivia, "ops", /its approvals are not on record/);
    expect(opened("unvoted-1")).toBe(0);
  });

  it("isn't done when the service refuses it", async () => {
    world.compute.weather({ match: "POST /v1/vms/vm-refused-1/console", status: 422 });
    await opens("refused-1", await approved("refused-1"));
    await until(async () => (await requestOf("refused-1")).state).toBe("rejected");
  });

  it("is left to a person when the answer is unclear", async () => {
    const { olivia } = world;
    world.compute.weather({ match: "POST /v1/vms/vm-lost-1/console", status: 502 });
    await opens("lost-1", await approved("lost-1"));
    await passQuiet(world);
    const unknown = await hears(olivia, "ops", /Outcome unknown[^]*It doesn't lock lost-1/);
    await olivia.types("ops", "/gatehouse why lost-1");
    await hears(olivia, "ops", /lost-1 may have a console open: nobody has recorded whether/);
    await olivia.presses("I can't tell yet", { in: unknown.ts });
    await hears(olivia, "ops", /^Gatehouse asks again in its thread at [\d:]+ [AP]M UTC\.$/);
    await olivia.presses("It happened", { in: unknown.ts });
    await olivia.until(({ modals }) => modals.length > 0);
    expect(describeSeen(olivia.sees())).toMatch(/recorded as done in your name\./);
    await olivia.closes();
  });

  it("is done although its call takes so long that its VM is read meanwhile", async () => {
    await opens("slow-1", await approved("slow-1"));
    await until(async () => (await requestOf("slow-1")).stage).toMatchObject({
      state: "sending",
      reads: { last: { status: "RUNNING" } },
    });
    slow.resolve();
    await world.olivia.until((seen) => describeSeen(seen).includes("wss://"));
    await until(async () => requestOf("slow-1")).toMatchObject({ state: "done", attempt: 1 });
  });
});
