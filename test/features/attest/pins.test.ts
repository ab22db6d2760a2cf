import { afterAll, describe, expect, it } from "vitest";
import { launchMeasurement } from "../../../sandbox/compute/records.ts";
import { ledgerImage, seedLedger } from "../../../sandbox/compute/seed.ts";
import { short } from "../../../src/attestation/pins.ts";
import { Trail } from "../../../src/audit/trail.ts";
import { auditOf } from "../../core/asking.ts";
import { startWorld, testPolicy } from "../../support/start-world.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { until } from "../../support/until.ts";

const goodOne = launchMeasurement(ledgerImage, 2);
const otherOne = launchMeasurement("ledger 4.2, with a back door", 2);
const policy = `${testPolicy}attestation:
  endorsements: endorsements
  pins:
    - { targets: ["ledger-1"], measurements: ["${goodOne}"] }
approvals: [{ operations: ["gatehouse.*"], required: 0 }]
`;
const world = await startWorld({ policy, prepare: ({ edit }) => seedLedger(edit) });
afterAll(() => world.close());
const { olivia, amir, store, client, key } = world;

const kept = async (vm: string) => (await client.hget(key("pins"), vm)) ?? "";
const sent = () => world.compute.writes().length;
const trail = new Trail(client, key);

/** Resolves once the record with this ID stands in the sealed chain. */
const sealed = (entry: string) =>
  until(async () => (await trail.find(entry))?.standing).toBe("sealed");

const sealedPin = async (vm: string) => sealed((await kept(vm)).split(" ")[0] ?? "");

const alarms = async () =>
  (await auditOf(client, key("audit"))).filter(({ what }) => what === "alarm");

/**
 * Types the command and waits for a new answer that matches, because the same words may have been
 * said before.
 */
async function answerTo(text: string, words: RegExp): Promise<string> {
  const before = olivia.seesChannel("ops").messages.length;
  const find = () =>
    olivia
      .seesChannel("ops")
      .messages.slice(before)
      .map(wordsOf)
      .findLast((one) => words.test(one));
  await olivia.types("ops", text);
  await olivia.until(() => find() !== undefined);
  return find() ?? "";
}

describe("a pin that is proposed", () => {
  it("is what the VM measures, shown as a difference, and holds once another approves it", async () => {
    await olivia.types("ops", "/gatehouse pins propose ledger-2 image 4.3 is out");
    const asking = await hears(amir, "ops", /Pin ledger-2[^]*Approve/);
    expect(asking.text).toMatch(
      /^olivia asks to pin ledger-2 to what it measures now: “image 4\.3 is out”\. A pin approved earlier no longer counts\. .* to decide\.$/,
    );
    const card = wordsOf(asking);
    expect(card).toContain("From then on, ledger-2 verifies only with these values");
    expect(card).toMatch(/Firmware and CPUs at the start: .{4}….{4}, not pinned until now/);
    expect(card).toContain(`Values: ${otherOne}`);
    expect(card).toContain("Why: image 4.3 is out");
    expect(card).toContain("AMD SEV-SNP report, version 5, Genoa; verified but for its pin");
    expect(await kept("vm-ledger-2")).toBe("");
    await olivia.presses("Approve");
    await hears(olivia, "ops", /You requested this; someone else must/);
    await amir.presses("Approve");
    await hears(olivia, "ops", /Pinned ledger-2\./);
    const request = await world.ended("gatehouse pins propose");
    expect(request).toMatchObject({ state: "done", attempt: 0 });
    await sealedPin("vm-ledger-2");
    await olivia.types("ops", "/vm attest ledger-2");
    await hears(olivia, "ops", /Verified: ledger-2/);
    expect(sent()).toBe(0);
    const { id } = request.record;
    const pinned = (await auditOf(client, key("audit"))).filter(
      (entry) => entry["request"] === id && entry["pin"] !== undefined,
    );
    expect(pinned).toMatchObject([{ move: "done", pin: { vm: "vm-ledger-2", values: otherOne } }]);
    await olivia.types("ops", "/gatehouse pins");
    const listed = wordsOf(await hears(olivia, "ops", /Pins: 1 in gatehouse.yml, 1 by approval/));
    expect(listed).toMatch(new RegExp(`ledger-2 \\| .{4}….{4} \\| olivia, ${id} \\| `));
    expect(listed).toMatch(/ledger-1 \| .{4}….{4} \| gatehouse.yml/);
  });

  it("differs in the registers that a change of the VM changes, and no longer lets the old values pass", async () => {
    world.compute.edit.setMachine({ vm: "ledger-4", image: "ledger 5", platform: "TDX" });
    await olivia.types("ops", "/gatehouse pins propose ledger-4");
    const card = await hears(amir, "ops", /Pin ledger-4[^]*Approve/);
    await amir.presses("Approve", { in: card.ts });
    await hears(olivia, "ops", /Pinned ledger-4\./);
    const first = (await kept("vm-ledger-4")).split('"')[3] ?? "";
    await sealedPin("vm-ledger-4");
    expect(first.split(",")).toHaveLength(4);
    world.compute.edit.changeBehindTheBack({ vm: "ledger-4", specs: { memory: 32 } });
    await olivia.types("ops", "/vm attest ledger-4");
    await hears(olivia, "ops", /Failed: ledger-4/);
    await olivia.types("ops", "/gatehouse pins propose ledger-4");
    const asking = await hears(amir, "ops", /MRTD, the firmware: .{4}….{4}, unchanged/);
    expect(wordsOf(asking)).toMatch(
      /RTMR0, its configuration and memory: .{4}….{4} instead of .{4}….{4}/,
    );
    expect(wordsOf(asking)).toMatch(/RTMR1, boot loader and kernel: .{4}….{4}, unchanged/);
    await amir.presses("Deny", { in: asking.ts });
    await hears(olivia, "ops", /Pin of ledger-4 was denied/);
    expect((await kept("vm-ledger-4")).split('"')[3]).toBe(first);
  });

  it("is refused where gatehouse.yml has one, where the VM doesn't verify otherwise, and where it measures another value", async () => {
    const says = async (text: string, words: RegExp) => {
      await olivia.types("ops", text);
      return wordsOf(await hears(olivia, "ops", words));
    };
    await says("/gatehouse pins propose ledger-1", /pin of ledger-1 already has these values/);
    await says("/gatehouse pins propose ledger-3", /can't be pinned: debugging is on/);
    await says("/gatehouse pins propose ledger-2", /pin of ledger-2 already has these values/);
    await says(
      `/gatehouse pins propose vault-1 --values ${"0a".repeat(48)}`,
      /measurements of vault-1 are not these values/,
    );
    await says("/gatehouse pins drop vault-1", /there is no approved pin for vault-1/i);
    await world.vera.types("ops", "/gatehouse pins propose vault-1");
    await hears(world.vera, "ops", /Only @oncall can pin vault-1/);
    expect((await store.openIds()).length).toBe(0);
  });

  it("isn't kept when the VM measures another value by the time it is approved", async () => {
    await olivia.types("ops", "/gatehouse pins propose vault-1");
    const card = await hears(amir, "ops", /Pin vault-1[^]*Approve/);
    world.compute.edit.setMachine({ vm: "vault-1", image: "something else" });
    await amir.presses("Approve", { in: card.ts });
    await hears(olivia, "ops", /Pin of vault-1 was canceled: the measurements of vault-1 are not/);
    expect(await kept("vm-vault-1")).toBe("");
  });

  it("counts for nothing when Redis was changed by hand, and closes the gates", async () => {
    const real = await kept("vm-ledger-2");
    world.compute.edit.setMachine({ vm: "ledger-2", image: "what an intruder likes" });
    const theirs = launchMeasurement("what an intruder likes", 2);
    await client.hset(key("pins"), "vm-ledger-2", real.replace(otherOne, theirs));
    await olivia.types("ops", "/vm attest ledger-2");
    await hears(olivia, "ops", /Could not verify: ledger-2[^]*pin was not kept by Gatehouse/);
    await olivia.types("ops", "/vm console ledger-2");
    await hears(olivia, "ops", /No console on ledger-2/);
    await olivia.types("ops", "/gatehouse pins");
    await hears(olivia, "ops", /not kept by Gatehouse: counts for nothing/);
    await client.hset(key("pins"), "vm-ledger-2", real);
  });

  it("counts for nothing when it was made up with its record, before that is sealed and after", async () => {
    const real = await kept("vm-ledger-2");
    const theirs = launchMeasurement("what an intruder likes", 2);
    const record = (entry: Record<string, unknown>) =>
      trail.append({ what: "request", request: "r-madeup", requester: "U0OLIVIA", ...entry });
    const about = {
      command: "gatehouse pins propose",
      target: { kind: "vm", id: "vm-ledger-2", name: "ledger-2" },
      digest: "0".repeat(64),
    };
    const before = (await alarms()).length;
    await client.set(key("audit", "sealer"), "nobody", "PX", 600_000);
    await record({ ...about, move: "draft", why: "asked by command", who: "U0OLIVIA" });
    await record({ ...about, vote: "approve", digest: "0".repeat(16), who: "U0AMIR" });
    const pin = { vm: "vm-ledger-2", values: theirs };
    const entry = await record({ ...about, move: "done", why: "kept", pin });
    const madeUp = real
      .replace(/^\S+/, entry)
      .replace(otherOne, theirs)
      .replace(/"request":"[^"]+"/, '"request":"r-madeup"');
    await client.hset(key("pins"), "vm-ledger-2", madeUp);
    await answerTo(
      "/vm attest ledger-2",
      /Could not verify: ledger-2[^]*pin was not kept by Gatehouse/,
    );
    await client.del(key("audit", "sealer"));
    await sealed(entry);
    await answerTo(
      "/vm console ledger-2",
      /No console on ledger-2[^]*pin was not kept by Gatehouse/,
    );
    await answerTo("/gatehouse pins", /ledger-2 \|[^\n]*not kept by Gatehouse: counts for nothing/);
    expect((await alarms()).slice(before)).toMatchObject([
      {
        request: "r-madeup",
        target: { id: "vm-ledger-2" },
        why: expect.stringMatching(/not kept by Gatehouse/),
      },
    ]);
    expect(world.lines.join("")).toContain('"pin.forged"');
    await client.hset(key("pins"), "vm-ledger-2", real);
  });

  it("waits to be sealed, and counts from then on", async () => {
    world.compute.edit.setMachine({ vm: "ledger-2", image: "ledger 4.4" });
    await olivia.types("ops", "/gatehouse pins propose ledger-2 image 4.4");
    const card = await hears(amir, "ops", /Pin ledger-2[^]*image 4\.4[^]*Approve/);
    await client.set(key("audit", "sealer"), "nobody", "PX", 600_000);
    await amir.presses("Approve", { in: card.ts });
    await world.ended("gatehouse pins propose");
    await answerTo("/gatehouse pins", /ledger-2 \|[^\n]*waits to be sealed, counts then/);
    // Who asks too early is answered once it is sealed
    await olivia.types("ops", "/vm attest ledger-2");
    await client.del(key("audit", "sealer"));
    await answerTo("/vm attest ledger-2", /Verified: ledger-2/);
  });

  it("is dropped the same way", async () => {
    await olivia.types("ops", "/gatehouse pins drop ledger-2 the image is withdrawn");
    const card = await hears(amir, "ops", /Unpin ledger-2[^]*no longer pinned/);
    await amir.presses("Approve", { in: card.ts });
    await hears(olivia, "ops", /Unpinned ledger-2\./);
    expect(await kept("vm-ledger-2")).toBe("");
    expect(sent()).toBe(0);
  });
});

describe("a VM that no longer measures its pin", () => {
  it("is shown with the changes since, and a button that proposes the new values and asks why", async () => {
    const pins = () => kept("vm-ledger-2");
    await olivia.types("ops", "/gatehouse pins propose ledger-2 as built");
    const first = await hears(amir, "ops", /Pin ledger-2[^]*as built[^]*Approve/);
    await amir.presses("Approve", { in: first.ts, confirm: "no" });
    expect(await pins()).toBe("");
    await amir.presses("Approve", { in: first.ts });
    await until(pins).not.toBe("");
    await answerTo("/vm attest ledger-2", /Verified: ledger-2/);
    await olivia.types("ops", "/vm resize ledger-2 --cpu 8 --memory 32");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Resize"));
    await olivia.submits({});
    const { record } = await world.ended("vm resize");
    const said = await answerTo("/vm attest ledger-2", /Failed: ledger-2[^]*Propose pin/);
    expect(said).toMatch(/Changes from Gatehouse since it last verified at .*:/);
    expect(said).toMatch(new RegExp(`• Resized at .* by olivia, request ${record.id}`));
    expect(said).not.toContain("• Pinned");
    await olivia.presses("Propose pin");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Request approval"));
    await olivia.submits({ Why: "it needs 8 CPUs" });
    const card = await hears(amir, "ops", /Pin ledger-2[^]*it needs 8 CPUs[^]*Approve/);
    const before = await pins();
    await amir.presses("Approve", { in: card.ts });
    await until(pins).not.toBe(before);
  });
});

it("a finding says of a pin in gatehouse.yml which line has it, and what to write there", async () => {
  const image = "ledger 4.3";
  world.compute.edit.setMachine({ vm: "ledger-1", image });
  const said = await answerTo(
    "/gatehouse pins propose ledger-1",
    /The pin of ledger-1 stands in gatehouse\.yml \(line \d+\): only the file changes it/,
  );
  const line = Number(/line (\d+)/.exec(said)?.[1]);
  expect(policy.split("\n")[line - 1]).toContain(goodOne);
  expect(said).toContain(
    `Replace ${short(goodOne)} there by what it measures now: ${launchMeasurement(image, 2)}`,
  );
});
