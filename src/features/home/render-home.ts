import { inventoryAge } from "../../commands/inventory-age.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import type { Message } from "../../messages/blocks.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
import type { Part } from "../../messages/card.ts";
import {
  type Markdown,
  lines,
  md,
  name as quoted,
  when,
  withFullStop,
} from "../../messages/markdown.ts";
import { type SaidPart, headingOf, paragraph, rule, small, waysRow } from "../../messages/parts.ts";
import { type Fact, isTrouble, unreadIn } from "../../core/facts/fact.ts";
import { factsByTarget, unreadLine } from "../../core/facts/facts-about.ts";
import { waysFor } from "../../core/facts/ways-for.ts";
import { mayRun } from "../../core/permit/permit.ts";
import type { Sight } from "../../core/permit/sight.ts";
import { isRunIn } from "../../core/permit/refusal.ts";
import type { Person } from "../../registry/invocation.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { awaitsVoteOf } from "../../core/request/open-seats.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords } from "../../core/request/stage.ts";
import { aboutRequest, deedLine, describeChange } from "../../core/cards/asking.ts";
import {
  decidedLine,
  headline,
  insteadInError,
  outcomeOf,
  symbolOf,
} from "../../core/cards/render-result.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import { frozenLine, maySeeNames } from "../../talk/authorize.ts";
import type { HomeLine, HomePart, HomeSection } from "../home-part.ts";
import { type GatewayContext, changeNamed, factReader } from "../../talk/gateway-context.ts";
import { type Situation, changesThatHelp, situationOf } from "../../core/cards/offered-change.ts";
import { targetButton } from "../../core/cards/target-button.ts";
import { startButton, startCommands } from "../../talk/sentence.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { type Command, type Target, calledName, runButton } from "../../registry/define.ts";

const maxOfEach = 8;
/**
 * Only this many of the newest open requests are read, because the page is built each time someone
 * looks.
 */
const maxRead = 200;

/** The answer to a press on the tab, shown above everything else. */
export interface News {
  answer?: Message | undefined;
  /** The request that the press was about. */
  request?: string | undefined;
}

/** The result of a press, above what the tab always shows. */
export async function newsParts(
  { answer: result, request: id }: News,
  gateway: GatewayContext,
): Promise<Part[]> {
  const request = id === undefined ? undefined : await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  if (!request || !command) return result ? [result, rule] : [];
  const line = md`${symbolOf(request, command)} *${describeChange(request.record, command)}*: ${stateWords(request.state)}`;
  const decision = decidedLine(request);
  const ended = request.final && headline(request, command);
  return [result, paragraph(lines(line, decision, ended)), rule];
}

/** What the tab always shows. `homeSections` are those of features. */
export async function homeParts(
  person: Person,
  gateway: GatewayContext,
  homeSections: readonly HomePart[],
): Promise<Part[]> {
  const { store } = gateway;
  await gateway.inventory.upToDate();
  const [open, openCount, mine, state, frozen] = await Promise.all([
    store.recentIds({ open: true }, maxRead).then((ids) => store.getMany(ids.toReversed())),
    store.openCount(),
    recentRequests({ requesterId: person.id, most: maxOfEach }, store),
    gateway.inventory.state(),
    frozenLine(gateway),
  ]);
  const waiting = open.filter((request) => awaitsVoteOf(person, request, gateway));
  const asked = headingOf("Waiting for you");
  const askingRows: Part[] =
    waiting.length === 0
      ? [paragraph(md`Nothing is waiting for your approval.`)]
      : waiting.slice(0, maxOfEach).map((request) => waitingRow(request, gateway));
  askingRows.push(
    moreLine(waiting.length - maxOfEach, md`${quoted("/gatehouse approvals")} shows them.`),
  );
  if (openCount > maxRead) {
    const more = md`${openCount} requests are open, and only the ${maxRead} newest are on this page. ${quoted("/gatehouse approvals")} shows all that wait.`;
    askingRows.push(small(more));
  }
  if (!maySeeNames(person, gateway)) {
    const where =
      Object.keys(gateway.policy.teams).length === 0
        ? quoted("access.view")
        : md`${quoted("view")} of a team or of ${quoted("access")}`;
    const hint = md`You can't see more here: it requires ${where} in gatehouse.yml.`;
    return [asked, ...askingRows, paragraph(hint)];
  }
  const running = open.filter((request) => request.state !== "draft");
  const vms = await gateway.inventory.vms();
  const seesAll = await gateway.seesAll();
  const only = onlySeen(gateway);
  const now = gateway.now();
  const sections = await Promise.all(
    homeSections.map((readSection) => readSection({ vms, seesAll, only, now })),
  );
  const reader = { person, gateway };
  const within = seesAll ? "" : " that you can see";
  const list = async (requests: readonly StoredRequest[], none: Markdown) =>
    paragraph(
      requests.length > 0
        ? lines(...(await Promise.all(requests.map((request) => row(request, gateway)))))
        : none,
    );
  const facts = await gateway.factsAbout(await targetsSeen(vms, gateway), {
    reader: factReader(gateway),
  });
  const troubles = [...factsByTarget(facts.filter(isProblem))];
  const problemRows = await Promise.all(
    troubles.slice(0, maxOfEach).map(([target, known]) => troubleRow(target, known, reader)),
  );
  const unread = unreadLine(unreadIn(facts));
  return [
    waysRow(startCommands(person, gateway).map(startButton)),
    frozen && [paragraph(frozen), rule],
    asked,
    ...askingRows,
    ...(await Promise.all(sections.map((part) => sectionParts(part, reader)))),
    headingOf("Running"),
    await list(
      running.slice(0, maxOfEach),
      seesAll ? md`Nothing is running.` : md`Nothing that you can see is running.`,
    ),
    moreLine(running.length - maxOfEach, md`${quoted("/gatehouse jobs")} lists them.`),
    headingOf("Problems"),
    problemRows.length > 0
      ? problemRows
      : paragraph(md`Nothing is known to be wrong with a VM${within}.`),
    unread && small(unread),
    moreLine(troubles.length - maxOfEach, md`${quoted("/vm list")} shows VMs with problems first.`),
    headingOf("Your recent requests"),
    await list(
      mine,
      md`You have no requests yet. ${quoted("/gatehouse help")} shows what you can run.`,
    ),
    small(
      md`${state.vms} VMs in ${state.projects} projects${within}. ${inventoryAge(state, gateway.now())}`,
    ),
  ];
}

/** Keeps what is about a VM or project that the person sees, as it was then and as it is now. */
const onlySeen =
  ({ sees }: Pick<GatewayContext, "sees">): Sight["only"] =>
  async (reading, subjectOf) => {
    const some = await reading;
    const isSeen = await Promise.all(
      some.map(async (subject) => {
        const target = subjectOf(subject);
        return target !== undefined && sees([target]);
      }),
    );
    return some.filter((_, index) => isSeen[index]);
  };

/** Says how many there are besides those shown, and where. */
const moreLine = (many: number, where: Markdown): SaidPart | undefined =>
  many > 0 ? small(md`… and ${many} more. ${where}`) : undefined;

/** A request that waits, in one line. A vote counts where all its facts are: _Review_ shows them. */
function waitingRow(request: StoredRequest, gateway: GatewayContext): SaidPart | undefined {
  const { record } = request;
  const command = changeNamed(record.command, gateway);
  if (!command) return undefined;
  const why = record.reason ? md`: “${record.reason}”` : "";
  const until = md` Until ${when(record.approval?.expiresAt ?? 0, "{time}")}.`;
  const asked = withFullStop(
    md`✋ ${deedLine(record, command)}, requested by ${record.requester.name}${why}`,
  );
  const text = md`${asked}${until}`;
  const review = runButton(
    "Review",
    "gatehouse.approvals",
    { request: record.id },
    aboutRequest(record),
  );
  return paragraph(text, review);
}

/** The person who opens the tab, and what they see. */
interface Reader {
  person: Person;
  gateway: GatewayContext;
}

async function sectionParts({ title, lines: all }: HomeSection, reader: Reader): Promise<Part[]> {
  if (all.length === 0) return [];
  const ofAll = all.length > maxOfEach ? `: the newest ${maxOfEach} of ${all.length}` : "";
  const rows = await Promise.all(all.slice(0, maxOfEach).map((line) => lineRow(line, reader)));
  return [headingOf(`${title}${ofAll}`), rows];
}

async function lineRow({ text, button, vm }: HomeLine, reader: Reader): Promise<SaidPart[]> {
  if (!vm) return [paragraph(text, button)];
  const situation = await situationOf(targetOf(vm), reader.gateway);
  return [paragraph(text, button), waysRow(changesOf(situation, reader))];
}

/** Buttons of the changes that help a VM with a problem, as far as this person may make them. */
function changesOf(situation: Situation, reader: Reader): ButtonSpec[] {
  const { target } = situation;
  const { policy, commands } = reader.gateway;
  const helping = changesThatHelp(situation, commands, (command) =>
    mayPress(command, target, reader),
  );
  return helping.map((command) => targetButton(command, {}, target, policy));
}

/** Whether this person may run a command on the Home tab, where there is no channel. */
const mayPress = (command: Command, target: Target, { person, gateway }: Reader): boolean =>
  isRunIn({ policy: gateway.policy, command, channelId: "" }) &&
  mayRun({ person, command, targets: [target] }, gateway);

/**
 * The VMs that the person sees, called by their whole names because they stand beside those of other
 * projects, and their projects.
 */
async function targetsSeen(
  vms: readonly KnownVm[],
  { inventory }: Pick<GatewayContext, "inventory">,
): Promise<readonly Target[]> {
  const projects = await inventory.projects();
  return [
    ...vms.map((vm) => ({ ...targetOf(vm), sharesName: true })),
    ...projects.map((project) => targetOf(project)),
  ];
}

/** Alerts have a section of their own. */
const isProblem = (fact: Fact): boolean => isTrouble(fact) && fact.kind !== "alert";

/** How many facts of one target, and buttons that end them, the tab shows. */
const mostOfTarget = 3;

/**
 * What is wrong with a VM or a project, without buttons that the compute service refused for its
 * ERROR. Buttons of changes are below those of reads.
 */
async function troubleRow(
  { sharesName: _isWhole, ...target }: Target,
  facts: readonly Fact[],
  reader: Reader,
): Promise<SaidPart[]> {
  const { gateway } = reader;
  const { policy, commands } = gateway;
  const rows = facts.slice(0, mostOfTarget).map(({ sign, text }) => md`${sign} ${text}`);
  if (target.kind === "project") return [paragraph(lines(...rows))];
  const situation = await situationOf(target, gateway);
  const showCommand = commandWithRole(commands, "shows-vm");
  const look =
    showCommand && mayPress(showCommand, target, reader)
      ? targetButton(showCommand, {}, target, policy)
      : undefined;
  const instead = situation.refused?.size ? md`${insteadInError(commands)}` : undefined;
  const offered =
    target.status === "ERROR"
      ? changesOf(situation, reader)
      : waysFor(facts, target, {
          commands,
          policy,
          mayRun: (command, [of = target]) => mayPress(command, of, reader),
          isShared: false,
          isFrozen: situation.isFrozen,
        }).slice(0, mostOfTarget);
  return [paragraph(lines(...rows, instead), look), waysRow(offered)];
}

/** A request as its card says it: how it ended, or what is done and where it stands. */
async function row(request: StoredRequest, gateway: GatewayContext): Promise<Markdown> {
  const { record, state, changedAt } = request;
  const command = changeNamed(record.command, gateway);
  const at = when(changedAt, "{date_short_pretty} {time}");
  if (!command) return md`• ${record.command} ${quoted(calledName(record.target))}, ${at}`;
  if (!request.final) return md`⏳ ${deedLine(record, command)}: ${stateWords(state)}, since ${at}`;
  const { sign, text } = outcomeOf(request, command);
  return md`${sign} ${text} ${at}`;
}
