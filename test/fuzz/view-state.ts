import { commands } from "../../src/features/index.ts";
import { checkInput } from "../../src/registry/parse.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { submissionPayload } from "../../sandbox/slack/deliver/payloads.ts";
import { personOf } from "../../sandbox/slack/state/people.ts";
import type { View } from "../../sandbox/slack/state/records.ts";
import type { SeenState } from "../../sandbox/slack/seen.ts";
import { topModal } from "../../sandbox/slack/state/views.ts";
import { createRollouts } from "../../src/features/rollouts/rollouts.ts";
import {
  createTally,
  type Fuzzed,
  type FuzzOptions,
  isPrototypeClean,
  sampled,
  withHands,
} from "./fuzzed.ts";
import { type FuzzWorld, startFuzzWorld } from "./fuzz-world.ts";
import { anySubmission, type Entered, type Submitted } from "./view-cases.ts";

/** All but `vm restart`, which several VMs can be asked for at once: a rollout takes no approvals. */
const approved = ["project.*", "vm.start", "vm.stop", "vm.resize", "vm.snapshot", "vm.restore"];

/**
 * Submitted dialogs in which everything that a client holds was changed: what they carry, which dialog they are, what
 * was typed. A request may come only of what the same person could have asked for in words: of those who operate, on what is there and isn't protected,
 * with the name typed where something is destroyed. All of them go over HTTP.
 */
export async function fuzzViewState({ cases, seed }: FuzzOptions): Promise<Fuzzed> {
  const tally = createTally();
  await using world = await startFuzzWorld(tally, { approved, mayDeliveriesFail: true });
  const opened = await openDialogs(world);
  const { template, rollout } = opened;
  const truth = world.compute.truth();
  const known = new Map(
    [...Object.values(truth.vms), ...Object.values(truth.projects)].map(({ id, name }) => [
      id,
      name,
    ]),
  );
  const targets = [...known.keys(), ...known.values()];
  await world.slack.person("olivia").types("ops", "/vm stop web-2");
  await world.slack.until(() => world.slack.messages().length > 0);
  await world.idle();
  const before = (await world.requests()).map(({ record }) => record.id);
  const sent = new Map<string, Submitted>();
  const any = anySubmission({ metadata: opened.metadata, rollout, targets, requests: before });
  await withHands(16, sampled(any, { cases, seed }), async (one, n) => {
    tally.count();
    const view: View = {
      ...template,
      id: `V0FUZZ${n}`,
      callbackId: one.callback,
      privateMetadata: one.metadata,
      state: stateOf(one.values),
    };
    const person = personOf(world.slack.workspace, one.who);
    sent.set(`submission:${view.id}:${view.hash}:${person.id}`, one);
    const began = performance.now();
    const { status, said } = await world.post(
      submissionPayload(world.slack.workspace, person, view),
    );
    tally.took(performance.now() - began);
    if (status !== 200 && status !== 403)
      tally.crash(`${status} ${said.slice(0, 100)} for ${JSON.stringify(one)}`);
  });
  await world.idle();

  const made = (await world.requests()).filter(({ record }) => !before.includes(record.id));
  const interactions = await world.client.mget(
    [...sent.keys()].map((id) => world.key("ask", `form ${id}`)),
  );
  const madeBy = new Map([...sent.values()].map((one, n) => [interactions[n] ?? "", one]));
  for (const request of made) {
    tally.accept();
    const one = madeBy.get(request.record.id);
    const fault = one === undefined ? "nobody asked for it" : faultOf(request, one, known);
    if (fault !== undefined)
      tally.wrong(`${fault}: ${JSON.stringify(one)} made ${JSON.stringify(request.record)}`);
  }
  for (const { record, state } of made)
    if (!/^(draft|cancelled|expired)$/.test(state) && record.command !== "vm restart")
      tally.wrong(`${record.id} is ${state} though nobody approved it`);
  const asked = made
    .filter(({ record }) => record.command === "vm restart")
    .map(({ record }) => `/v1/vms/${record.target.id}/restart`);
  for (const { path } of world.compute.writes())
    if (!asked.includes(path)) tally.wrong(`${path} reached the service`);
  const stands = await createRollouts(world.client, world.key).get(rollout);
  if (stands?.state !== "planned")
    tally.wrong(`the rollout is ${stands?.state} though nobody typed the number`);
  if (!isPrototypeClean()) tally.wrong("a prototype was changed");
  return tally.result(
    "all over HTTP with right signatures; accepted are those that the same person could have asked for in words",
  );
}

/** Right dialogs, opened by somebody who may, and a rollout over all VMs that nobody has said yes to. */
async function openDialogs(world: FuzzWorld) {
  const olivia = world.slack.person("olivia");
  const metadata: string[] = [];
  let template: View | undefined;
  const words = [
    "/project delete ml",
    "/vm restore db-1 snap-1",
    "/vm resize web-2 --cpu 8 --memory 32",
    "/project create",
    "/vm restart *",
  ];
  for (const text of words) {
    await olivia.types("ops", text);
    await olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    const view = topModal(world.slack.workspace, "U0OLIVIA");
    if (!view) throw new Error(`${text} opened no dialog`);
    metadata.push(view.privateMetadata);
    template ??= view;
    await olivia.closes({ all: true });
  }
  const rollout = /"roll":"([^"]+)"/.exec(metadata.at(-1) ?? "")?.[1];
  if (!template || rollout === undefined) throw new Error("there is no roll");
  return { metadata, template, rollout };
}

/** Why this request may not have come of this submission, or undefined. */
function faultOf(
  { record }: StoredRequest,
  { who, metadata, values }: Submitted,
  known: ReadonlyMap<string, string>,
): string | undefined {
  if (who !== "olivia" || record.requester.id !== "U0OLIVIA") return "somebody who may not asked";
  const carried = JSON.parse(metadata) as { command: unknown };
  if (record.command !== carried.command) return "another command than the dialog's";
  const command = commands.find(({ name }) => name === record.command);
  if (command?.kind !== "change") return "not a command that changes something";
  const { target } = record;
  if (command.on !== "new-project" && known.get(target.id) !== target.name)
    return "a target that isn't there";
  const kept = /^vm (stop|resize|restore)|^project (delete|update)/.test(record.command);
  if (kept && /vault/.test(target.name)) return "a protected name";
  if ("problems" in checkInput(command, record.input)) return "arguments that no words could say";
  if (command.class !== "destroy") return undefined;
  if (seen(values["confirm"]) !== seen({ text: target.name, as: "input" }))
    return "the name was not typed";
  return (values["reason"]?.text.trim().length ?? 0) < 3 ? "no reason was given" : undefined;
}

/** A text as one sees it. */
const seen = (entered: Entered | undefined) =>
  entered?.text
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[\p{Cc}\p{Cf}]/gu, "")
    .trim() ?? "";

function stateOf(values: Submitted["values"]): SeenState {
  const element = ({ text, as }: Entered) =>
    ({
      input: { type: "plain_text_input", value: text },
      option: {
        type: "external_select",
        selected_option: { text: { type: "plain_text", text }, value: text },
      },
      user: { type: "users_select", selected_user: text },
      list: {
        type: "checkboxes",
        selected_options: [{ text: { type: "plain_text", text }, value: text }],
      },
    })[as];
  const blocks = Object.entries(values).map(([block, entered]) => [
    block,
    { [block]: element(entered) },
  ]);
  return Object.fromEntries(blocks) as SeenState;
}
