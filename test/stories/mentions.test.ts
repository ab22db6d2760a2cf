import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { everyMessage } from "../../sandbox/slack/state/messages.ts";
import { commands } from "../../src/features/index.ts";
import { auditOf } from "../core/asking.ts";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";
import { isOffered } from "../support/is-offered.ts";

/** Every command as its own example has it, and what has more than one effect in each of its forms. */
const forms: readonly (readonly [words: string, command: string])[] = [
  ...commands.map(({ name, example }) => [example.slice(1), name] as const),
  ["gatehouse digest now", "gatehouse digest"],
  ["gatehouse digest off", "gatehouse digest"],
  ["gatehouse digest handover", "gatehouse digest"],
  ["gatehouse audit export", "gatehouse audit"],
  ["gatehouse audit verify", "gatehouse audit"],
  ["vm restart web-2 web-1 --at-once 2", "vm restart"],
  ['vm restart web-2 --break-glass "the pager rings"', "vm restart"],
];
const words = new Map(forms.filter(([, command]) => isOffered(command)));

describe("a message that mentions Gatehouse", () => {
  let world: TestWorld;
  let thread = "";
  beforeAll(async () => {
    const policy = policyWith({ operate: ["S01ONCALL", "U0ADA"] });
    world = await startWorld({ policy });
    const { edit } = world.compute;
    edit.addProject({ id: "prj-staging", name: "staging", type: "CONTAINER" });
    for (const name of ["web-1", "gpu-1"]) edit.addVm({ project: "payments", name });
    await world.compute.called("GET /v1/projects/prj-staging/vms");
    thread = (await world.vera.types("ops", "what is wrong here?")).ts ?? "";
  });
  afterAll(() => world.close());

  async function answersTo(text: string): Promise<SeenMessage[]> {
    const { ts = "" } = await world.ada.types("ops", `@gatehouse ${text}`, { threadTs: thread });
    const answers = () =>
      world.ada.seesChannel("ops").messages.filter((said) => said.ephemeral && said.ts > ts);
    await world.ada.until(() => answers().length > 0);
    return answers();
  }

  it.each([...words])(
    "does nothing but answer when it says “%s” (decision 005)",
    async (text, of) => {
      const command = commands.find(({ name }) => name === of);
      const before = await kept(world);
      const said = (await answersTo(text)).map(wordsOf).join("\n");
      if (command?.kind === "read" && command.class !== "read")
        // Or to pick one of two, which is a press as well
        expect(said).toMatch(/Press the button|Which one\?/);
      expect(await kept(world)).toEqual(before);
    },
  );

  it.each([
    ["with a file", "@gatehouse restart web-2", { file: "graph.png" }],
    ["also sent to the channel", "@gatehouse restart web-2", { alsoInChannel: true }],
    ["in bold", "@gatehouse *restart web-2*", {}],
    ["with marks around each word", "@gatehouse _restart_ ~*web-2*~", {}],
    ["in code", "@gatehouse `restart web-2`", {}],
    ["after a colon", "@gatehouse: restart web-2", {}],
    ["as a question", "@gatehouse, could you restart web-2?", {}],
    ["in the middle of a sentence", "hey @gatehouse restart web-2 please", {}],
  ] as const)("proposes what its words say, %s", async (_, text, how) => {
    const before = await kept(world);
    const { ts = "" } = await world.ada.types("ops", text, { threadTs: thread, ...how });
    const answers = () =>
      world.ada.seesChannel("ops").messages.filter((said) => said.ephemeral && said.ts > ts);
    await until(() => answers().map(wordsOf).join("\n")).toMatch(/^Restart web-2\? Press/);
    expect(await kept(world)).toEqual(before);
  });

  it("offers a glob for what it matches, and a pair of stars for what is between them", async () => {
    expect((await answersTo("restart web-*")).map(wordsOf).join("\n")).toMatch(
      /web-1[^]*web-2|VMs/,
    );
    const said = (await answersTo("restart *web-2*")).map(wordsOf).join("\n");
    expect(said).toMatch(/^Restart web-2\? Press/);
  });

  it("offers the start of a VM that is stopped to whoever wants it restarted", async () => {
    const said = (await answersTo("restart ml/gpu-1")).map(wordsOf).join("\n");
    expect(said).toBe("gpu-1 is stopped.\n[Start]");
  });

  it("thaws and posts only once its button is pressed", async () => {
    await world.store.freeze({ by: "a test", reason: "storage is failing" });
    for (const [text, button, done] of [
      ["gatehouse thaw", "Run /gatehouse thaw", /Changes are allowed again/],
      ["gatehouse digest now", "Run /gatehouse digest", /The digest is in/],
    ] as const) {
      if (!isOffered(button.slice("Run /".length))) continue;
      const proposal = await answersTo(text);
      await world.ada.presses(button, { in: proposal[0]?.ts ?? "" });
      await hears(world.ada, "ops", done);
    }
    expect(await world.store.freezeState()).toBeUndefined();
  });
});

/** All that anything but a read would change. */
async function kept(world: TestWorld) {
  const trail = await auditOf(world.client, world.key("audit"));
  return {
    writes: world.compute.writes(),
    requests: await world.store.recentIds({}, 1000),
    freeze: await world.store.freezeState(),
    schedules: await world.client.hgetall(world.key("digest-schedules")),
    noted: trail.filter(({ what }) => what !== "refusal"),
    posted: everyMessage(world.slack.workspace).filter(({ botId }) => botId),
  };
}
