import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersonActions } from "../../../sandbox/slack/actions.ts";
import { auditOf } from "../../core/asking.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { createProposals } from "../../../src/features/proposals/proposals.ts";
import { expire } from "../proposals/expire.ts";
import { policyWith, startWorld, testPolicy, type TestWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

const askOncall = "Ask @oncall to do it";

/** Types what is refused, presses the button beside the refusal, and gives the reason. */
async function asks(
  person: PersonActions,
  words = "/vm stop web-2",
  { label = askOncall, reason = "It answers nobody", channel = "ops" } = {},
) {
  await person.types(channel, words);
  const [, verb, name] = words.split(" ");
  const deed = `can ${verb} ${name} [^]*\\[${label}\\]`;
  const refused = await hears(person, channel, new RegExp(deed));
  await person.presses(label, { in: refused.ts });
  await person.until(({ modals }) => modals.some(({ submit }) => submit === "Ask"));
  await person.submits({ Reason: reason });
  return refused;
}

const card = (person: PersonActions, channel = "ops") => hears(person, channel, /vera asks /);

const writes = ({ compute }: TestWorld) => compute.writes().map(({ path }) => path);

describe("a refusal for lack of the right", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  it("is asked once for each button, and can be withdrawn but not run by whoever asked", async () => {
    const { vera, olivia } = world;
    const refused = await asks(vera, "/vm restart db-1");
    const asked = await card(olivia);
    await vera.presses(askOncall, { in: refused.ts });
    await vera.until(({ modals }) => modals.some(({ submit }) => submit === "Ask"));
    await vera.submits({ Reason: "once more" });
    await hears(vera, "ops", /You already asked @oncall/);
    const cards = () =>
      vera.seesChannel("ops").messages.filter((one) => wordsOf(one).includes("vera asks"));
    expect(cards()).toHaveLength(1);
    await vera.presses("Run", { in: asked.ts });
    await hears(vera, "ops", /You asked for this: someone else must run it\./);
    await vera.presses("Dismiss", { in: asked.ts });
    await vera.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await vera.submits({ Reason: "It answers again" });
    await hears(
      olivia,
      "ops",
      /🚫 vera withdrew Restart db-1 \(payments\): “It answers again”\. Nothing was done\./,
    );
    expect(writes(world)).toEqual([]);
  });

  it("ends where its VM has another name by now, which whoever reads the card may not see", async () => {
    const { vera, olivia } = world;
    await asks(vera, "/vm start worker-1");
    const asked = await card(olivia);
    world.compute.edit.renameVm({ vm: "worker-1", name: "prod-billing" });
    await olivia.presses("Run", { in: asked.ts });
    const refused = await hears(
      olivia,
      "ops",
      /worker-1 was renamed, moved, or replaced since this was asked\. Nothing was done\./,
    );
    expect(wordsOf(refused)).not.toContain("prod-billing");
    expect(writes(world)).toEqual([]);
    world.compute.edit.renameVm({ vm: "prod-billing", name: "worker-1" });
    await vera.presses("Dismiss", { in: asked.ts });
    await vera.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await vera.submits({ Reason: "It was renamed" });
    await hears(olivia, "ops", /vera withdrew Start worker-1.*: “It was renamed”/);
  });

  it("offers to ask where a glob means one VM, and says how where it means several", async () => {
    const { vera, olivia } = world;
    await vera.types("ops", "/vm stop train-?");
    const one = await hears(vera, "ops", /Only @oncall can stop train-7 \(ml\)\./);
    expect(wordsOf(one)).toContain(`[${askOncall}]`);
    await vera.types("ops", "/vm stop web-*");
    const several = await hears(vera, "ops", /Only @oncall can stop VMs\.\n/);
    expect(wordsOf(several)).toMatch(
      /Name one of them, and a button asks for it: \/vm stop [\w-]+\/web-\d\./,
    );
    await vera.types("ops", "/vm stop nothing-*");
    await hears(vera, "ops", /Only @oncall can stop VMs\.\nRule/);
    expect(olivia.seesChannel("ops").messages.map(wordsOf).join()).not.toContain("vera asks");
  });

  it("is reminded of once half of its time has passed, and can be asked for again after its end", async () => {
    const { vera, olivia } = world;
    await asks(vera, "/vm start gpu-1");
    const asked = await card(olivia);
    const [, id = ""] = /`(p-[0-9a-f]+)`/.exec(JSON.stringify(asked.blocks)) ?? [];
    const stored = world.key("proposal", id);
    const proposals = createProposals(world.client, world.key);
    const { record, createdAt } = (await proposals.get(id)) ?? {};
    const endsIn = async (ms: number) => {
      const expiresAt = (await proposals.now()) + ms;
      await world.client.hset(stored, "record", JSON.stringify({ ...record, expiresAt }));
      await proposals.redraw(id);
    };
    await world.client.hset(stored, "createdAt", Number(createdAt) - 3_600_000);
    await endsIn(1_800_000);
    const reminder = await hears(olivia, "ops", /⏰ Half of the time has passed: nobody has run/);
    expect(reminder.threadTs).toBe(asked.ts);
    expect(wordsOf(reminder)).toMatch(/Start gpu-1 .*yet\. Until .*, Run on the message above/);
    await endsIn(-1);
    const over = await hears(vera, "ops", /<@U0VERA> ⌛ Expired: nobody ran Start gpu-1/);
    expect(wordsOf(over)).toContain("[Ask again]");
    await vera.presses("Ask again", { in: over.ts });
    await vera.until(({ modals }) => modals.some(({ submit }) => submit === "Ask"));
    await vera.submits({ Reason: "It is still needed" });
    const again = await hears(olivia, "ops", /vera asks [^]*It is still needed/);
    expect(again.ts).not.toBe(asked.ts);
    await vera.presses("Dismiss", { in: again.ts });
    await vera.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await vera.submits({ Reason: "Done otherwise" });
    await hears(olivia, "ops", /vera withdrew Start gpu-1/);
  });

  it("becomes a proposal that someone with the right runs, and whoever asked is told the result", async () => {
    const { vera, olivia } = world;
    const refused = await asks(vera);
    expect(wordsOf(refused)).toBe(
      "Only @oncall can stop web-2 (payments).\n[Ask @oncall to do it]\nRule: access.operate in gatehouse.yml.",
    );
    expect(refused.ephemeral).toBe(true);
    await hears(vera, "ops", /Asked @oncall in <#C01OPS>; you are told the result\./);
    expect(writes(world)).toEqual([]);

    const asked = await card(olivia);
    expect(wordsOf(asked)).toMatch(
      /^⚠️ This interrupts what runs on web-2\.\n🙋 vera asks <!subteam\^S01ONCALL>: Stop web-2 \(payments\): “It answers nobody”\nUntil .*Press Run and it runs in your name, with the usual approvals\.\n\[Run\] \[Dismiss\]/,
    );
    await olivia.presses("Run", { in: asked.ts });
    const { record } = await world.ended("vm stop");
    expect(record).toMatchObject({
      requester: { id: "U0OLIVIA" },
      origin: { kind: "proposal", asker: "U0VERA" },
      threadTs: asked.ts,
    });
    const ended = await hears(vera, "ops", /vera asked: .*\n✅ Stopped web-2 in .* \(olivia\)/);
    expect(ended.ts).toBe(asked.ts);
    expect(wordsOf(ended)).not.toMatch(/subteam|\[Run\]/);
    const told = await hears(vera, "ops", /^✅ Stopped web-2|^<@U0VERA> ✅ Stopped web-2/);
    expect(wordsOf(told)).toMatch(/^<@U0VERA> ✅ Stopped web-2 in .* \(olivia\)$/);
    expect(told.threadTs).toBe(asked.ts);
    const trail = await auditOf(world.client, world.key("audit"));
    expect(trail).toContainEqual(
      expect.objectContaining({
        what: "refusal",
        who: "U0VERA",
        command: "vm stop",
        targets: ["vm-payments-web-2"],
        rule: "access.operate",
      }),
    );
    expect(trail).toContainEqual(
      expect.objectContaining({
        what: "proposal",
        move: "open",
        who: "U0VERA",
        why: "It answers nobody",
      }),
    );
  });

  it("is limited to five that are open, and is refused where nobody could run it", async () => {
    const { vera } = world;
    const before = writes(world);
    for (const words of [
      "stop train-7",
      "restart train-7",
      "snapshot train-7",
      "stop db-1",
      "snapshot db-1",
    ])
      await asks(vera, `/vm ${words}`);
    await until(
      () => vera.seesChannel("ops").messages.map(wordsOf).join().split("vera asks").length,
    ).toBe(6);
    await asks(vera, "/vm snapshot gpu-1");
    await hears(vera, "ops", /5 of the changes you asked for are still open/);
    await asks(vera, "/vm restore db-1");
    await hears(vera, "ops", /The snapshot is missing\./);
    expect(writes(world)).toEqual(before);
  });
});

describe("a refusal for lack of a team's right", () => {
  let world: TestWorld;
  beforeAll(async () => {
    const policy = policyWith(
      { view: ["S01ONCALL", "U0ADA"] },
      `teams:
  payments: { projects: [payments], view: [U0VERA], operate: [U0OLIVIA], approve: [S02LEADS], channel: C01OPS }
`,
    );
    world = await startWorld({ policy });
  });
  afterAll(() => world.close());

  it("is offered by can-i, after a mention, and on a VM's card, and to nobody who sees no such VM", async () => {
    const { vera, olivia } = world;
    const label = "Ask olivia to do it";
    const offered = new RegExp(`Only olivia can [^]*\\[${label}\\]`);
    await vera.types("ops", "/gatehouse can-i vm stop web-2");
    await hears(vera, "ops", new RegExp(`^No\\. ${offered.source}`));
    await vera.types("ops", "@gatehouse restart web-2");
    await hears(vera, "ops", new RegExp(`^${offered.source.replace("can ", "can restart ")}`));
    await olivia.types("ops", "/vm show web-2");
    const shown = await hears(olivia, "ops", /web-2 is RUNNING/);
    await olivia.presses("Share in channel", { in: shown.ts });
    const shared = await hears(vera, "ops", /web-2 is RUNNING[^]*Shared by olivia/);
    await vera.presses("Stop", { in: shared.ts });
    await hears(vera, "ops", new RegExp(`^${offered.source.replace("can ", "can stop ")}`));
    for (const name of ["train-7", "no-such-vm"]) {
      await vera.types("ops", `/vm stop ${name}`);
      expect(wordsOf(await hears(vera, "ops", /^You can't stop VMs/))).not.toContain("[");
    }
    await vera.types("ops", "/vm stop vault-1");
    expect(vera.seesChannel("ops").messages.map(wordsOf).join("\n")).not.toMatch(/Only .* vault/);
  });

  it("goes to the channel of the VM's team, and the result to whoever asked elsewhere", async () => {
    const { vera, olivia } = world;
    const label = "Ask olivia to do it";
    await asks(vera, "/vm stop web-2", { label, channel: "random" });
    await vera.until((seen) => JSON.stringify(seen).includes("Asked olivia in <#C01OPS>"));
    await olivia.presses("Dismiss", { in: (await card(olivia)).ts });
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Dismiss"));
    await olivia.submits({ Reason: "It is needed" });
    await vera.until(({ channels }) =>
      JSON.stringify(channels).includes(
        "olivia dismissed *Stop web-2 (payments)*: “It is needed”. Nothing was done.",
      ),
    );
  });
});

describe("a refusal that no right would help with", () => {
  it("offers nobody to ask, and one for lack of the right asks nobody once the person has it", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}channels: [C01OPS]\n`,
    });
    const { vera, olivia } = world;
    await olivia.types("ops", "/vm stop vault-1");
    await olivia.types("random", "/vm stop web-2");
    await hears(olivia, "ops", /vault-1 is protected/);
    await hears(olivia, "random", /can't be run in this channel/);
    expect(JSON.stringify(olivia.sees().channels)).not.toContain("to do it");
    await vera.types("ops", "/vm stop web-2");
    const refused = await hears(vera, "ops", /Only @oncall can stop web-2/);
    await world.slack.edit.setGroupMembers("oncall", ["vera"]);
    await vera.presses(askOncall, { in: refused.ts });
    await hears(vera, "ops", /You may run \/vm stop yourself now\. Nobody was asked\./);
  });
});

describe("who asked for a change", () => {
  it("is told the result too where the request came after the proposal had expired", async () => {
    const { promise: heldUp, resolve: goOn } = Promise.withResolvers<void>();
    await using world = await startWorld({
      at: async (point) => (point === "proposal-taken" ? heldUp : undefined),
    });
    const { vera, olivia } = world;
    await asks(vera);
    const asked = await card(olivia);
    await olivia.presses("Run", { in: asked.ts });
    const [id = ""] = /p-\w+/.exec(wordsOf(asked)) ?? [];
    await expire(world, id);
    await hears(vera, "ops", /^<@U0VERA> ⌛ Expired/);
    goOn();
    await world.ended("vm stop");
    const told = await hears(vera, "ops", /^<@U0VERA> ✅ Stopped web-2 in .* \(olivia\)$/);
    expect(told.threadTs).toBe(asked.ts);
    await hears(vera, "ops", /vera asked: [^]*✅ Stopped web-2/);
    expect(writes(world)).toHaveLength(1);
  });

  it("never counts among those who approve it", async () => {
    const policy = policyWith({}, `approvals: [{ operations: ["vm.stop"], required: 1 }]\n`);
    await using world = await startWorld({ policy });
    const { amir, ada, olivia } = world;
    // Amir may approve, and may not operate.
    await asks(amir);
    const asked = await hears(olivia, "ops", /amir asks /);
    await olivia.presses("Run", { in: asked.ts });
    const waiting = await hears(amir, "ops", /Waiting for approval/);
    expect(wordsOf(waiting)).not.toMatch(/amir[^\n]* can\./);
    expect(wordsOf(waiting)).toMatch(
      /requested by olivia at [^\n]*, as amir had asked: “It answers nobody”/,
    );
    await hears(amir, "ops", /✋ olivia requested it: .*\. Waiting for approval until /);
    await amir.presses("Approve", { in: waiting.ts });
    await hears(amir, "ops", /You asked for this; someone else must decide\./);
    expect((await world.store.recentIds({ open: true }, 10)).length).toBe(1);
    // Nor once it was denied, and requested again by whoever ran it.
    await ada.presses("Deny", { in: waiting.ts });
    await world.ended("vm stop");
    await ada.until(({ modals }) => modals.length > 0);
    await ada.submits({});
    const denied = await hears(olivia, "ops", /denied by ada[^]*\[Request again\]/);
    await olivia.presses("Request again", { in: denied.ts });
    const again = await hears(amir, "ops", /Stop web-2[^]*Waiting for approval[^]*\[Approve\]/);
    expect(again.ts).not.toBe(waiting.ts);
    expect(wordsOf(again)).not.toMatch(/amir[^\n]* can\./);
    await amir.presses("Approve", { in: again.ts });
    await until(() =>
      amir.seesChannel("ops").messages.map(wordsOf).join().split("You asked for this;"),
    ).toHaveLength(3);
    expect((await world.store.recentIds({ open: true }, 10)).length).toBe(1);
    expect(writes(world)).toEqual([]);
    await ada.presses("Approve", { in: again.ts });
    const { record } = await world.ended("vm stop");
    expect(record.origin).toMatchObject({ kind: "request", asker: "U0AMIR" });
    expect(writes(world)).toHaveLength(1);
  });
});
