import { answersTo, hears } from "../../people/hearing.ts";
import { looking } from "../../stage/looking.ts";
import { type Expectation, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import { wishFor } from "../../people/wishes.ts";
import { deletePolicy, deleteWish } from "../service/deletes.ts";

const vm = "vm-0000-001";
/** Look like numbers, or like none. */
const badNumbers = ["1e9", "0x10", "1,5", "٣", "NaN", "1.5", "½", "Infinity", "99999999", "0"];
const pasted = ["--yes", "--force", "--yes --force", "--no-preserve-root", "—force", "-y", "-f"];

/** Types it and resolves with the answer, which nobody else sees. */
async function answerTo(stage: Stage, words: string): Promise<string> {
  const before = (await answersTo(stage, "olivia")).length;
  await stage.slack.act("olivia", "types", "ops", words);
  stage.faults += 1;
  return looking(
    async () => (await answersTo(stage, "olivia"))[before],
    5000,
    async () => `${words} gets no answer`,
  );
}

/** Nothing asked for, nothing sent, nothing to submit. */
async function untouched(stage: Stage): Promise<Expectation[]> {
  const made = await stage.journal();
  const writes = await stage.service.writes();
  const { modals } = await stage.slack.seen("olivia");
  return [
    [`no request (${made.map(({ command }) => command).join(", ")})`, made.length === 0],
    [`nothing was sent (${writes.length})`, writes.length === 0],
    ["no dialog stands open", modals.length === 0],
  ];
}

/** Longer than a section, without any letter, or both; the service may send any of them. */
const oddNames = [
  "x".repeat(3001),
  "🔥".repeat(60),
  "🔥".repeat(1600),
  "👩‍👩‍👧‍👦",
  "\u202e\u200b",
  "`".repeat(300),
  "<&>".repeat(1001),
  "​ ​",
];

export const shapeRows: Row[] = [
  {
    id: "I5",
    fault: "odd numbers for a resize",
    must: "each is refused, saying what fits",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const wrong: string[] = [];
        for (const number of badNumbers) {
          const answer = await answerTo(stage, `/vm resize ${vm} --cpu ${number} --memory 8`);
          if (!/cpu must be a whole number from 1 to \d+/.test(answer))
            wrong.push(`${number}: ${answer}`);
        }
        for (const number of ["-1", "", "+4"])
          await answerTo(stage, `/vm resize ${vm} --cpu ${number} --memory 8`);
        const typed = await untouched(stage);
        await stage.slack.act("olivia", "types", "ops", `/vm resize ${vm}`);
        await stage.slack.until("olivia", ({ modals }) =>
          modals.some(({ submit }) => submit !== ""),
        );
        for (const number of [...badNumbers, "-1", "+4"]) {
          const { errors } = await stage.slack.act("olivia", "submits", {
            CPU: number,
            Memory: "8",
          });
          stage.faults += 1;
          if (Object.keys(errors ?? {}).join() !== "arg:cpu") wrong.push(`${number} on its field`);
        }
        await stage.slack.act("olivia", "closes", { all: true });
        return judged(await stage.check(), [
          ...typed,
          ...(await untouched(stage)),
          [
            `each is refused in words that say what fits (${wrong.join(" / ")})`,
            wrong.length === 0,
          ],
        ]);
      }),
  },
  {
    id: "I6",
    fault: "names of 3,001 characters, of only emoji, and more names than a message has blocks",
    must: "Slack takes every message; each VM can be restarted",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, policy: deletePolicy }, async (stage) => {
        const ids: string[] = [];
        for (let n = 0; n < 90; n++) {
          const name = n < oddNames.length ? (oddNames[n] ?? "") : "🔥".repeat((n % 40) + 1);
          const id = `vm-odd-${n}`;
          await stage.service.edit("addVm", { project: "prj-0000", name, id });
          ids.push(id);
          stage.faults += 1;
        }
        await looking(
          async () => ((await answerTo(stage, "/vm list")).includes("110") ? true : undefined),
          15_000,
          async () => "the new ones are not listed",
        );
        for (const words of ["--page 2", "--page 3", "prj-0000", "--csv"])
          await answerTo(stage, `/vm list ${words}`);
        await answerTo(stage, "/project show prj-0000");
        await answerTo(stage, "/project list");
        for (const id of ids.slice(0, oddNames.length)) {
          await answerTo(stage, `/vm show ${id}`);
          await stage.request("vm restart", id);
        }
        await stage.quiet();
        await stage.slack.act("olivia", "opensHome");
        await wishFor(stage, deleteWish("prj-0000"), { who: "olivia", channel: "ops" });
        await hears(stage, "amir", /Delete team-0000/);
        const refused = (await stage.slack.calls()).filter(({ ok }) => !ok);
        const journal = await stage.journal();
        const restarted = journal.filter(({ state }) => state === "done").length;
        return judged(await stage.check(), [
          [
            `Slack takes every message (${refused.map((call) => `${call.method} ${call.error}`).join(", ")})`,
            refused.length === 0,
          ],
          [`each can be restarted (${restarted})`, restarted === oddNames.length],
        ]);
      }),
  },
  {
    id: "I7",
    fault: "flags pasted from a runbook",
    must: "each answer says that nothing was done; no request",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, policy: deletePolicy }, async (stage) => {
        const wrong: string[] = [];
        for (const flags of pasted) {
          for (const words of [`/vm stop ${vm}`, "/project delete team-0000"]) {
            const answer = await answerTo(stage, `${words} ${flags}`);
            if (!/Nothing was done/.test(answer)) wrong.push(`${words} ${flags}: ${answer}`);
          }
        }
        return judged(await stage.check(), [
          ...(await untouched(stage)),
          [`each answer says that nothing was done (${wrong.join(" / ")})`, wrong.length === 0],
        ]);
      }),
  },
];
