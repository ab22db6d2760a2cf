import { afterAll, beforeEach, expect, it } from "vitest";
import type { Fact } from "../../src/core/facts/fact.ts";
import { defineFeature } from "../../src/features/define-feature.ts";
import { features } from "../../src/features/index.ts";
import { md, name } from "../../src/messages/markdown.ts";
import { calledName } from "../../src/registry/define.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";

const isReadable = { disks: true };

/** Knows a kind of fact that no reader has heard of. */
const disks = defineFeature({
  name: "disks",
  start: () => ({
    facts: {
      name: "how full disks are",
      async read({ targets }) {
        if (!isReadable.disks) throw new Error("nobody answers");
        return targets
          .filter(({ name: vm }) => vm === "web-2")
          .map((target): Fact => ({
            kind: "disk",
            about: target,
            severity: "warning",
            sign: "💽",
            text: md`The disk of ${name(calledName(target))} is 95% full.`,
            blocks: () => "note",
          }));
      },
    },
  }),
});

beforeEach(() => {
  isReadable.disks = true;
});

const world = await startWorld({ features: [...features, disks] });
afterAll(() => world.close());
const { olivia } = world;

/** Every place that tells of a VM, with what starts its answer. */
const readers = [
  ["vm show", "/vm show web-2", /web-2 is RUNNING/],
  ["why", "/gatehouse why web-2", /Show\]/],
  ["can-i", "/gatehouse can-i vm restart web-2", /you can run/],
  ["vm list", "/vm list payments", /VMs in payments/],
  ["project show", "/project show payments", /payments is /],
] as const;

const digestNow = ["/gatehouse digest now", /\d VMs: /] as const;
const handover = ["/gatehouse digest handover", /\d VMs: /] as const;

async function homeText(person: PersonActions, says: RegExp): Promise<string> {
  await person.opensHome();
  const text = () =>
    wordsIn(person.sees().home?.blocks ?? [])
      .join("\n")
      .replaceAll(/[*`\u2060]/g, "");
  await person.until(() => says.test(text()));
  return text();
}

const answerTo = async (typed: string, starts: RegExp) => {
  const before = olivia.seesChannel("ops").messages.length;
  await olivia.types("ops", typed);
  const answers = () => olivia.seesChannel("ops").messages.slice(before).map(wordsOf);
  await olivia.until(() => answers().some((words) => starts.test(words)));
  return answers().join("\n");
};

/** What the form of this change shows, and then what its “What would happen?” answers. */
const formOf = async (typed: string) => {
  await olivia.types("ops", typed);
  const top = () => JSON.stringify(olivia.sees().modals.at(-1)?.blocks ?? []);
  await olivia.until(({ modals }) => modals.length === 1 && !top().includes("Loading"));
  const form = top();
  await olivia.presses("What would happen?");
  await olivia.until(({ modals }) => modals.length === 2 && !top().includes("Loading"));
  const rehearsal = top();
  await olivia.closes({ all: true });
  return { form, rehearsal };
};

it("a new kind of fact is told wherever a VM is, though no reader names it", async () => {
  const full = /💽 The disk of web-2 is 95% full\./;
  const [show, why, can, ...lists] = readers;
  expect(await answerTo(show[1], show[2])).toMatch(full);
  expect(await answerTo(why[1], why[2])).toMatch(full);
  expect(await answerTo(can[1], can[2])).toContain("⚠️ The disk of web-2 is 95% full.");
  for (const [, typed, starts] of lists) expect(await answerTo(typed, starts)).toMatch(full);
  const one = await formOf("/vm resize web-2 --cpu 8 --memory 32");
  expect(one.rehearsal).toMatch(/The disk of `web-2` is 95% full\./);
  const several = await formOf("/vm restart db-1,web-2");
  expect(several.form).toMatch(/• The disk of `web-2` is 95% full\./);
  expect(several.rehearsal).toMatch(/The disk of `web-2` is 95% full\./);
  expect(await homeText(olivia, /Problems/)).toMatch(
    /💽 The disk of payments\/web-2 is 95% full\.\n\[Show\]/,
  );
  expect(await answerTo(...digestNow)).toMatch(/💽 The disk of payments\/web-2 is 95% full\./);
  expect(await answerTo(...handover)).toMatch(/💽 The disk of payments\/web-2 is 95% full\./);
});

it("a source that can't be read is named wherever a VM is told of", async () => {
  isReadable.disks = false;
  const unread = /❔ Not known, because it can't be read now: how full disks are\./;
  for (const [, typed, starts] of readers) expect(await answerTo(typed, starts)).toMatch(unread);
  expect(await answerTo(...digestNow)).toMatch(/Could not be read: how full disks are\./);
  const several = await formOf("/vm restart db-1,web-2");
  expect(several.form).toContain("how full disks are");
  expect(several.rehearsal).toContain("how full disks are");
  // The tab shows the former answer until it is published again.
  expect(await homeText(olivia, unread)).not.toContain("95% full");
  expect(await answerTo("/gatehouse can-i vm restart web-2", /you can run/)).not.toContain(
    "Nothing is known that would stop it",
  );
});

it("a fact about a VM is told to nobody who doesn't see the VM", async () => {
  const teams = `teams: { payments: { projects: [payments], view: [U0OLIVIA], operate: [U0OLIVIA], channel: C01OPS } }\n`;
  await using own = await startWorld({
    features: [...features, disks],
    policy: testPolicy + teams,
  });
  expect(await homeText(own.olivia, /Problems/)).toContain("95% full");
  expect(await homeText(own.vera, /Problems/)).not.toContain("95% full");
  await own.vera.types("ops", "/gatehouse why web-2");
  const answer = wordsOf(await hears(own.vera, "ops", /There is no/));
  expect(answer).not.toContain("95% full");
});
