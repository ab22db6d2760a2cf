import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ policy: testPolicy });
});
afterAll(() => world.close());

afterEach(async () => {
  await world.settled();
  for (const one of [world.olivia, world.vera]) await one.closes({ all: true }).catch(() => {});
  world.compute.forget();
});

const paths = () => world.compute.writes().map(({ path }) => path);

/** The answer that only this person sees. */
async function answerTo(words: string, who = world.olivia, thread?: string): Promise<string> {
  return wordsOf(await answered(words, who, thread));
}

async function answered(words: string, who = world.olivia, thread?: string): Promise<SeenMessage> {
  const own = () => who.seesChannel("ops").messages.filter(({ ephemeral }) => ephemeral);
  const before = own().length;
  await who.types("ops", words, thread ? { threadTs: thread } : {});
  await who.until(() => own().length > before);
  const found = own().at(-1);
  if (!found) throw new Error(`${words} has no answer`);
  return found;
}

const titleIs = (title: string, who = world.olivia) =>
  who.until(({ modals }) => modals.some((modal) => modal.title === title && modal.submit !== ""));

describe("words typed at 3 a.m.", () => {
  it("restarts the VM that was meant, whatever stands around its name", async () => {
    await world.olivia.types("ops", "/vm reboot  web-2 please");
    await world.olivia.types("ops", "/vm restart <http://db-1|db-1>.");
    await hears(world.olivia, "ops", /Restarted web-2/);
    await hears(world.olivia, "ops", /Restarted db-1/);
    expect(paths().toSorted()).toEqual([
      "/v1/vms/vm-payments-db-1/restart",
      "/v1/vms/vm-payments-web-2/restart",
    ]);
  });

  it.each(["‐", "‑", "‒", "–", "−", "－"])(
    "finds a VM whatever hyphen the keyboard wrote: web%s2",
    async (hyphen) => {
      expect(await answerTo(`/vm show web${hyphen}2`)).toMatch(/^.*web-2 is RUNNING/);
      expect(await answerTo(`/vm ｓｈｏｗ ｐａｙｍｅｎｔｓ／ｗｅｂ${hyphen}２`)).toMatch(
        /web-2 is RUNNING/,
      );
      expect(await answerTo(`@gatehouse why is web${hyphen}2 slow?`)).toContain("web-2");
    },
  );

  it("shows a plan for two VMs with a comma between them", async () => {
    await world.olivia.types("ops", "/vm restart web-2, db-1");
    await titleIs("Restart 2 VMs");
    expect(paths()).toEqual([]);
  });

  it("asks with a button what a slip meant, and once more before it interrupts", async () => {
    const said = await answerTo("/vm rstart train-7");
    expect(said).toMatch(
      /^\/vm has no rstart\.\nDid you mean \/vm start train-7 or \/vm restart train-7\?\n\[\/vm start train-7\]\n\[\/vm restart train-7\]/,
    );
    expect(JSON.stringify(world.olivia.seesChannel("ops").messages.at(-1))).toContain(
      "vm restart train-7. What runs there is interrupted.",
    );
    await world.olivia.presses("/vm restart train-7", { confirm: "no" });
    expect(paths()).toEqual([]);
    await world.olivia.presses("/vm restart train-7");
    await hears(world.olivia, "ops", /Restart of train-7/);
  });

  it("never destroys by a guess or an alias: the dialog with the typed name opens", async () => {
    await world.olivia.types("ops", "/project rm staging");
    await titleIs("Delete a project");
    await world.olivia.closes({ all: true });
    await answerTo("/project delte staging");
    await world.olivia.presses("/project delete staging");
    await titleIs("Delete a project");
    expect(await world.store.openIds()).toEqual([]);
    expect(paths()).toEqual([]);
  });
});

describe("a command without its VM", () => {
  it("opens the picker, and runs on what is picked, where it was typed", async () => {
    await world.olivia.types("ops", "/vm restart please");
    await titleIs("Restart a VM");
    await world.olivia.suggests("VM", "web-1");
    await world.olivia.submits({ VM: "web-1 in payments" });
    await hears(world.olivia, "ops", /Restarted payments\/web-1/);
  });

  it("goes on with the form of its own: resize opens with today's numbers", async () => {
    await world.olivia.types("ops", "/vm resize");
    await titleIs("Resize a VM");
    await world.olivia.suggests("VM", "web-2");
    await world.olivia.submits({ VM: "web-2 in payments" });
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("Resizing restarts"));
    const form = JSON.stringify(world.olivia.sees().modals);
    expect(form).toMatch(/"initial_value":"4"/);
    expect(form).toMatch(/"initial_value":"16"/);
    await world.olivia.submits({ CPU: 8 });
    await world.ended("vm resize");
    expect(world.compute.writes()[0]?.body).toEqual({ specs: { cpu: 8, memory: 16 } });
  });

  it("asks about numbers that are rather a slip", async () => {
    await world.olivia.types("ops", "/vm resize db-1 --cpu 400 --memory 1");
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("Resizing restarts"));
    const form = JSON.stringify(world.olivia.sees().modals);
    expect(form).toContain("Is CPU 400 right?* It is 25 times today's.");
    expect(form).toContain("Is memory 1 right?* It is 1/64 of today's.");
  });

  it("shows what a new project needs", async () => {
    await world.olivia.types("ops", "/project create");
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("The type decides"));
    await world.olivia.chooses("Type", "TEE_VM", { in: "modal" });
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("Memory"));
    const [form] = world.olivia.sees().modals;
    const optional = form?.blocks.filter((block) => "optional" in block && block.optional);
    expect(optional).toEqual([]);
    const { options } = await world.olivia.suggests("Region", "");
    expect(options.map(({ value }) => value)).toContain("eu-west-1");
    // Another one may be right: it is doubted at once, and again when it is typed
    await world.olivia.suggests("Region", "eu-wets-1");
    await world.olivia.chooses("Region", "eu-wets-1", { in: "modal" });
    const doubts = () =>
      world.olivia.until(({ modals }) =>
        JSON.stringify(modals).includes("*Is the region eu-wets-1 right?*"),
      );
    await doubts();
    await world.olivia.closes({ all: true });
    await world.olivia.types("ops", "/project create --region eu-wets-1");
    await doubts();
    await world.olivia.closes({ all: true });
  });

  it("asks for a project as well, and what destroys still has its dialog", async () => {
    await world.olivia.types("ops", "/project delete");
    await titleIs("Delete a project");
    await world.olivia.suggests("Project", "docs");
    await world.olivia.submits({ Project: "docs-site" });
    await world.olivia.until(({ modals }) => JSON.stringify(modals).includes("can't be undone"));
    expect(paths()).toEqual([]);
  });

  it("opens a picker for a read, too", async () => {
    await world.vera.types("ops", "/vm show");
    await titleIs("Choose a VM", world.vera);
    await world.vera.suggests("VM", "gpu");
    await world.vera.submits({ VM: "gpu-1 in ml" });
    await hears(world.vera, "ops", /gpu-1 is STOPPED/);
  });

  it("asks nobody who may not run it", async () => {
    await world.vera.types("ops", "/vm restart");
    await hears(world.vera, "ops", /Only @oncall can restart VMs/);
    expect(world.vera.sees().modals).toEqual([]);
  });
});

describe("a mention in a thread", () => {
  let thread = "";
  beforeAll(async () => {
    thread = (await world.vera.types("ops", "what is wrong here?")).ts ?? "";
  });

  it("needs no /vm and no slash, and opens the picker by a button", async () => {
    expect(await answerTo("@gatehouse restart web-2, please", world.olivia, thread)).toMatch(
      /^Restart web-2\? Press the button/,
    );
    const said = await answered("@gatehouse reboot", world.olivia, thread);
    expect(wordsOf(said)).toBe("vm restart needs a VM.\n[Choose a VM]");
    await world.olivia.presses("Choose a VM", { in: said.ts });
    await titleIs("Restart a VM");
    expect(paths()).toEqual([]);
  });

  it("has hints that work there", async () => {
    expect(await answerTo("@gatehouse vm restat web-2", world.olivia, thread)).toMatch(
      /^vm has no restat\.\nDid you mean @gatehouse vm restart web-2\?/,
    );
    expect(await answerTo("@gatehouse vm show nothing-like-it", world.olivia, thread)).toMatch(
      /@gatehouse vm list shows every VM/,
    );
    expect(await answerTo("@gatehouse vms", world.olivia, thread)).toMatch(
      /Did you mean @gatehouse vm\?/,
    );
  });
});

describe("/gatehouse help", () => {
  it("shows five examples that work here, and everything at a press", async () => {
    const help = await answerTo("/gatehouse help");
    const examples = [...help.matchAll(/^\/\S.*?(?= [A-Z])/gm)].map(([words]) => words);
    expect(examples).toHaveLength(5);
    expect(help).toContain("/vm restart db-1 Restart a running VM");
    await world.olivia.presses(/All \d+ commands/.exec(help)?.[0] ?? "");
    await hears(world.olivia, "ops", /\/project delete &lt;project/);
    await world.olivia.presses("/project create …");
    await hears(world.olivia, "ops", /Also: \/project new, \/project add/);
  });
});
