import { afterAll, expect, it } from "vitest";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";
import { isOffered } from "../support/is-offered.ts";

/** Two teams; web-2 is pinned to what it measures with its four CPUs. */
const policy = `${testPolicy}teams:
  payments: { projects: ["payments"], view: ["U0VERA"], operate: ["S01ONCALL"], channel: C01OPS }
  other: { projects: ["other"], view: ["U0AMIR"], operate: ["U0AMIR"] }
attestation:
  endorsements: endorsements
  pins: [{ targets: ["payments/web-2"], measurements: ["${launchMeasurement("web-2 v1", 4)}"] }]
`;
const world = await startWorld({
  policy: policy.replace('view: ["*"]', 'view: ["U0VERA"]'),
  receive: "http",
});
afterAll(() => world.close());
const { olivia, vera, amir, ada } = world;

/** What a person reads in answer to these words, and nothing older. */
async function told(person: PersonActions, text: string, words: RegExp): Promise<string> {
  const before = person.seesChannel("ops").messages.length;
  const find = () =>
    person
      .seesChannel("ops")
      .messages.slice(before)
      .map(wordsOf)
      .find((one) => words.test(one));
  await person.types("ops", text);
  await person.until(() => find() !== undefined);
  return find() ?? "";
}

async function home(person: PersonActions, says: RegExp): Promise<string> {
  const read = () =>
    wordsIn(person.sees().home?.blocks ?? [])
      .join("\n")
      .replaceAll(/[*`\u2060]/g, "");
  await person.opensHome();
  await person.until(() => says.test(read()));
  return read();
}

it("the form of a resize says that the measurement is pinned, before anything is sent", async () => {
  await olivia.types("ops", "/vm resize web-2 --cpu 8 --memory 32");
  await olivia.until(({ modals }) => /is pinned/.test(JSON.stringify(modals)));
  const [form] = olivia.sees().modals;
  expect(JSON.stringify(form)).toContain(
    "*It is pinned, and new specs can change its measurement*: then attestation fails until the pin is updated.",
  );
  expect(world.compute.writes()).toEqual([]);
});

it("a resize that changed the measurement is red wherever its VM is shown", async () => {
  await olivia.submits({});
  await hears(
    olivia,
    "ops",
    /🔴 .*Resized web-2.*, but its measurement no longer matches its pin\./,
  );
  const result = wordsOf(await hears(olivia, "ops", /🔴 <@U0OLIVIA> [^]*Sent .* read/));
  expect(result).toMatch(/🔴 Measurement: .* instead of .*\./);
  const [request] = await world.settled();
  const ops = olivia.seesChannel("ops").messages.map(wordsOf);
  expect(ops.filter((text) => /Resize.*web-2/.test(text) && text.includes("✅"))).toEqual([]);
  const card = ops.find((text) => /^🔴 .*[Rr]esized?.* web-2/.test(text));
  expect(card).toContain("but its measurement no longer matches its pin");
  expect(card).toMatch(/\[Attest\] \[Resize back\]$/);
  expect(result).toMatch(/ instead of \S+\. .*S01ONCALL.*, check whether this was meant\.$/);
  // The result tells it, so the monitor has nothing to add.
  expect(ops.filter((text) => text.includes("Attestation of web-2"))).toEqual([]);
  const alarms = () => world.client.keys(world.key("notice", "drift-*"));
  await until(alarms).toHaveLength(1);
  const [alarm = ""] = await alarms();
  await until(() => world.client.hget(alarm, "said:notice")).toBe("withdrawn");
  // What a shared card or a subscription opens
  const message = await hears(olivia, "ops", /Resized web-2/);
  const details = {
    action: "request:show",
    value: JSON.stringify({ request: request?.record.id }),
  };
  await sendSigned(world, pressPayload(world, "vera", message, details));
  const opened = await hears(vera, "ops", /🔴 olivia: Resized web-2/);
  expect(opened.ephemeral).toBe(true);
  expect(wordsOf(opened)).not.toContain("✅");

  const shown = await told(vera, "/vm show web-2", /web-2 is RUNNING/);
  expect(shown).toMatch(
    /🔴 web-2 is RUNNING\n🔴 web-2 has failed attestation since olivia resized it at [^\n]*: its measurement changed/,
  );
  expect(shown).toMatch(/Attestation\n🔴 failed/);
  const list = (await told(vera, "/vm list payments", /3 VMs/)).split("\n");
  expect(list[0]).toBe("3 VMs in payments: 3 RUNNING, 🔴 1 failing attestation");
  expect(list[2]).toMatch(/^🔴 web-2 \| RUNNING, fails attestation \| payments/);
  expect(list).toContain("🔴 web-2 fails attestation: measurement matches no pin.");
  // The list leads on: one menu opens any of its VMs
  await vera.chooses("Show a VM…", "web-2 in payments");
  await vera.until(
    () =>
      vera.seesChannel("ops").messages.filter((one) => /web-2 is RUNNING/.test(wordsOf(one)))
        .length > 1,
  );
  const project = await told(vera, "/project show payments", /payments is ACTIVE/);
  expect(project).toContain("3 VMs: 3 RUNNING, 🔴 1 failing attestation");
  expect(project).toContain("🔴 web-2 | RUNNING, fails attestation");
  // The audit trail and the night don't stop at the change, which was made.
  const failed = /🔴 web-2 failed attestation: the measurement matches no pin\./;
  expect(await told(vera, "/gatehouse night", failed)).toMatch(
    /🔴 olivia resized web-2[^\n]*, but its measurement no longer matches its pin\.[^]*🔴 web-2 failed attestation/,
  );
  await told(ada, "/gatehouse audit web-2", failed);
  const tab = await home(olivia, /Problems/);
  expect(tab).toMatch(
    /🔴 payments\/web-2 has failed attestation since olivia resized it at [^\n]*: its measurement changed, its pin didn't\./,
  );
  expect(tab).toMatch(/🔴 Resized web-2[^\n]*, but its measurement no longer matches its pin\./);
  if (isOffered("gatehouse digest"))
    await told(
      olivia,
      "/gatehouse digest now",
      /🔴 web-2 in payments: attestation has failed since .*: the measurement matches no pin/,
    );
});

it("a failing attestation isn't blamed on a restart long after the resize that caused it", async () => {
  await olivia.types("ops", "/vm restart web-2");
  const card = await hears(olivia, "ops", /🔴 .*Restarted web-2.*, but its measurement still/);
  expect(wordsOf(card)).not.toContain("no longer matches");
  const result = wordsOf(await hears(olivia, "ops", /It has failed since .*, before this change/));
  expect(result).toMatch(
    /🔴 Measurement: .* instead of .*\. It has failed since .*, before this change\./,
  );
  await world.settled();
});

it("a failing attestation is shown to nobody of another team", async () => {
  const text = await home(amir, /Problems/);
  expect(text).toContain("ml/train-7 has been in ERROR since");
  expect(text).not.toContain("web-2");
});

it("a VM is green again once it is what is pinned, as soon as anyone looks", async () => {
  world.compute.edit.changeBehindTheBack({ vm: "vm-payments-web-2", specs: { cpu: 4 } });
  await told(vera, "/vm attest web-2", /Verified: web-2/);
  expect(await told(vera, "/vm show web-2", /web-2 is RUNNING/)).toMatch(/🟢 web-2 is RUNNING\n/);
});
