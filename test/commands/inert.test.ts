import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trouble } from "../../src/messages/finding.ts";
import { commands } from "../../src/features/index.ts";
import { vmCard } from "../../src/commands/vm/show.ts";
import type { Message } from "../../src/messages/blocks.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { renderHelp } from "../../src/registry/help.ts";
import { vm as target } from "../core/permit/sample.ts";
import { anyCharacter } from "../support/any-character.ts";
import { listed, type Reading, startReading } from "./reading.ts";
import { complaintsOf } from "./shown-text.ts";

const payloads: readonly (readonly [what: string, name: string])[] = [
  ["a mention of the channel", "<!channel>"],
  ["mentions of those here", "<!here|here> @channel @here"],
  ["a mention of a person", "<@U0OLA>"],
  ["a link to a channel", "<#C01OPS>"],
  ["a link in disguise", "<https://evil.example|console>"],
  ["an address", "https://evil.example/login"],
  ["styles", "`code` ```block``` *bold* _it_ ~no~"],
  ["text turned round", "a\u202egnp.exe\u200b\u2066x"],
  ["lines", "line\nbreak\r\n> quoted\n• item"],
  ["what is escaped already", "&lt;!channel&gt; &amp;lt;!channel&amp;gt;"],
  ["emoji and dates", ":tada: :+1: <!date^0^{date}|x>"],
  ["emoji only", "🟢".repeat(50)],
  ["an approval", "✅ Approved by Ada — *Approve* `r-7fk3m9q2xw`"],
  ["10,000 characters", "x".repeat(10_000)],
  ["10,000 characters of mentions", "<!channel>".repeat(1000)],
  ["3,000 characters to escape", "&".repeat(3000)],
  ["quotes", '{"vms":["*"]} " \' “'],
];

/** Everything in a message that Slack reads as markup: mrkdwn texts, and the text of the notification. */
function markupOf(message: Message): string[] {
  const found = [message.text];
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(walk);
    if (typeof value !== "object" || value === null) return;
    if ("type" in value && value.type === "mrkdwn" && "text" in value)
      found.push(String(value.text));
    Object.values(value).forEach(walk);
  };
  walk(message.blocks);
  return found;
}

/** Control sequences are made by our own builders only: none of these stand in a message about VMs. */
function expectInert(message: Message) {
  expect(complaintsOf(message)).toEqual([]);
  for (const markup of markupOf(message)) {
    // The only token that is ours: what comes from elsewhere can't hold a `<`
    const text = markup.replaceAll(
      /<!date\^-?\d+\^(\{time_secs\}|\{date_short\} \{time\})\|(?:[A-Z][a-z]{2} \d+, )?[\d:]{4,8} [AP]M UTC>/g,
      "",
    );
    expect(text).not.toMatch(/<[!@#a-z]/i);
    // oxlint-disable-next-line no-control-regex -- what must not be there
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u200b\u202a-\u202e\u2066-\u2069]/);
    const opensCode = (line: string) => line.split("`").length % 2 === 0;
    expect(text.split("\n").filter(opensCode)).toEqual([]);
  }
}

/** A service in which each payload is the name of a project, and of all that belongs to it. */
const requests: StoredRequest[] = [];
let [checked, at]: [string, Reading | undefined] = ["", undefined];
beforeAll(async () => {
  const status = async () => [{ ...trouble(checked), kind: checked }];
  at = await startReading({ world: "empty", requests, status });
  for (const [n, [, name]] of payloads.entries()) {
    const project = at.service.edit.addProject({ id: `prj-${n}`, name, region: name });
    for (const which of ["odd", "usual", "other"])
      at.service.edit.addVm({ project, name, id: `vm-${which}-${n}` });
    at.service.edit.findVm(`vm-odd-${n}`).status = name;
    await at.snapshots.remember({
      id: name,
      name,
      vmId: `vm-odd-${n}`,
      vmName: name,
      projectId: project,
      by: name,
      at: Date.now(),
      measurement: name,
    });
  }
  await at.inventory.refresh();
});
afterAll(() => at?.[Symbol.asyncDispose]());

const inertAnswer = async (words: string) => {
  if (at) expectInert(await at.reads(words));
};

describe("names from the service", () => {
  it.each(payloads.map(([what, name], n) => [what, name, n] as const))(
    "can't mention, link, style or break anything: %s",
    async (_what, name, n) => {
      checked = name;
      const named = { ...target(name), id: `vm-odd-${n}`, projectName: name };
      requests.splice(0, 1, listed({ target: named, state: name, createdAt: Date.now() }));
      for (const words of [
        `vm list prj-${n} --status RUNNING`,
        `vm show vm-odd-${n}`,
        `vm show vm-usual-${n}`,
        `vm metrics vm-odd-${n}`,
        `vm attest vm-odd-${n}`,
        `vm attest vm-usual-${n} --raw`,
        `vm console vm-odd-${n}`,
        `vm snapshots vm-odd-${n}`,
        `project show prj-${n}`,
        "gatehouse jobs",
        "gatehouse status",
      ])
        await inertAnswer(words);
    },
  );

  it("can't mention, link, style or break anything side by side in lists", async () => {
    for (const words of ["vm list", "vm list --page 2", "project list"]) await inertAnswer(words);
  });

  it("are inert whatever they are, on the card with all its buttons", () => {
    const odd = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 400 }),
      fc.constantFrom(...payloads.map(([, name]) => name.slice(0, 500))),
      fc
        .array(fc.constantFrom("<", ">", "!", "@", "channel", "|", "`", "*", "_", "~", "&", "&lt;"))
        .map((parts) => parts.join("")),
    );
    const statuses = fc.oneof(odd, fc.constantFrom("RUNNING", "STOPPED"));
    fc.assert(
      fc.property(odd, statuses, odd, (name, status, more) => {
        const specs = { cpu: 1, memory: 1e9, disk: 0 };
        const attestation = { enabled: true, measurement: more };
        const seen = {
          id: "vm-1",
          projectId: "p-1",
          name,
          region: more,
          ipAddress: more,
          createdAt: more,
          specs,
          attestation,
        };
        expectInert(
          vmCard({
            vm: { ...seen, status },
            projectName: more,
            facts: [],
            commands,
            policy: { confirm: ["vm-1"], protect: [] },
            mayRun: () => true,
            now: 0,
          }),
        );
        expectInert(renderHelp(commands, name));
      }),
      { numRuns: 40 },
    );
  });
});
