import { setTimeout as sleep } from "node:timers/promises";
import type { SlackMessage } from "../../check/find-silence.ts";
import { startApprovers } from "../../people/approvers.ts";
import { fillSlack } from "../../people/people.ts";
import type { Stage } from "../../stage/stage.ts";
import { type Expectation, fresh, judged, onStage, type Row } from "../row.ts";

/** A team decides in #status what is requested in #ops. */
const policy = `teams:
  everything:
    projects: ["*"]
    view: ["*"]
    operate: ["S01ONCALL"]
    approve: ["S02LEADS"]
    channel: C02STATUS
approvals:
  - { operations: ["vm.stop"], required: 1, expires: 60s }
`;

/** Each step of the card in the team's channel and of the message that links to it. */
const steps = [
  { point: "posting", nth: 1, what: "the card is marked" },
  { point: "posted", nth: 1, what: "the card is posted, and nobody noted it" },
  { point: "link", nth: 1, what: "the card stands, without its link" },
  { point: "posting", nth: 2, what: "the link is marked" },
  { point: "posted", nth: 2, what: "the link is posted, and nobody noted it" },
] as const;

export const teamCardRows: Row[] = [
  {
    id: "S18",
    fault: "a process killed at each step between a card in a team's channel and its link",
    must: "card, link, and both results are in Slack once",
    unknown: "none",
    run: ({ seed, times }) =>
      onStage({ seed, policy, gateways: 0, workers: 0, vms: 60 }, async (stage) => {
        await fillSlack(stage);
        const take = fresh(stage);
        const met = new Set<string>();
        const rounds = Math.max(1, Math.ceil(times / 50));
        for (let round = 0; round < rounds; round++)
          for (const { what, ...rule } of steps) {
            const doomed = await stage.addBot("gateway");
            await stage.connected(1);
            await doomed.arm({ ...rule, do: "kill" });
            await stage.request("vm stop", await take("vm stop"), { channel: "ops" });
            const until = performance.now() + 10_000;
            while (!doomed.isGone() && performance.now() < until) await sleep(50);
            if (doomed.isGone()) {
              stage.faults += 1;
              met.add(what);
            }
            const after = await Promise.all([stage.addBot("gateway"), stage.addBot("worker")]);
            const approvers = startApprovers(stage, () => 0.9);
            await allEnded(stage);
            await approvers.end();
            await stage.quiet(60_000);
            await Promise.all([doomed, ...after].map((bot) => bot.kill()));
          }
        return judged(await stage.check(), [
          [`killed where ${[...met].join("; ")}`, met.size === steps.length],
          ...(await inBothPlaces(stage)),
        ]);
      }),
  },
];

async function allEnded(stage: Stage): Promise<void> {
  const until = performance.now() + 30_000;
  while (performance.now() < until) {
    const journal = await stage.journal();
    if (journal.length === stage.asked.length && journal.every(({ isFinal }) => isFinal)) return;
    await sleep(100);
  }
}

/** Messages are known by their metadata. */
async function inBothPlaces(stage: Stage): Promise<Expectation[]> {
  const journal = await stage.journal();
  const messages: readonly SlackMessage[] = await stage.slack.messages();
  const count = (id: string, channelId: string, key: string) =>
    messages.filter((message) => {
      const { request, said, covers } = message.metadata?.event_payload ?? {};
      const keys = [said, ...(typeof covers === "string" ? covers.split(" ") : [])];
      return request === id && message.channelId === channelId && keys.includes(key);
    }).length;
  const isOnce = (channelId: string, key: string) =>
    journal.every(({ id }) => count(id, channelId, key) === 1);
  return [
    [`${journal.length} requests, all approved`, journal.every(({ state }) => state === "done")],
    ["one card each in the team's channel", isOnce("C02STATUS", "card")],
    ["one result each in its thread", isOnce("C02STATUS", "result")],
    ["one link each where it was requested", isOnce("C01OPS", "asked")],
    ["one answer each where it was requested", isOnce("C01OPS", "answer")],
  ];
}
