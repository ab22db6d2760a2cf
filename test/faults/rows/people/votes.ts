import { setTimeout as sleep } from "node:timers/promises";
import {
  type Pending,
  pendingApprovals,
  press,
  tryPress,
  votesOf,
  voting,
} from "../../people/approvals.ts";
import type { Stage } from "../../stage/stage.ts";
import { changesHands } from "../input/names.ts";
import { type Expectation, fresh, judged, onStage, type Row } from "../row.ts";

/** One stop that waits for approval, then what happens to it, then how it must stand. */
function onApproval({
  receive,
  story,
  ...row
}: Omit<Row, "run" | "unknown"> & {
  receive?: "http";
  story: (stage: Stage, pending: Pending, vm: string) => Promise<Expectation[]>;
}): Row {
  return {
    ...row,
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, policy: voting, ...(receive ? { receive } : {}) }, async (stage) => {
        const vm = await fresh(stage)("vm stop");
        await stage.request("vm stop", vm);
        const [pending] = await pendingApprovals(stage, 1);
        if (!pending) throw new Error("nothing waits");
        const expectations = await story(stage, pending, vm);
        return judged(await stage.check(), expectations);
      }),
  };
}

export const peopleRows: Row[] = [
  onApproval({
    id: "X1",
    fault: "the requester approves their own request",
    must: "it stays a draft without votes",
    story: async (stage, pending) => {
      await press(stage, "olivia", pending);
      stage.faults += 1;
      await sleep(600);
      const [request] = await stage.journal();
      return [
        [
          `still a draft without votes (${request?.state})`,
          request?.state === "draft" && votesOf(request.fields) === 0,
        ],
      ];
    },
  }),
  onApproval({
    id: "X2",
    fault: "the approver leaves the group before it runs",
    must: "it is not executed",
    story: async (stage, pending, vm) => {
      const [worker] = stage.workers();
      await worker?.arm({ point: "gate", do: "wait" });
      await press(stage, "amir", pending);
      await worker?.hit("gate");
      await stage.slack.edit("setGroupMembers", "leads", ["ada"]);
      stage.faults += 1;
      await sleep(1300);
      worker?.go();
      const [request] = await stage.quiet();
      return [
        [
          `not executed: ${request?.state} (${request?.stage.why})`,
          (await stage.service.vm(vm)).stops === 0,
        ],
      ];
    },
  }),
  onApproval({
    id: "X3",
    fault: "people who can't approve press Approve",
    must: "no vote counts, and it stays a draft",
    story: async (stage, pending) => {
      const pressed: string[] = [];
      for (const who of ["vera", "olivia", "gina"]) {
        if (await tryPress(stage, who, pending)) pressed.push(who);
        stage.faults += 1;
      }
      await sleep(600);
      const [request] = await stage.journal();
      return [
        [`those in the channel press it (${pressed.join(", ")})`, pressed.length === 3],
        [
          `no votes (${votesOf(request?.fields)})`,
          votesOf(request?.fields) === 0 && request?.state === "draft",
        ],
      ];
    },
  }),
  onApproval({
    id: "X4",
    fault: "forged button values: another request, another fingerprint",
    must: "no vote counts, and it stays a draft",
    story: async (stage, pending) => {
      // A press of somebody who may not, caught on its way, then changed and signed anew
      await press(stage, "vera", pending);
      type Delivery = { body: string };
      const [caught] = (await stage.slack.question<Delivery[]>("deliveries", "interaction")).slice(
        -1,
      );
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
        const signature = await stage.slack.question<string>("sign", seconds, body);
        await stage.slack.question("sendRaw", body, {
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
    receive: "http",
  }),
  onApproval({
    id: "X5",
    fault: "the policy changes while it waits",
    must: "the request is canceled",
    story: async (stage) => {
      const { writeFile, readFile } = await import("node:fs/promises");
      const path = `${stage.folder}/gatehouse.yml`;
      await writeFile(path, (await readFile(path, "utf8")).replace("required: 1", "required: 2"));
      await Promise.all(stage.bots.map((bot) => bot.kill()));
      await Promise.all([stage.addBot("gateway"), stage.addBot("worker")]);
      stage.faults += 1;
      const request = await stage.until(({ isFinal }) => isFinal);
      await stage.quiet();
      return [[`cancelled, not ${request.state}`, request.state === "cancelled"]];
    },
  }),
  {
    id: "X7",
    fault: "approve and deny at the same time",
    must: "each ends as denied",
    unknown: "none",
    run: ({ seed, times }) => {
      const races = Math.min(300, times * 6);
      return onStage({ seed, workers: 0, policy: voting, vms: races + 20 }, async (stage) => {
        const take = fresh(stage);
        for (let n = 0; n < races; n++) await stage.request("vm stop", await take("vm stop"));
        const drafts = await pendingApprovals(stage, races);
        const presses = await Promise.all(
          drafts.map((draft) =>
            Promise.all([tryPress(stage, "amir", draft), tryPress(stage, "ada", draft, "Deny")]),
          ),
        );
        const both = presses.filter(([yes, no]) => yes && no).length;
        stage.faults += races;
        await sleep(500);
        await stage.addBot("worker");
        const journal = await stage.quiet();
        const denied = journal.filter(({ state }) => state === "denied").length;
        return judged(await stage.check(), [
          [`both were pressed in ${both} of ${races}`, both === races],
          [`${denied} of ${races} denied`, denied === races],
        ]);
      });
    },
  },
  {
    id: "X8",
    fault: "bait and switch by renaming (run as I4)",
    must: "as in I4",
    unknown: "none",
    run: changesHands.run,
  },
  {
    id: "X9",
    fault: "people without rights ask the bot, which has rights",
    must: "no request",
    unknown: "none",
    asksNothing: true,
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
    fault: "a message that looks like a command",
    must: "no request",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const vm = await fresh(stage)("vm restart");
        await stage.slack.act("olivia", "types", "ops", `<@U0GATEHOUSE> vm restart ${vm}`);
        stage.faults += 1;
        await sleep(800);
        return judged(await stage.check(), [["no request", (await stage.journal()).length === 0]]);
      }),
  },
  onApproval({
    id: "X13",
    fault: "a captured approval replayed ten times",
    must: "one vote",
    story: async (stage, pending) => {
      const { deliveryId } = await press(stage, "amir", pending);
      for (let n = 0; n < 10; n++) {
        await stage.slack.question("redeliver", deliveryId);
        stage.faults += 1;
      }
      const [request] = await stage.quiet();
      return [[`one vote (${votesOf(request?.fields)})`, votesOf(request?.fields) === 1]];
    },
    receive: "http",
  }),
  onApproval({
    id: "X14",
    fault: "an insider sets a request to `authorized` in Redis",
    must: "the gate refuses it; nothing is stopped",
    story: async (stage, pending, vm) => {
      await stage.redis.hset(`{${stage.namespace}}:request:${pending.id}`, "state", "authorized");
      stage.faults += 1;
      const request = await stage.until(({ isFinal }) => isFinal);
      const effects = (await stage.service.vm(vm)).stops;
      await stage.quiet();
      return [
        [
          `refused by the gate (${request.state}: ${request.stage.why})`,
          effects === 0 && request.state === "cancelled",
        ],
      ];
    },
  }),
];
