import { setTimeout as sleep } from "node:timers/promises";
import { restart } from "../../commands/vm/restart.ts";
import { show } from "../../commands/vm/show.ts";
import { refusedInError } from "../../commands/vm/show.ts";
import type { KnownVm } from "../../inventory/inventory.ts";
import { recentRequests } from "../../requests/journal/lists.ts";
import { headline, insteadInError, symbolOf } from "../../requests/render/render-result.ts";
import {
  type Block,
  buttons,
  context,
  divider,
  header,
  type Message,
  section,
} from "../../messages/message.ts";
import { duration, lines, md, name } from "../../messages/text.ts";
import { mayRun } from "../../policy/refusal.ts";
import type { Person } from "../../registry/invocation.ts";
import { waitsFor } from "../../requests/journal/open-needs.ts";
import { type StoredRequest, stateWords } from "../../requests/journal/record.ts";
import { askingRow, deedOf } from "../../requests/render/asking.ts";
import { decidedLine } from "../../requests/render/card-view.ts";
import type { Interaction, Press } from "../receive/interaction.ts";
import { parseJson, textAt } from "../web.ts";
import { maySeeNames } from "./authorize.ts";
import { targetOf } from "../../requests/submit/resolve.ts";
import { runButton } from "./run.ts";
import {
  type Act,
  type BeforeAck,
  changeNamed,
  type GatewayContext,
  personOf,
} from "./gateway-context.ts";

const maxOfEach = 8;
/** Of the open requests only the newest are read: the page is built each time somebody looks. */
const maxRead = 200;

/** What stands above the rest after a press there. */
interface News {
  /** Gatehouse's answer. */
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
  const answer = await gateway.web.call("views.publish", {
    user_id: act.interaction.userId,
    view: { type: "home", blocks: blocks.slice(0, 100) },
  });
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
export async function pressedAtHome(
  act: Act<Press>,
  press: (act: Act<Press>) => Promise<void>,
): Promise<void> {
  const { interaction, reply, gateway } = act;
  let said: Message | undefined;
  const onHome = async (message: Message) => void (said = message);
  await press({ ...act, reply: { ...reply, privately: onHome, instead: onHome } });
  const named = textAt(parseJson(interaction.value), "request");
  const request = named || (await gateway.store.madeBy(interaction.id))?.record.id;
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
  const [open, openCount, mine, state, frozen] = await Promise.all([
    store.recentIds({ open: true }, maxRead).then((ids) => store.getMany(ids.toReversed())),
    store.openCount(),
    store.recentIds({ requesterId: person.id }, maxOfEach).then((ids) => store.getMany(ids)),
    gateway.inventory.state(),
    store.freezeState(),
  ]);
  const waiting = open.filter((request) => waitsFor(person, request, gateway));
  const asked = header("Waiting for you");
  const askingRows =
    waiting.length === 0
      ? [section(md`Nothing is waiting for your approval.`)]
      : waiting.slice(0, maxOfEach).flatMap((request) => rowOfAsking(request, gateway));
  if (openCount > maxRead)
    askingRows.push(
      context(
        md`${openCount} requests are open, and only the ${maxRead} newest are on this page. ${name("/gatehouse approvals")} shows all that wait.`,
      ),
    );
  if (!maySeeNames(person, gateway)) {
    const hint = md`You can't see more here: it requires ${name("access.view")} in gatehouse.yml.`;
    return [asked, ...askingRows, section(hint)];
  }
  const running = open.filter((request) => request.state !== "draft");
  const trouble = (await gateway.inventory.vms({ status: "ERROR" })).slice(0, maxOfEach);
  const rowOf = (request: StoredRequest) => row(request, gateway.now());
  const { refreshedAt } = state;
  const age = refreshedAt ? `read ${duration(gateway.now() - refreshedAt)} ago` : "not read yet";
  const why = frozen?.reason ? md`: ${frozen.reason}` : "";
  const list = (requests: readonly StoredRequest[]) => [section(lines(...requests.map(rowOf)))];
  const troubleRows = await Promise.all(trouble.map((vm) => troubleRow(vm, person, gateway)));
  return [
    ...(frozen ? [section(md`🧊 *All changes are frozen* by ${frozen.by}${why}.`), divider] : []),
    asked,
    ...askingRows,
    header("Running"),
    ...(running.length > 0
      ? list(running.slice(0, maxOfEach))
      : [section(md`Nothing is running.`)]),
    header("Problems"),
    ...(trouble.length > 0 ? troubleRows.flat() : [section(md`No VM is in ERROR.`)]),
    header("Your recent requests"),
    ...(mine.length > 0
      ? list(mine)
      : [
          section(md`You have no requests yet. ${name("/gatehouse help")} shows what you can run.`),
        ]),
    context(
      md`${state.vms} VMs in ${state.projects} projects, ${age}${state.stale ? ", may be old" : ""}.`,
    ),
  ];
}

/** Without what the compute service refused for its ERROR. */
async function troubleRow(
  vm: KnownVm,
  person: Person,
  { policy, ourTeamId, store }: GatewayContext,
): Promise<Block[]> {
  const last = await recentRequests({ targetId: vm.id, most: 10 }, store);
  const refused = refusedInError({ vm, last });
  const offered = [show, restart].filter(
    (command) =>
      !refused.has(command.name) &&
      mayRun({ policy, person, ourTeamId, command, targets: [targetOf(vm)] }),
  );
  const instead = refused.size > 0 ? md` ${insteadInError}` : "";
  return [
    section(md`🔴 ${name(vm.name)} in ${vm.projectName} is ${vm.status}.${instead}`),
    ...buttons(offered.map((command) => runButton(command, {}, targetOf(vm)))),
  ];
}

/** The same facts as on the card in the channel: a vote from here counts as much. */
function rowOfAsking(request: StoredRequest, gateway: GatewayContext): Block[] {
  const command = changeNamed(request.record.command, gateway);
  return command ? askingRow(request, command, { mayVote: true }) : [];
}

function row({ record, state, changedAt }: StoredRequest, now: number) {
  return md`• ${record.command} ${name(record.target.name)}: ${stateWords(state)}, ${duration(Math.max(1000, now - changedAt))} ago (${name(record.id)})`;
}
