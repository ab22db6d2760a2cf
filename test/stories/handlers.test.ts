import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { servicesPolicy } from "../../demo/programs.ts";
import { createProposals } from "../../src/features/proposals/proposals.ts";
import { createRollouts } from "../../src/features/rollouts/rollouts.ts";
import { submissionPayload } from "../../sandbox/slack/deliver/payloads.ts";
import { personOf } from "../../sandbox/slack/state/people.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { topModal } from "../../sandbox/slack/state/views.ts";
import type { View } from "../../sandbox/slack/state/records.ts";
import { type FuzzWorld, startFuzzWorld } from "../fuzz/fuzz-world.ts";
import { createTally } from "../fuzz/fuzzed.ts";
import { outcomeOf } from "../fuzz/outcome.ts";
import { readSources } from "../structure/sources.ts";
import { buttonOn, pressPayload } from "./forge.ts";
import { handlersInCode } from "./handlers-in-code.ts";
import { isOffered } from "../support/is-offered.ts";

/**
 * Everything that can be pressed or submitted, and who gets past authority with it: a row for each, a column for each
 * kind of person. A handler that isn't in here fails the build: decide who may use it, then write it down. Commands
 * and `run:` buttons stand in matrix.test.ts. Olivia asked for everything, so she is no approver; Ada broke the glass.
 */
const expected = `
handler               view operate approve administer guest external bot deactivated
vote:approve          -    -       yes     yes        -     -        -   -
vote:deny             -    -       yes     yes        -     -        -   -
review:sign           -    -       yes     -          -     -        -   -
console:open          -    yes     -       -          -     -        -   -
digest:unsnooze       -    yes     -       -          -     -        -   -
digest:snooze         -    yes     -       -          -     -        -   -
menu                  -    yes     -       -          -     -        -   -
lost:run              -    yes     -       -          -     -        -   -
share                 yes  yes     yes     yes        -     -        -   -
request:show          yes  yes     yes     yes        -     -        -   -
request:open          -    yes     -       -          -     -        -   -
request:cancel        -    yes     -       -          -     -        -   -
request:retry         -    yes     -       -          -     -        -   -
request:again         -    yes     -       -          -     -        -   -
request:next          -    yes     -       -          -     -        -   -
request:undo          -    yes     yes     yes        -     -        -   -
request:look          -    yes     -       -          -     -        -   -
request:later         -    yes     -       -          -     -        -   -
request:record        -    yes     -       -          -     -        -   -
request:happened      -    yes     -       -          -     -        -   -
request:not-happened  -    yes     -       -          -     -        -   -
roll:open             -    yes     -       -          -     -        -   -
roll:rehearse         -    yes     -       -          -     -        -   -
roll:leave            -    yes     -       -          -     -        -   -
roll:file             -    yes     -       -          -     -        -   -
roll:pause            -    yes     -       -          -     -        -   -
roll:resume           -    yes     -       -          -     -        -   -
roll:rest             -    yes     -       -          -     -        -   -
roll:again            -    yes     -       -          -     -        -   -
roll:list             -    yes     -       -          -     -        -   -
roll:stop             -    yes     -       -          -     -        -   -
proposal:run          -    yes     -       -          -     -        -   -
proposal:dismiss      -    yes     -       -          -     -        -   -
ask:open              yes  -       yes     yes        -     -        -   -
dialog:refresh        -    yes     -       -          -     -        -   -
form ask              yes  -       yes     yes        -     -        -   -
dialog:rehearse       -    yes     -       -          -     -        -   -
form dialog           -    yes     -       -          -     -        -   -
form roll             -    yes     -       -          -     -        -   -
form denial           -    -       -       -          -     -        -   -
form verdict          -    yes     -       -          -     -        -   -
form proposal-dismissal  -  yes     -       -          -     -        -   -
form review           -    -       yes     -          -     -        -   -
form pick-target      -    yes     -       -          -     -        -   -
`;

const people = ["vera", "olivia", "amir", "ada", "gina", "stan", "deploybot", "dora"];
const rows = expected
  .trim()
  .split("\n")
  .slice(1)
  .map((line) => {
    const [handler = "", ...cells] = line.split(/\s{2,}(?=[-y])|(?<=[-s])\s+(?=[-y])/);
    return { handler, cells: cells.map((cell) => cell.trim()) };
  })
  .filter(({ handler }) => !handler.startsWith("digest:") || isOffered("gatehouse digest"));

const sources = [...readSources(["src"])];

describe("who gets past authority with what can be pressed and submitted", () => {
  let world: FuzzWorld;
  let card: SeenMessage;
  let template: View;
  const values = new Map<string, string>();
  const metadata = new Map<string, string>();
  const tally = createTally();

  beforeAll(async () => {
    // All but restarts wait for approval: a rollout can't
    const approved = ["project.*", "vm.start", "vm.stop", "vm.resize", "vm.snapshot", "vm.restore"];
    world = await startFuzzWorld(tally, {
      approved,
      mayDeliveriesFail: false,
      sections: servicesPolicy,
    });
    const proposals = createProposals(world.client, world.key);
    const target = {
      kind: "vm",
      id: "vm-payments-web-2",
      name: "web-2",
      projectId: "prj-payments",
      projectName: "payments",
      status: "RUNNING",
    } as const;
    await proposals.propose({
      id: "p-0000000000",
      by: { service: "deploy" },
      words: "vm snapshot web-2 before",
      reason: "release 42",
      command: "vm snapshot",
      input: { vm: target.id, name: "before" },
      target,
      labels: {},
      risk: [],
      channelId: "C01OPS",
      expiresAt: (await proposals.now()) + 3_600_000,
    });
    const olivia = world.slack.person("olivia");
    const ops = () => olivia.seesChannel("ops").messages;
    await olivia.types("ops", "/vm stop web-2");
    card = await world.slack.until(() =>
      ops().find((message) => JSON.stringify(message).includes("vote:approve")),
    );
    const { value } = buttonOn(card, "Approve");
    await olivia.types("ops", "/project delete ml");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    template = viewOf(world);
    metadata.set("form dialog", template.privateMetadata);
    await olivia.closes({ all: true });
    await olivia.types("ops", "/vm restart payments/*");
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    const planned = viewOf(world).privateMetadata;
    metadata.set("form roll", planned);
    await olivia.closes({ all: true });
    const { request } = JSON.parse(value) as { request: string };
    metadata.set("form denial", value);
    metadata.set("form verdict", JSON.stringify({ request, happened: true }));
    metadata.set(
      "form pick-target",
      JSON.stringify({ command: "vm restart", channelId: "C01OPS" }),
    );
    await world.slack
      .person("ada")
      .types("ops", '/vm restart db-1 --break-glass "the site is down"');
    await world.slack
      .person("ada")
      .until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    await world.slack.person("ada").submits({ "Type db-1 to confirm": "db-1" });
    const broken = await world.until(({ record, final }) => final && record.breakGlass === true);
    const asked = { command: "vm.stop", input: { vm: ["vm-payments-web-2"] } };
    metadata.set("form ask", JSON.stringify({ ...asked, id: "p-0123456789abcdef", channelId: "" }));
    for (const { handler } of rows) {
      const [kind] = handler.split(":");
      const of: Record<string, string> = {
        roll: planned,
        proposal: JSON.stringify({ proposal: "p-0000000000" }),
        console: JSON.stringify({ vm: "vm-payments-web-2" }),
        ask: JSON.stringify(asked),
        lost: JSON.stringify({ interaction: "command:lost", text: "vm start worker-1" }),
        review: JSON.stringify({ request: broken.record.id }),
        digest: JSON.stringify({ line: "error:0123456789abcdef", hours: 24 }),
        menu: '{"do":"digest:snooze","line":"error:0123456789abcdef","hours":24}',
      };
      values.set(handler, of[kind ?? ""] ?? value);
    }
    metadata.set("form proposal-dismissal", values.get("proposal:run") ?? "");
    metadata.set("form review", values.get("review:sign") ?? "");
    await world.idle();
  });
  afterAll(() => world.close());

  it("is written down here for every action and every form there is, and for none that isn't", () => {
    expect(rows.map(({ handler }) => handler).toSorted()).toEqual(handlersInCode());
    for (const { handler, cells } of rows) expect(cells, handler).toHaveLength(people.length);
  });

  it("is everything that Slack hands to us: one app, whose listeners stand in one file", () => {
    const given = sources.filter(([, text]) => /\bnew App\(|\bextends App\b/.test(text));
    expect(given.map(([path]) => path)).toEqual(["src/slack/receive/app.ts"]);
    const listening = sources.filter(([, text]) =>
      /\bapp\.(command|action|view|options|shortcut|event|message|function)[(<]/.test(text),
    );
    expect(listening.map(([path]) => path)).toEqual(["src/slack/receive/listeners.ts"]);
    const text = listening[0]?.[1] ?? "";
    const kinds = [...text.matchAll(/\bapp\.(\w+)[(<]/g)].map(([, kind]) => kind);
    expect(new Set(kinds)).toEqual(
      new Set(["command", "event", "action", "view", "shortcut", "options"]),
    );
  });

  const refused = rows.map(({ handler, cells }) => {
    const whom = people.filter((_, n) => cells[n] === "-");
    return { handler, whom, names: whom.join(", ") };
  });

  it.each(refused)("$handler does nothing for $names", async ({ handler, whom }) => {
    const before = await everything(world, metadata.get("form roll") ?? "");
    for (const who of whom) await world.post(payload(handler, who));
    await world.idle();
    expect(await everything(world, metadata.get("form roll") ?? "")).toBe(before);
    expect(tally.result().crashes).toEqual([]);
  });

  function payload(handler: string, who: string): object {
    const [form, callback] = handler.split(" ");
    const privateMetadata = metadata.get(handler) ?? template.privateMetadata;
    const view = { ...template, id: world.slack.workspace.newId("V"), privateMetadata };
    const person = personOf(world.slack.workspace, who);
    if (form === "form") {
      const text = (block: string, value: string) => ({
        [block]: { [block]: { type: "plain_text_input", value } },
      });
      const state = {
        ...text("confirm", "ml"),
        ...text("reason", "over and done"),
        ...text("roll:most", "1"),
        ...text("roll:failures", "1"),
        ...text("vm", "vm-payments-web-2"),
        ...text("channel", "C01OPS"),
      };
      return submissionPayload(world.slack.workspace, person, {
        ...view,
        callbackId: callback ?? "",
        state,
      });
    }
    const press = pressPayload(world, who, card, {
      action: handler,
      value: values.get(handler) ?? "",
    });
    if (form !== "dialog:refresh" && form !== "dialog:rehearse") return press;
    const state = { values: {} };
    return {
      ...press,
      view: {
        id: view.id,
        type: "modal",
        hash: view.hash,
        private_metadata: privateMetadata,
        callback_id: "dialog",
        state,
      },
    };
  }
});

function viewOf(world: FuzzWorld): View {
  const view = topModal(world.slack.workspace, "U0OLIVIA");
  if (!view) throw new Error("there is no dialog");
  return view;
}

/** What a handler could have changed, and what it could have shown: no dialog was opened or filled. */
async function everything(world: FuzzWorld, rollout: string): Promise<string> {
  const { roll: id } = JSON.parse(rollout) as { roll: string };
  const counts = world.slack.callCounts();
  return JSON.stringify([
    await outcomeOf(world),
    await createRollouts(world.client, world.key).get(id),
    (await createProposals(world.client, world.key).get("p-0000000000"))?.state,
    ["views.open", "views.push", "views.update"].map((method) => counts[method] ?? 0),
  ]);
}
