import { inventoryAge } from "../../commands/inventory-age.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import { failsWords, firstOf, redFirst } from "../../fleet/inventory/known.ts";
import {
  type Block,
  type Markdown,
  type Message,
  buttons,
  context,
  divider,
  duration,
  header,
  lines,
  md,
  name as quoted,
  section,
} from "../../messages/message.ts";
import { scopeOfPerson } from "../../core/permit/access.ts";
import { mayRun } from "../../core/permit/permit.ts";
import type { Person } from "../../registry/invocation.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { waitsFor } from "../../core/request/open-seats.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords } from "../../core/request/stage.ts";
import { askingRow, deedOf } from "../../core/cards/asking.ts";
import {
  decidedLine,
  headline,
  insteadInError,
  refusedInError,
  symbolOf,
} from "../../core/cards/render-result.ts";
import { changesSince } from "../../core/cards/since-request.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import { frozenLine, maySeeNames } from "../../talk/authorize.ts";
import type { HomePart, HomeSection } from "../home-part.ts";
import { type GatewayContext, changeNamed } from "../../talk/gateway-context.ts";
import { targetButton } from "../../talk/run.ts";
import { isChange } from "../../registry/define.ts";

const maxOfEach = 8;
/** Of the open requests only the newest are read: the page is built each time somebody looks. */
const maxRead = 200;

/** What stands above the rest after a press there. */
export interface News {
  said?: Message | undefined;
  /** The request that the press was about. */
  request?: string | undefined;
}

/** What became of a press, in front of what the tab always shows. */
export async function newsBlocks(
  { said, request: id }: News,
  gateway: GatewayContext,
): Promise<Block[]> {
  const request = id === undefined ? undefined : await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  if (!request || !command) return said ? [...said.blocks, divider] : [];
  const line = md`${symbolOf(request, command)} *${deedOf(request.record, command)}*: ${stateWords(request.state)}`;
  const by = decidedLine(request);
  const ended = request.final && headline(request, command);
  return [...(said?.blocks ?? []), section(lines(line, by, ended)), divider];
}

/** `parts`: what features show there. */
export async function homeBlocks(
  person: Person,
  gateway: GatewayContext,
  parts: readonly HomePart[],
): Promise<Block[]> {
  const { store } = gateway;
  await gateway.inventory.upToDate();
  const [open, openCount, mine, state, frozen, failing] = await Promise.all([
    store.recentIds({ open: true }, maxRead).then((ids) => store.getMany(ids.toReversed())),
    store.openCount(),
    recentRequests({ requesterId: person.id, most: maxOfEach }, store),
    gateway.inventory.state(),
    frozenLine(gateway),
    gateway.drift.failing(),
  ]);
  const waiting = open.filter((request) => waitsFor(person, request, gateway));
  const asked = header("Waiting for you");
  const askingRows =
    waiting.length === 0
      ? [section(md`Nothing is waiting for your approval.`)]
      : (
          await Promise.all(
            waiting.slice(0, maxOfEach).map(async (request) => {
              const command = changeNamed(request.record.command, gateway);
              if (!command) return [];
              // The same facts as on the card in the channel: a vote from here counts as much
              const since = await changesSince(request, { ...gateway, journal: store });
              return askingRow(request, command, { mayVote: true, since });
            }),
          )
        ).flat();
  if (openCount > maxRead) {
    const more = md`${openCount} requests are open, and only the ${maxRead} newest are on this page. ${quoted("/gatehouse approvals")} shows all that wait.`;
    askingRows.push(context(more));
  }
  if (!maySeeNames(person, gateway)) {
    const where =
      Object.keys(gateway.policy.teams).length === 0
        ? quoted("access.view")
        : md`${quoted("view")} of a team or of ${quoted("access")}`;
    const hint = md`You can't see more here: it requires ${where} in gatehouse.yml.`;
    return [asked, ...askingRows, section(hint)];
  }
  const running = open.filter((request) => request.state !== "draft");
  const vms = await gateway.inventory.vms();
  const seesAll = scopeOfPerson(gateway.policy, person, gateway.ourTeamId) === undefined;
  const contributed = await Promise.all(parts.map((part) => part({ vms, seesAll })));
  const isRed = ({ id, status }: KnownVm) => status === "ERROR" || failing.has(id);
  const trouble = firstOf(vms.filter(isRed), maxOfEach, redFirst(failing));
  const list = (requests: readonly StoredRequest[], none: Markdown) =>
    section(requests.length > 0 ? lines(...requests.map((one) => row(one, gateway.now()))) : none);
  const troubleRows = await Promise.all(
    trouble.map((vm) => troubleRow(vm, failing.get(vm.id), person, gateway)),
  );
  return [
    ...(frozen ? [section(frozen), divider] : []),
    asked,
    ...askingRows,
    ...contributed.flatMap(contributedBlocks),
    header("Running"),
    list(running.slice(0, maxOfEach), md`Nothing is running.`),
    header("Problems"),
    ...(trouble.length > 0
      ? troubleRows.flat()
      : [section(md`No VM is in ERROR or fails attestation.`)]),
    header("Your recent requests"),
    list(mine, md`You have no requests yet. ${quoted("/gatehouse help")} shows what you can run.`),
    context(
      md`${state.vms} VMs in ${state.projects} projects. ${inventoryAge(state, gateway.now())}`,
    ),
  ];
}

function contributedBlocks({ title, lines: all }: HomeSection): Block[] {
  if (all.length === 0) return [];
  const ofAll = all.length > maxOfEach ? `: the newest ${maxOfEach} of ${all.length}` : "";
  const rows = all.slice(0, maxOfEach).map(({ text, button }) => section(text, button));
  return [header(`${title}${ofAll}`), ...rows];
}

/** Without what the compute service refused for its ERROR; what interrupts is below what looks. */
async function troubleRow(
  vm: KnownVm,
  failure: string | undefined,
  person: Person,
  { policy, ourTeamId, store, commands }: GatewayContext,
): Promise<Block[]> {
  const last = await recentRequests({ targetId: vm.id, most: 10 }, store);
  const refused = refusedInError({ vm, last });
  const target = targetOf(vm);
  const offered = commands
    .filter((command) => command.inTrouble === true)
    .filter((command) => !isChange(command) || vm.status === "ERROR")
    .filter(({ name }) => !refused.has(name))
    .filter((command) => mayRun({ person, command, targets: [target] }, { policy, ourTeamId }));
  const buttonsOf = (areChanges: boolean) =>
    offered
      .filter((command) => isChange(command) === areChanges)
      .map((command) => targetButton(command, {}, target, policy));
  const [look] = buttonsOf(false);
  const instead = refused.size > 0 ? md` ${insteadInError(commands)}` : "";
  const what = md`🔴 ${quoted(vm.name)} in ${vm.projectName} is ${vm.status}${failsWords(failure)}.${instead}`;
  return [section(what, look), ...buttons(buttonsOf(true))];
}

function row({ record, state, changedAt }: StoredRequest, now: number) {
  return md`• ${record.command} ${quoted(record.target.name)}: ${stateWords(state)}, ${duration(now - changedAt)} ago (${quoted(record.id)})`;
}
