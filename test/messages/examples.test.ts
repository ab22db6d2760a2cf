import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { type Example, type Shown, endless, usual } from "../../demo/cards/example.ts";
import { readExamples } from "../../demo/cards/index.ts";
import { each } from "../../demo/cards/requests.ts";
import { complaintsAbout } from "../../sandbox/slack/blocks/check.ts";
import { commands } from "../../src/features/index.ts";
import { type Message } from "../../src/messages/blocks.ts";
import { card } from "../../src/messages/card.ts";
import { asPost, maxNews } from "../../src/messages/notification.ts";
import { type Markdown, md, mention, name } from "../../src/messages/markdown.ts";
import { complaintsOf, shownText } from "../commands/shown-text.ts";

const groups = await readExamples();
const examples = groups.flatMap((group) => group.examples);
const named = examples.map((example): [string, Example] => [example.name, example]);

const isMessage = (shown: Shown): shown is Message => !("type" in shown);

async function messageOf({ make }: Example, about = usual): Promise<Message> {
  const shown = await make(about);
  if (isMessage(shown)) return shown;
  throw new Error("it is a form");
}

/** What Slack would refuse. */
const refused = (shown: Shown): string[] =>
  isMessage(shown)
    ? complaintsOf(shown)
    : complaintsAbout(shown.blocks, shown.type, "/view/blocks", () => false);

/** What no locked phone can show: IDs of people, requests, and VMs, and Slack's markup. */
const unreadable =
  /<[@#!]|[*`]|&(?:lt|gt|amp);|\.\.|\b(r|roll)-[a-z0-9]{8,}\b|\b[UCT]0[A-Z0-9]+\b|vm-payments-|_/;

/**
 * How many messages of a file have no example: forms and answers that only a whole world opens,
 * which stories tell, and the audit trail, which is read from Redis.
 */
const untold = {
  "src/commands/audit-page.ts": 3,
  "src/commands/gatehouse/audit.ts": 4,
  "src/commands/gatehouse/can-i.ts": 1,
  "src/features/ask/ask.ts": 1,
  "src/features/break-glass/sign-review.ts": 1,
  "src/features/digests/post-due.ts": 1,
  "src/features/digests/press-digest.ts": 1,
  "src/features/proposals/press-proposal.ts": 1,
  "src/operate/open-api.ts": 1,
  "src/talk/form.ts": 1,
  "src/talk/submit-change.ts": 1,
};

/** What is said of a feature goes with it. */
const ofFilesHere = (counts: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(counts).filter(([file]) =>
      existsSync(new URL(`../../${file}`, import.meta.url)),
    ),
  );

/** Features that make no message of their own. */
const silent = ["ask", "mcp", "reads", "rehearsal"];

describe("the examples of messages", () => {
  it("have a name each", () => {
    const names = examples.map((example) => example.name);
    expect(names.filter((one, n) => names.indexOf(one) !== n)).toEqual([]);
  });

  it("tell of each command", () => {
    const names = examples.map((example) => example.name);
    const without = commands.filter(
      (command) => !names.some((one) => `${one}:`.match(new RegExp(`^/${command.name}[:, ]`))),
    );
    expect(without.map((command) => command.name)).toEqual([]);
  });

  it("of a feature stand in a file that has its name", () => {
    const features = readdirSync(new URL("../../src/features/", import.meta.url), {
      withFileTypes: true,
    }).flatMap((entry) => (entry.isDirectory() ? entry.name : []));
    const telling = groups.map(({ group }) => group);
    const silentHere = silent.filter((feature) => features.includes(feature));
    expect(features.filter((feature) => !telling.includes(feature))).toEqual(silentHere);
  });

  it("have one for each place in src that makes a message", async () => {
    const worker = new Worker(new URL("count-unmade.ts", import.meta.url));
    const [unmade] = await once(worker, "message");
    await worker.terminate();
    expect(unmade).toEqual(ofFilesHere(untold));
  });
});

describe("what Slack shows", () => {
  it.each(named)("is taken by Slack, with usual and with endless names: %s", async (_, example) => {
    for (const about of [usual, endless]) expect(refused(await example.make(about))).toEqual([]);
  });

  it("is cut to what Slack takes where a list is longer than a message, and counts the others", async () => {
    const long = examples.flatMap((example) => (example.long ? { example, ...example.long } : []));
    expect(long.length).toBeGreaterThan(2);
    for (const { example, many, rest } of long) {
      const made = await messageOf(example);
      const blocks = made.blocks.filter(({ type }) => type !== "actions");
      const text = shownText({ ...made, blocks });
      const shown = each(many, (n) => `vm-${n}-`).filter((one) => text.includes(one)).length;
      expect(shown, example.name).toBeGreaterThan(4);
      expect(shown, example.name).toBeLessThan(many);
      expect(shownText(made), example.name).toContain(rest(many - shown));
      expect(shownText(made), example.name).not.toContain("more not shown");
    }
  });
});

describe("what a locked phone shows", () => {
  const notifying = named.filter(([, { reader }]) => reader !== undefined);

  it.each(notifying)("of %s", async (_, example) => {
    const { text } = asPost(await messageOf(example));
    if (example.push !== undefined) expect(text).toBe(example.push);
    for (const about of [usual, endless]) {
      const posted = asPost(await messageOf(example, about));
      expect(posted.text.length).toBeLessThanOrEqual(maxNews);
      expect(posted.text).not.toMatch(unreadable);
    }
  });

  const shown = (title: Markdown) => asPost(card({ title })).text;

  it("is cut between words, and never inside of an escaped sign", () => {
    expect(shown(md`${"word ".repeat(60)}`)).toMatch(/^(word ){28}word…$/);
    expect(shown(md`${"&".repeat(80)}`)).toMatch(/^(&amp;)+…$/);
    expect(shown(md`${mention("U0ADA")} *done* ${name("x")} (r-7fk3m9q2xw)`)).toBe("done x");
  });
});
