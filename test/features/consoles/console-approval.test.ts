import { describe, expect, it } from "vitest";
import { describeSeen } from "../../../sandbox/slack/describe-seen.ts";
import { auditOf } from "../../core/asking.ts";
import { policyWith, startWorld, type TestWorld } from "../../support/start-world.ts";
import { buttonOn, pressPayload, sendSigned } from "../../stories/forge.ts";
import { hears } from "../../stories/words.ts";
import { until } from "../../support/until.ts";

const approvals = `approvals: [{ operations: ["vm.console"], required: 1, expires: 1m }]\n`;
const policy = policyWith({}, approvals);

const opened = (world: TestWorld) =>
  world.compute.writes().filter(({ path }) => path.endsWith("/console")).length;

/** Olivia requests a console and Amir approves it. Resolves with the card that waits for her. */
async function approved(world: TestWorld) {
  await world.olivia.types("ops", "/vm console web-2");
  await hears(world.amir, "ops", /Console web-2[^]*One other person must approve/);
  await world.amir.presses("Approve");
  return hears(world.olivia, "ops", /Console web-2[^]*requester has not opened it yet/);
}

/** The message with the button that only Olivia sees. */
const offered = (world: TestWorld) => hears(world.olivia, "ops", /Anyone with the address/);

const refusals = async (world: TestWorld) =>
  (await auditOf(world.client, world.key("audit"))).flatMap(({ rule }) => (rule ? [rule] : []));

describe("a console that needs approval", () => {
  it("waits for approval, opens once, only for the requester, and leaves no trace of its address", async () => {
    await using world = await startWorld({ policy, compute: { consoleMs: 900 } });
    await world.slack.edit.setGroupMembers("oncall", ["olivia", "vera"]);
    await world.olivia.types("ops", "/gatehouse can-i vm console web-2");
    await hears(world.olivia, "ops", /1 other person must approve it/);
    const card = await approved(world);
    expect(opened(world)).toBe(0);
    await world.vera.presses("Open console", { in: card.ts });
    await hears(world.vera, "ops", /requested by someone else/);
    await world.olivia.presses("Open console", { in: card.ts });
    const offer = await offered(world);
    await world.olivia.presses("Open console", { in: offer.ts });
    const seen = await world.olivia.until((now) => describeSeen(now).includes("wss://"));
    const token = /token=([\w-]+)/.exec(describeSeen(seen))?.[1] ?? "";
    expect(token).not.toBe("");
    const request = await world.ended("vm console");
    expect(request).toMatchObject({ state: "done", attempt: 1 });
    expect(describeSeen(world.amir.sees())).not.toContain("wss://");
    expect(opened(world)).toBe(1);
    await world.olivia.until((now) => !describeSeen(now).includes("wss://"));
    for (const key of await world.client.keys(`${world.key.prefix}*`))
      expect((await world.client.dumpBuffer(key))?.includes(token) ?? false).toBe(false);
    expect(world.lines.join("\n")).not.toContain(token);
    expect(await refusals(world)).toEqual(["console.requester"]);
  });

  it("isn't opened by a button without its request, or after an approver said no", async () => {
    await using world = await startWorld({ policy, receive: "http" });
    const card = await approved(world);
    const [id = ""] = await world.store.openIds();
    const request = await world.store.get(id);
    await world.olivia.presses("Open console", { in: card.ts });
    const offer = await offered(world);
    const { action, value } = buttonOn(offer, "Open console");
    const presses = (changed: Record<string, unknown>) => {
      const forged = JSON.stringify({ ...(JSON.parse(value) as object), ...changed });
      return sendSigned(world, pressPayload(world, "olivia", card, { action, value: forged }));
    };
    await presses({ request: undefined });
    await hears(world.olivia, "ops", /This console needs approval: approvals\[1\]/);
    await presses({ request: "r-2222222222" });
    await until(() => refusals(world)).toHaveLength(2);
    await presses({ insist: "because I say so" });
    await until(() => refusals(world)).toHaveLength(3);
    if (!request) throw new Error("nothing waits");
    const digest = request.record.approval?.digest.slice(0, 16) ?? "";
    await world.store.vote(request, { id: "U0ADA", name: "ada" }, "deny", digest);
    await presses({});
    await hears(world.olivia, "ops", /can't be opened: its request is denied/);
    expect(opened(world)).toBe(0);
  });

  it("isn't opened by an authorization that nobody voted for", async () => {
    await using world = await startWorld({ policy });
    await world.olivia.types("ops", "/vm console web-2");
    await hears(world.amir, "ops", /Waiting for approval/);
    const [id = ""] = await world.store.openIds();
    await world.client.hset(world.key("request", id), "state", "authorized");
    await hears(world.olivia, "ops", /requester has not opened it yet/);
    await world.olivia.presses("Open console");
    await world.olivia.presses("Open console", { in: (await offered(world)).ts });
    await hears(world.olivia, "ops", /its approvals are not on record/);
    expect(opened(world)).toBe(0);
  });

  it("isn't done when the service refuses it, and is left to a person when the answer is unclear", async () => {
    await using world = await startWorld({ policy });
    world.compute.weather({ match: "POST /v1/vms/vm-payments-web-2/console", status: 422 });
    const card = await approved(world);
    await world.olivia.presses("Open console", { in: card.ts });
    await world.olivia.presses("Open console", { in: (await offered(world)).ts });
    expect(await world.ended("vm console")).toMatchObject({ state: "rejected" });
    world.compute.weather({ match: "POST /v1/vms/vm-payments-web-2/console", status: 502 });
    await world.olivia.types("ops", "/vm console web-2");
    await world.amir.until((seen) => describeSeen(seen).includes("[Approve]"));
    await world.amir.presses("Approve");
    await world.olivia.until((seen) => describeSeen(seen).includes("has not opened it yet"));
    const offers = () => describeSeen(world.olivia.sees()).split("Anyone with the address").length;
    const before = offers();
    await world.olivia.presses("Open console");
    await world.olivia.until(() => offers() > before);
    await world.olivia.presses("Open console");
    expect(await world.ended("vm console")).toMatchObject({ state: "unknown" });
    const unknown = await hears(world.olivia, "ops", /Outcome unknown[^]*It doesn't lock web-2/);
    await world.olivia.types("ops", "/gatehouse why web-2");
    await hears(world.olivia, "ops", /web-2 may have a console open: nobody has recorded whether/);
    await world.olivia.presses("I can't tell yet", { in: unknown.ts });
    await hears(world.olivia, "ops", /^Gatehouse asks again in its thread at [\d:]+ [AP]M UTC\.$/);
    await world.olivia.presses("It happened", { in: unknown.ts });
    await world.olivia.until(({ modals }) => modals.length > 0);
    expect(describeSeen(world.olivia.sees())).toMatch(/recorded as done in your name\./);
  });

  it("is done although its call takes so long that its VM is read meanwhile", async () => {
    const timing = { httpTimeout: "5s", quiesce: "11s", settleDeadline: "20s" };
    await using world = await startWorld({
      policy: policyWith({ timing }, approvals),
    });
    const card = await approved(world);
    const match = "POST /v1/vms/vm-payments-web-2/console";
    world.compute.weather({ match, slowMs: 3_000, times: 1 });
    await world.olivia.presses("Open console", { in: card.ts });
    await world.olivia.presses("Open console", { in: (await offered(world)).ts });
    const [id = ""] = await world.store.openIds();
    await until(async () => (await world.store.get(id))?.stage).toMatchObject({
      state: "sending",
      reads: { last: { status: "RUNNING" } },
    });
    await world.olivia.until((seen) => describeSeen(seen).includes("wss://"));
    expect(await world.ended("vm console")).toMatchObject({ state: "done", attempt: 1 });
  });
});
