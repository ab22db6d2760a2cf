import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { commands } from "../support/commands.ts";
import { verbsOf } from "../../src/registry/define.ts";
import { meantInOwnWords, smallTalk } from "../../src/talk/sentence.ts";
import { wordsOf } from "../stories/words.ts";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    policy: policyWith(
      { view: ["U0OLIVIA", "U0VERA", "U0ADA"], approve: ["U0OLIVIA", "U0ADA"] },
      `teams:
  ml:
    projects: [ml]
    operate: [U0ADA]
`,
    ),
  });
});
afterAll(() => world.close());

/** What this person alone reads as the answer. */
async function answered(text: string, who: PersonActions = world.olivia): Promise<SeenMessage> {
  const own = () => who.seesChannel("ops").messages.filter(({ ephemeral }) => ephemeral);
  const before = own().length;
  await who.types("ops", text);
  await who.until(() => own().length > before);
  const found = own().at(-1);
  if (!found) throw new Error(`${text} has no answer`);
  return found;
}
const answerTo = async (text: string, who?: PersonActions) => wordsOf(await answered(text, who));

const forOlivia = `Gatehouse operates VMs: try List VMs, Restart a VM…, or Help.
[List VMs] [Restart a VM…] [Help]`;

describe("a text that is no command", () => {
  it.each([
    "train-7 is fine, but @gatehouse: web-2",
    "@gatehouse is web-2 down?",
    "@gatehouse show me web-2, please",
    "@gatehouse tell me about payments/web-2!",
    "/gatehouse is web-2 down?",
  ])("opens the card of the VM that it names: %s", async (text) => {
    expect(await answerTo(text)).toMatch(/web-2 is RUNNING[^]*\[Restart\]/);
  });

  it("finds the command of a question", async () => {
    await world.olivia.types("ops", "/vm restart web-2");
    await world.ended("vm restart");
    for (const text of [
      "@gatehouse who restarted web-2?",
      "@gatehouse why is web-2 slow",
      "/gatehouse when was web-2 restarted?",
      "@gatehouse What happened to web-2?",
      "hey @gatehouse what is wrong with web-2?",
      "@gatehouse what’s wrong with web-2",
      "@gatehouse whats wrong with web-2",
      "/gatehouse what's wrong with web-2?",
      "@gatehouse why is web-2 red",
    ])
      // With what explains a VM, or without that
      expect(await answerTo(text)).toMatch(/(restarted it|restart of web-2 .* by olivia) at/);
    expect(await answerTo("@gatehouse whoever broke web-2")).toMatch(/web-2 is RUNNING/);
  });

  it("lets people pick among several, and does nothing but read", async () => {
    world.compute.forget();
    const shared = await answered("@gatehouse who stopped web-1?");
    expect(wordsOf(shared)).toBe(
      "2 VMs are called web-1. Which one?\n[web-1 in payments] [web-1 in staging]",
    );
    const named = await answered("@gatehouse compare web-2 with db-1");
    expect(wordsOf(named)).toMatch(/^2 VMs are named in your message\. Which one\?\n\[web-2 in pa/);
    await world.olivia.presses("db-1 in payments", { in: named.ts });
    await world.olivia.until((seen) =>
      seen.channels.some(({ messages }) =>
        messages.some((one) => /^.*db-1 is RUNNING/.test(wordsOf(one))),
      ),
    );
    await answerTo("@gatehouse somebody should restart web-2 now");
    expect(world.compute.writes()).toEqual([]);
    expect(await world.store.openIds()).toEqual([]);
  });

  it.each([
    "@gatehouse what's broken?",
    "@gatehouse What’s broken",
    "@gatehouse what is failing right now?",
    "@gatehouse which vms are red?",
    "@gatehouse is anything down?",
    "@gatehouse any problems?",
    "@gatehouse broken",
    "@gatehouse show me what is broken",
    "@gatehouse list failing VMs",
    "@gatehouse is everything ok?",
    "@gatehouse what's wrong?",
    "/gatehouse what's broken?",
    "/vm what is red",
  ])("lists VMs, problems first, where it asks what is broken: %s", async (text) => {
    expect(await answerTo(text)).toMatch(/^6 VMs( that you can see)?: /);
  });

  it.each([
    "@gatehouse thanks!",
    "@gatehouse thank you so much",
    "thanks @gatehouse",
    "@gatehouse great, thanks a lot!",
    "@gatehouse ty",
    "@gatehouse good bot",
    "@gatehouse 👍",
    "/gatehouse thanks",
  ])("is answered in a friendly way, and offers nothing, where it thanks: %s", async (text) => {
    expect(await answerTo(text)).toBe("You're welcome.");
  });

  it.each([
    "@gatehouse undo",
    "/gatehouse undo",
    "@gatehouse undo that!",
    "@gatehouse roll back",
    "@gatehouse cancel",
  ])("says how a change is undone, and offers none: %s", async (text) => {
    const said = await answerTo(text);
    expect(said).toMatch(/^Nothing was done: no command undoes or cancels a change\..*Undo/);
    expect(said).not.toContain("[");
  });

  it("is never taken for talk where it is a command", () => {
    for (const command of commands) {
      const root = command.name.split(" ")[0] ?? "";
      for (const verb of verbsOf(command))
        for (const text of [verb, `${root} ${verb}`, `${verb} web-2`, command.example]) {
          expect(smallTalk(text, commands)).toBeUndefined();
          expect(meantInOwnWords(text, commands)).toBeUndefined();
        }
    }
  });

  it("never runs or offers a change for a time that it names", async () => {
    world.compute.forget();
    for (const text of [
      "@gatehouse restart web-2 in 10 minutes",
      "/vm restart web-2 in 10 minutes",
      "@gatehouse could you restart web-2 tonight?",
    ]) {
      const said = await answerTo(text);
      expect(said).toMatch(/^Gatehouse doesn't schedule changes, so nothing was done/);
      expect(said).not.toContain("[");
    }
    expect(world.compute.writes()).toEqual([]);
  });

  it.each([
    "@gatehouse hi",
    "hey @gatehouse!",
    "@gatehouse what can you do?",
    "@gatehouse make tea",
  ])("is answered with what Gatehouse is for: %s", async (text) => {
    expect(await answerTo(text)).toBe(forOlivia);
  });

  it("has buttons that work, each for people who may run it", async () => {
    const { ts } = await answered("@gatehouse hi");
    await world.olivia.presses("Restart a VM…", { in: ts });
    await world.olivia.until(({ modals }) => modals.some(({ title }) => title === "Restart a VM"));
    await world.olivia.closes({ all: true });
    expect(await answerTo("@gatehouse hi", world.vera)).toBe(
      "Gatehouse operates VMs: try List VMs or Help.\n[List VMs] [Help]",
    );
    expect(await answerTo("@gatehouse hi", world.amir)).toBe(
      "Gatehouse operates VMs, and you can't run anything here. The team that runs Gatehouse can add you to gatehouse.yml.",
    );
  });

  it("is the same for a hidden name and for an unknown one", async () => {
    const about = (name: string, who?: PersonActions) =>
      answerTo(`@gatehouse is ${name} down?`, who);
    expect(await about("train-7", world.ada)).toMatch(/train-7 is /);
    expect(await about("train-7")).toBe(forOlivia);
    expect(await about("train-9")).toBe(forOlivia);
    // Whoever may see no names has none looked up.
    expect(await about("web-2", world.amir)).toMatch(/^Gatehouse operates VMs, and you can't run/);
  });

  it("is answered in a direct message, too", async () => {
    const answers = () => world.vera.seesChannel("gatehouse").messages.map(wordsOf);
    await world.vera.types("gatehouse", "hi");
    await until(answers).toContain(
      "Gatehouse operates VMs: try List VMs or Help.\n[List VMs] [Help]",
    );
    await world.vera.types("gatehouse", "list vms");
    await until(() => answers().join("\n")).toMatch(/6 VMs( that you can see)?: /);
  });
});
