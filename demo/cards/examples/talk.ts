import { chooseTarget, openPicker } from "../../../src/talk/pick-target.ts";
import { rehearsalView } from "../../../src/talk/open-rehearsal.ts";
import { vmTable } from "../../../src/talk/shortcut.ts";
import { denialModal } from "../../../src/talk/vote.ts";
import { openView } from "../../../src/talk/form.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { start } from "../../../src/commands/vm/start.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { commands } from "../../../src/commands/index.ts";
import { PickOne } from "../../../src/core/submit/resolve-targets.ts";
import { UserError } from "../../../src/errors.ts";
import { ComputeError } from "../../../src/fleet/compute/compute.ts";
import { silentLog } from "../../../src/log/log.ts";
import { name } from "../../../src/messages/markdown.ts";
import { errorReply, sayNo } from "../../../src/slack/error-reply.ts";
import { problemIn } from "../../../src/slack/receive/form-refusal.ts";
import { runButton } from "../../../src/registry/define.ts";
import type { Act } from "../../../src/talk/gateway-context.ts";
import { lostReply } from "../../../src/talk/lost-replies.ts";
import { pickList, pressToGoOn, pressToRun, valueList } from "../../../src/talk/run-buttons.ts";
import { smallTalk, whatItIsFor } from "../../../src/talk/sentence.ts";
import { md } from "../../../src/messages/markdown.ts";
import { type About, type Example, type Shown, at } from "../example.ts";
import { olivia, readingOf, someOf, vmsOf } from "../reading.ts";
import { denied, vmTarget } from "../requests.ts";

const gatewayOf = (about: About) => readingOf(about, commands);

const failure = (kind: ComputeError["kind"], over: object = {}) =>
  errorReply(
    new ComputeError(
      kind,
      "POST /v1/vms/{vm_id}/restart",
      "POST /v1/vms/{vm_id}/restart: failed",
      over,
    ),
    silentLog(),
  );

/** What an act shows last. `viewId`: of the form that it opens; Slack opens none without one. */
async function shownBy(
  about: About,
  run: (act: Act) => Promise<unknown>,
  viewId?: string,
): Promise<Shown> {
  const all: Shown[] = [];
  const show = async (shown: Shown) => void all.push(shown);
  const reading = gatewayOf(about);
  const gateway = {
    ...reading,
    store: reading.journal,
    log: silentLog(),
    person: async () => olivia(about),
  };
  const interaction = { channelId: "", userId: "U0OLIVIA", teamId: "T0OURS" };
  const reply = {
    async open(view: Shown) {
      await show(view);
      return viewId;
    },
    update: (_id: string, view: Shown) => show(view),
    privately: show,
  };
  await run(someOf<Act>({ gateway, interaction, reply } as unknown as Partial<Act>));
  const last = all.at(-1);
  if (!last) throw new Error("nothing was shown");
  return last;
}

const thanked = (text: string) => {
  const said = smallTalk(text, commands);
  if (!said) throw new Error(`nothing to say to ${text}`);
  return said;
};

export const examples: readonly Example[] = [
  {
    name: "an answer that Slack lost",
    reader: "requester",
    make: ({ vm }) => lostReply({ answered: name(`/vm list ${vm}`) }),
    push: "Slack lost Gatehouse's answer to /vm list db-1. Please try again.",
  },
  {
    name: "a change that has not run, because Slack lost the answer to it",
    reader: "requester",
    make: ({ vm }) => lostReply({ answered: name(`/vm restart ${vm}`), hasNotRun: true }),
    push: "/vm restart db-1 has not run: Slack was unavailable.",
  },
  {
    name: "a read that Slack lost, with a button",
    reader: "requester",
    make: ({ vm }) =>
      lostReply({
        answered: name(`/vm show ${vm}`),
        again: [runButton("Show it now", "vm.show", { vm }, vm)],
      }),
    push: "Slack was unavailable when Gatehouse answered /vm show db-1.",
  },
  {
    name: "a request whose answer Slack lost",
    reader: "requester",
    make: ({ vm }) =>
      lostReply({
        answered: name(`/vm restart ${vm}`),
        made: { id: "r-7fk3m9q2xw", state: "accepted" },
      }),
    push: "/vm restart db-1 was requested: running.",
  },
  {
    name: "a refusal",
    make: ({ vm }) =>
      sayNo(md`You can't stop ${name(vm)}.\nOnly @oncall can.`, {
        smallPrint: "Rule: `teams.payments.operate` in gatehouse.yml.",
        offers: [{ label: "Ask @oncall to do it", action: "ask:open", value: "{}" }],
      }),
  },
  {
    name: "a mistake",
    make: ({ vm }) =>
      errorReply(
        new UserError(`There is no VM called ${vm}.`, "`/vm list` shows every VM you can see."),
        silentLog(),
      ),
  },
  { name: "a fault of Gatehouse", make: () => errorReply(new Error("a bug"), silentLog()) },
  { name: "a compute service that can't be reached", make: () => failure("unreachable") },
  { name: "a compute service that is busy", make: () => failure("busy") },
  { name: "a compute service that gave no clear answer", make: () => failure("unclear") },
  {
    name: "a compute service that refused",
    make: () => failure("refused", { status: 403, serviceMessage: "quota exceeded" }),
  },
  { name: "an API key that was refused", make: () => failure("refused", { status: 401 }) },
  {
    name: "a choice among VMs of one name",
    make: (about) => {
      const others = [vmTarget(about.vm), vmTarget(about.vm, { id: "vm-2", projectName: "shop" })];
      const pick = new PickOne(`2 VMs are called ${about.vm}. Which one?`, others, true);
      const act = someOf<Act>({ gateway: gatewayOf(about) as never });
      return pickList({ command: restart, input: {} }, pick, act);
    },
  },
  {
    name: "a choice among values of one name",
    make: () =>
      valueList(restart, {
        message: "2 snapshots are called nightly.",
        choices: [
          ["nightly of 11:48 AM", {}],
          ["nightly of 2:00 AM", {}],
        ],
      } as never),
  },
  {
    name: "a change that was mentioned",
    make: ({ vm }) => pressToGoOn(restart, { vms: [vmTarget(vm).id] }, vmTarget(vm), commands),
  },
  {
    name: "a change that was mentioned, where another one helps",
    make: ({ vm }) => {
      const stopped = vmTarget(vm, { status: "STOPPED" });
      return pressToGoOn(restart, { vms: [stopped.id] }, stopped, [restart, start]);
    },
  },
  { name: "a command without a target that was mentioned", make: () => pressToRun(restart, {}) },
  { name: "thanks", make: () => thanked("thanks!") },
  { name: "undo", make: () => thanked("undo") },
  {
    name: "what Gatehouse is for",
    make: (about) => whatItIsFor(olivia(about), "C01OPS", gatewayOf(about)),
  },
  {
    name: "what Gatehouse is for, to somebody without a right",
    make: (about) => whatItIsFor(olivia(about), "C01OPS", { ...gatewayOf(about), commands: [] }),
  },
  {
    name: "the form that asks for a VM",
    make: (about) => shownBy(about, (act) => openPicker({ command: restart, input: {} }, act)),
  },
  {
    name: "a form that is loading",
    make: (about) =>
      shownBy(about, (act) => openView("Restart a VM", async () => ({}) as never, act)),
  },
  {
    name: "the answer to What would happen?",
    make: ({ vm }) =>
      rehearsalView(
        {
          deed: `Stop ${vm} (payments)`,
          approval: md`One other person must approve it: amir or ada could now.`,
          frozen: undefined,
          lines: [md`It usually takes 12 s.`, md`⚠️ *${vm}* has an alert firing.`],
        },
        at,
      ),
  },
  {
    name: "the form that asks why it was denied",
    make: (about) => denialModal(denied(about), stop),
  },
  { name: "the VMs that a message names", make: (about) => vmTable(vmsOf(about)) },
  { name: "a message that names no VM", make: () => vmTable([]) },
  {
    name: "a form that can't be shown",
    make: (about) => {
      const fails = () =>
        Promise.reject(new UserError("web-2 is gone.", "`/vm list` shows others."));
      return shownBy(about, (act) => openView("Restart a VM", fails, act), "V1");
    },
  },
  {
    name: "why something was not taken, in place of a form without inputs",
    make({ vm }) {
      const { action } = problemIn({ title: { text: "Restart a VM" } }, `${vm} is gone.`);
      if (action.response_action !== "update") throw new Error("nothing was replaced");
      return action.view as Shown;
    },
  },
  {
    name: "a command without its VM, where Slack opens no form",
    make: (about) => {
      const message = "/vm restart needs a VM.";
      const lacks = { message, named: { command: restart, input: {} } };
      return shownBy(about, (act) => chooseTarget(lacks, act));
    },
  },
];
