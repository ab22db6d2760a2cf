import type { ChangeCommand, Target } from "../../src/registry/define.ts";
import type { Input } from "../../src/registry/invocation.ts";
import { md } from "../../src/messages/markdown.ts";
import { renderCard } from "../../src/core/cards/render-card.ts";
import { renderResult } from "../../src/core/cards/render-result.ts";
import type { RequestRecord } from "../../src/core/request/record.ts";
import { formOfOne } from "../../src/talk/form-view.ts";
import { type About, type Example, at } from "./example.ts";
import { recordOf, seenAs, sent, stageOf, stored, vmTarget } from "./requests.ts";

/** What one change is made of. */
export interface Changed {
  input?: Input;
  target?: (about: About) => Target;
  labels?: RequestRecord["labels"];
}

/** The messages that every change has: the form, the question, the card, and the result. */
export function examplesOfChange(
  command: ChangeCommand,
  { input = {}, target: targetOf = ({ vm }) => vmTarget(vm), labels = {} }: Changed = {},
): readonly Example[] {
  const { name } = command;
  const record = (about: About) =>
    recordOf(about, { command: name, input, labels, target: targetOf(about) });
  const requested = (about: About) => stored(about, { record: record(about) });
  const running = (about: About) =>
    stored(about, { record: record(about) }, stageOf("accepted", sent(about)));
  const done = (about: About) => {
    const after = seenAs(
      about.vm,
      command.on === "vm" && name === "vm stop" ? "STOPPED" : "RUNNING",
    );
    return stored(about, { record: record(about) }, stageOf("done", { ...sent(about), after }));
  };
  const form = (about: About) =>
    formOfOne({
      command,
      facts: { target: targetOf(about), seen: undefined, vms: [], snapshots: [], input },
      meta: { command: name, targetId: targetOf(about).id, channelId: "C01OPS" },
      approvals: md`One other person must approve it.`,
      isRehearsed: true,
      now: at,
    });
  return [
    { name: `/${name}: its form`, make: form },
    {
      name: `/${name}: waits for approval`,
      reader: "approver",
      make: (about) => renderCard(requested(about), command),
    },
    { name: `/${name}: under way`, make: (about) => renderCard(running(about), command) },
    { name: `/${name}: its card at the end`, make: (about) => renderCard(done(about), command) },
    {
      name: `/${name}: its result`,
      reader: "requester",
      make: (about) => renderResult(done(about), command),
    },
  ];
}
