import { setTimeout as sleep } from "node:timers/promises";
import { approve, onApproval, votesOf } from "../on-approval.ts";
import { pendingApprovals, voting } from "../approving.ts";
import { fresh, judged, onStage, type Row } from "../row.ts";

export const peopleRows: Row[] = [
  onApproval("X1", "the requester approves their own request", async (stage, pending) => {
    await approve(stage, "olivia", pending);
    stage.faults += 1;
    await sleep(600);
    const [request] = await stage.journal();
    return [
      [
        `still a draft without votes (${request?.state})`,
        request?.state === "draft" && votesOf(request.fields) === 0,
      ],
    ];
  }),
  onApproval("X2", "the approver leaves the group before it runs", async (stage, pending, vm) => {
    const [worker] = stage.workers();
    await worker?.arm({ point: "gate", do: "wait" });
    await approve(stage, "amir", pending);
    await worker?.hit("gate");
    await stage.slack.edit("setGroupMembers", "leads", ["ada"]);
    stage.faults += 1;
    await sleep(1300);
    worker?.go();
    const [request] = await stage.quiet();
    return [
      [
        `not executed: ${request?.state} (${request?.progress.why})`,
        (await stage.service.vm(vm)).stops === 0,
      ],
    ];
  }),
  onApproval("X3", "people who may not approve press it", async (stage, pending) => {
    for (const who of ["vera", "olivia", "gina"]) {
      await approve(stage, who, pending).catch(() => undefined);
      stage.faults += 1;
    }
    await sleep(600);
    const [request] = await stage.journal();
    return [
      [
        `no votes (${votesOf(request?.fields)})`,
        votesOf(request?.fields) === 0 && request?.state === "draft",
      ],
    ];
  }),
  onApproval(
    "X4",
    "forged button values: another request, another digest",
    async (stage, pending) => {
      // A press of somebody who may, caught on its way, then changed and signed anew
      await approve(stage, "vera", pending).catch(() => undefined);
      type Delivery = { body: string };
      const [caught] = (await stage.slack.ask<Delivery[]>("deliveries", "interaction")).slice(-1);
      const payload = JSON.parse(new URLSearchParams(caught?.body).get("payload") ?? "{}") as {
        user: { id: string };
        trigger_id: string;
        actions: { value: string }[];
      };
      payload.user.id = "U0AMIR";
      const [action] = payload.actions;
      const good = action?.value ?? "";
      const forged = [
        good.replace(/[0-9a-f]{16}/, "0".repeat(16)),
        good.replace(pending.id, "r-2222222222"),
        "{}",
        "",
        good.slice(0, -3),
      ];
      for (const [n, value] of forged.entries()) {
        if (action) action.value = value;
        payload.trigger_id = `9.${n}`;
        const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
        const seconds = Math.floor(Date.now() / 1000);
        const signature = await stage.slack.ask<string>("sign", seconds, body);
        await stage.slack.ask("sendRaw", body, {
          "content-type": "application/x-www-form-urlencoded",
          "x-slack-request-timestamp": String(seconds),
          "x-slack-signature": signature,
        });
        stage.faults += 1;
      }
      await sleep(800);
      const [request] = await stage.journal();
      return [
        [
          `no votes (${votesOf(request?.fields)})`,
          votesOf(request?.fields) === 0 && request?.state === "draft",
        ],
      ];
    },
    { receive: "http" },
  ),
  onApproval("X5", "the policy changes while it waits", async (stage) => {
    const { writeFile, readFile } = await import("node:fs/promises");
    const path = `${stage.folder}/gatehouse.yml`;
    await writeFile(path, (await readFile(path, "utf8")).replace("required: 1", "required: 2"));
    await Promise.all(stage.bots.map((bot) => bot.kill()));
    await Promise.all([stage.addBot("gateway"), stage.addBot("worker")]);
    stage.faults += 1;
    const request = await stage.until(({ isFinal }) => isFinal);
    await stage.quiet();
    return [[`cancelled, not ${request.state}`, request.state === "cancelled"]];
  }),
  {
    id: "X7",
    what: "approve and deny at the same time",
    run: ({ seed, times }) => {
      const races = Math.min(300, times * 6);
      return onStage({ seed, workers: 0, policy: voting, vms: races + 20 }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < races; n++) await stage.ask("vm stop", await take("vm stop"));
        const drafts = await pendingApprovals(stage, races);
        await Promise.all(
          drafts.flatMap((draft) => [
            approve(stage, "amir", draft).catch(() => undefined),
            approve(stage, "ada", draft, "Deny").catch(() => undefined),
          ]),
        );
        stage.faults += races;
        await sleep(500);
        await stage.addBot("worker");
        const journal = await stage.quiet();
        const denied = journal.filter(({ state }) => state === "denied").length;
        return judged(await stage.check(), [[`${denied} of ${races} denied`, denied === races]]);
      });
    },
  },
  {
    id: "X8",
    what: "bait and switch by renaming",
    run: async (how) => {
      const { inputRows } = await import("./input.ts");
      const row = inputRows.find(({ id }) => id === "I4");
      return row ? row.run(how) : { holds: false, notes: ["no I4"] };
    },
  },
  {
    id: "X9",
    what: "people without rights ask the bot, which has them",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const vm = await fresh(stage)("vm restart");
        for (const who of ["vera", "amir", "gina"]) {
          await stage.slack.act(who, "types", "ops", `/vm restart ${vm}`);
          stage.faults += 1;
        }
        await sleep(500);
        return judged(await stage.check(), [["no request", (await stage.journal()).length === 0]]);
      }),
  },
  {
    id: "X10",
    what: "a message that looks like a command changes nothing",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const vm = await fresh(stage)("vm restart");
        await stage.slack.act("olivia", "types", "ops", `<@U0GATEHOUSE> vm restart ${vm}`);
        stage.faults += 1;
        await sleep(800);
        return judged(await stage.check(), [["no request", (await stage.journal()).length === 0]]);
      }),
  },
  onApproval(
    "X13",
    "a captured approval replayed ten times",
    async (stage, pending) => {
      const { deliveryId } = await approve(stage, "amir", pending);
      for (let n = 0; n < 10; n++) {
        await stage.slack.ask("redeliver", deliveryId);
        stage.faults += 1;
      }
      const [request] = await stage.quiet();
      return [[`one vote (${votesOf(request?.fields)})`, votesOf(request?.fields) === 1]];
    },
    { receive: "http" },
  ),
  onApproval(
    "X14",
    "an insider sets a request to authorized in Redis",
    async (stage, pending, vm) => {
      await stage.redis.hset(`{${stage.namespace}}:request:${pending.id}`, "state", "authorized");
      stage.faults += 1;
      const request = await stage.until(({ isFinal }) => isFinal);
      const effects = (await stage.service.vm(vm)).stops;
      await stage.quiet();
      return [
        [
          `refused by the gate (${request.state}: ${request.progress.why})`,
          effects === 0 && request.state === "cancelled",
        ],
      ];
    },
  ),
];
