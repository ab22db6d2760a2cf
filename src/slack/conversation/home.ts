import { setTimeout as sleep } from "node:timers/promises";
import { blocksInWords } from "../../charts/in-words.ts";
import { inventoryAge } from "../../commands/inventory-age.ts";
import { restart } from "../../commands/vm/restart.ts";
import { show } from "../../commands/vm/show.ts";
import type { KnownVm } from "../../inventory/inventory.ts";
import { failsWords, firstOf, redFirst } from "../../inventory/known.ts";
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
import { scopeOfPerson } from "../../policy/access.ts";
import { mayRun } from "../../policy/permit.ts";
import type { Person } from "../../registry/invocation.ts";
import { recentRequests } from "../../requests/journal/lists.ts";
import { waitsFor } from "../../requests/journal/open-seats.ts";
import type { StoredRequest } from "../../requests/journal/stored-request.ts";
import { stateWords } from "../../requests/journal/stage.ts";
import { askingRow, deedOf } from "../../requests/render/asking.ts";
import {
  decidedLine,
  headline,
  insteadInError,
  refusedInError,
  symbolOf,
} from "../../requests/render/render-result.ts";
import { changesSince } from "../../requests/render/since-request.ts";
import { targetOf } from "../../requests/submit/resolve-targets.ts";
import { textAt } from "../json.ts";
import type { Interaction, Press } from "../receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { frozenLine, maySeeNames } from "./authorize.ts";
import type { HomeSection } from "./contributions.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  changeNamed,
  personOf,
} from "./gateway-context.ts";
import { press } from "./press.ts";
import { replyWithError } from "./reply-with-error.ts";
import { targetButton } from "./run.ts";
import { originOf } from "./act-origin.ts";

const maxOfEach = 8;
/** Of the open requests only the newest are read: the page is built each time somebody looks. */
const maxRead = 200;

/** What stands above the rest after a press there. */
interface News {
  said?: Message | undefined;
  /** The request that the press was about. */
  request?: string | undefined;
}

/** False when Slack doesn't show it. */
export async function showHome(
  act: BeforeAck<Pick<Interaction, "userId" | "teamId">>,
  news: News = {},
): Promise<boolean> {
  const { gateway } = act;
  const person = await personOf(act);
  const blocks =
    person.kind === "member"
      ? [...(await newsBlocks(news, gateway)), ...(await homeBlocks(person, gateway))]
      : [section(md`Only full members of the workspace can use this.`)];
  const publish = (some: readonly Block[]) =>
    gateway.web.call("views.publish", {
      user_id: act.interaction.userId,
      view: { type: "home", blocks: some.slice(0, 100) },
    });
  let answer = await publish(blocks);
  const words = blocksInWords(blocks);
  // Charts and tables that Slack refuses there
  if (!answer.ok && answer.kind === "refused" && words) answer = await publish(words);
  if (!answer.ok) gateway.log.warn("slack.home-failed", { ...answer });
  return answer.ok;
}

async function newsBlocks({ said, request: id }: News, gateway: GatewayContext): Promise<Block[]> {
  const request = id === undefined ? undefined : await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  if (!request || !command) return said ? [...said.blocks, divider] : [];
  const line = md`${symbolOf(request, command)} *${deedOf(request.record, command)}*: ${stateWords(request.state)}`;
  const by = decidedLine(request);
  const ended = request.final && headline(request, command);
  return [...(said?.blocks ?? []), section(lines(line, by, ended)), divider];
}

/** How long what a press there began is followed (ms), and how often it is looked at. */
const followedForMs = 120_000;
const followEveryMs = 500;
/** The newest press of each person. */
const followed = new Map<string, symbol>();

/** A press on the Home tab is answered there, at once, and again when what it began moves on. */
export async function pressedAtHome(act: Act<Press>): Promise<void> {
  const { interaction, reply, gateway } = act;
  let said: Message | undefined;
  const onHome = async (message: Message) => void (said = message);
  await replyWithError({ ...act, reply: { ...reply, privately: onHome, instead: onHome } }, press);
  const named = textAt(parseJson(interaction.value), "request");
  const request = named || (await gateway.store.madeBy(originOf(act)))?.record.id;
  const news = { said, request };
  const shown = request === undefined ? "" : await stateOf(request, gateway);
  await showHome(act, news);
  if (request !== undefined) void follow(act, { said, request }, shown).catch(() => undefined);
}

async function stateOf(id: string, { store }: Pick<GatewayContext, "store">): Promise<string> {
  const request = await store.get(id);
  return `${request?.state} ${request?.votes.length} ${request?.final ?? true}`;
}

/** `shown`: the state that stands there at least. */
async function follow(act: Act<Press>, news: News & { request: string }, shown: string) {
  const { userId } = act.interaction;
  const mine = Symbol(userId);
  followed.set(userId, mine);
  const until = performance.now() + followedForMs;
  let last = shown;
  while (followed.get(userId) === mine) {
    const state = await stateOf(news.request, act.gateway);
    if (state !== last) await showHome(act, news);
    last = state;
    if (state.endsWith("true") || performance.now() > until) followed.delete(userId);
    else await sleep(followEveryMs, undefined, { ref: false });
  }
}

async function homeBlocks(person: Person, gateway: GatewayContext): Promise<Block[]> {
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
  const contributed = await Promise.all(
    gateway.contributed.home.map((part) => part({ vms, seesAll })),
  );
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
  { policy, ourTeamId, store }: GatewayContext,
): Promise<Block[]> {
  const last = await recentRequests({ targetId: vm.id, most: 10 }, store);
  const refused = refusedInError({ vm, last });
  const target = targetOf(vm);
  const [look, change] = [show, restart].map((command) =>
    !refused.has(command.name) &&
    (command === show || vm.status === "ERROR") &&
    mayRun({ person, command, targets: [target] }, { policy, ourTeamId })
      ? targetButton(command, {}, target, policy)
      : undefined,
  );
  const instead = refused.size > 0 ? md` ${insteadInError}` : "";
  const what = md`🔴 ${quoted(vm.name)} in ${vm.projectName} is ${vm.status}${failsWords(failure)}.${instead}`;
  return [section(what, look), ...buttons(change ? [change] : [])];
}

function row({ record, state, changedAt }: StoredRequest, now: number) {
  return md`• ${record.command} ${quoted(record.target.name)}: ${stateWords(state)}, ${duration(now - changedAt)} ago (${quoted(record.id)})`;
}
