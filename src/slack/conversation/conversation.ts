import { UserError } from "../../errors.ts";
import {
  md,
  duration,
  lines,
  type Markdown,
  name as quoted,
  plain,
  type Block,
  type Message,
  buttons,
  context,
  divider,
  header,
  section,
} from "../../messages/message.ts";
import type { Watch } from "../../outages/outages.ts";
import type { Command } from "../../registry/define.ts";
import { asksForChange, type Person } from "../../registry/invocation.ts";
import { parseCommand } from "../../registry/parse.ts";
import { say } from "../error-reply.ts";
import {
  type Handlers,
  type Interaction,
  isDirect,
  type Reply,
  type Submission,
  type SubmissionResult,
  type Press,
  type SuggestRequest,
  type Suggestion,
} from "../receive/interaction.ts";
import { parseJson, payloadOf, textAt } from "../web.ts";
import { blocksInWords } from "../../charts/in-words.ts";
import { showOrSay } from "../deliver/post-once.ts";
import { answerWithoutRedis } from "./answer.ts";
import { dialogCallback, rolloutCallback } from "./form-view.ts";
import { checkForm, fieldError, submitForm } from "./form.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  orSayWhy,
  seenBy,
  frozenLine,
  maySeeNames,
  changeNamed,
  personOf,
} from "./authorize.ts";
import { press } from "./press.ts";
import { dismissalCallback, dismissProposal } from "./press-door.ts";
import { pickCallback, runWords, shortcut, targetChosen, targetButton } from "./run.ts";
import { alreadyRequested, regionsKnown } from "./submit.ts";
import {
  denialCallback,
  giveReason,
  outcomeCallback,
  recordOutcome,
  reviewCallback,
  signReview,
} from "./vote.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { inventoryAge } from "../../commands/last-known.ts";
import { restart } from "../../commands/vm/restart.ts";
import { show } from "../../commands/vm/show.ts";
import type { KnownVm } from "../../inventory/inventory.ts";
import { failsWords, firstOf, redFirst } from "../../inventory/known.ts";
import { recentRequests, waitsFor } from "../../requests/journal/limits.ts";
import {
  headline,
  insteadInError,
  refusedInError,
  symbolOf,
  decidedLine,
} from "../../requests/render/render-result.ts";
import { firingLine, firingOn } from "../../digests/items.ts";
import { scopeOfPerson } from "../../policy/access.ts";
import { mayRun } from "../../policy/refusal.ts";
import { type StoredRequest, stateWords } from "../../requests/journal/record.ts";
import { askingRow, deedOf } from "../../requests/render/asking.ts";
import { changesSince } from "../../requests/render/since-request.ts";
import { targetOf } from "../../requests/submit/submit.ts";
import { snapshotName, type KnownSnapshot } from "../../inventory/snapshots.ts";

/** What a submitted form does before the ack, where what is wrong with it can be shown on it, and after it. */
interface FormHandler {
  check?(act: BeforeAck<Submission>): Promise<SubmissionResult | undefined>;
  submit?(act: Act<Submission>): Promise<void>;
}

const forms = new Map<string, FormHandler>([
  [dialogCallback, { check: checkForm, submit: submitForm }],
  [rolloutCallback, { check: checkForm, submit: submitForm }],
  [pickCallback, { submit: targetChosen }],
  [denialCallback, { check: giveReason }],
  [outcomeCallback, { check: recordOutcome }],
  [reviewCallback, { check: signReview }],
  [dismissalCallback, { check: dismissProposal }],
]);

export function createConversation(
  contextNow: () => GatewayContext,
  watch: Pick<Watch, "refused">,
): Omit<Handlers, "peopleChanged"> {
  const seenNow = (by: Pick<Interaction, "userId" | "teamId">) => seenBy(by, contextNow());

  return {
    async handle(interaction: Interaction, anyReply: Reply): Promise<void> {
      const gateway = seenNow(interaction);
      const reply = wordsFor(interaction, anyReply, gateway);
      const by = <I>(one: I): Act<I> => ({ interaction: one, reply, gateway });
      switch (interaction.kind) {
        case "command":
        case "mention":
          return orSayWhy(by(interaction), (act) => runWords(interaction.text, act));
        case "button":
          if (interaction.view?.type !== "home") return orSayWhy(by(interaction), press);
          return pressedAtHome(by(interaction));
        case "home":
          return void (await showHome(by(interaction)));
        case "shortcut":
          return shortcut(by(interaction));
        case "submission": {
          const act = { ...by(interaction), reply: replyWhereOpened(by(interaction)) };
          return orSayWhy(act, async () => forms.get(interaction.callback)?.submit?.(act));
        }
      }
    },

    async repeated(interaction: Interaction, reply: Reply): Promise<void> {
      const gateway = seenNow(interaction);
      const first = await gateway.store.madeBy(interaction.id);
      if (first) await reply.privately(await alreadyRequested(first.record.id, gateway));
    },

    async submit(interaction: Submission): Promise<SubmissionResult | undefined> {
      const { check, submit } = forms.get(interaction.callback) ?? {};
      try {
        return await check?.({ interaction, gateway: seenNow(interaction) });
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        // Nothing to show it on: after the ack it is refused for the same reason
        if (submit && Object.keys(interaction.values).length === 0) return undefined;
        return fieldError(error, interaction.values);
      }
    },

    suggest: (request) => suggest(request, seenNow(request)),

    withoutRedis: (interaction) => withoutRedis(interaction, seenNow(interaction), watch),

    async tooLate(reply: Reply): Promise<void> {
      const what = md`Gatehouse was interrupted while reading your command. Nothing was done; please send it again.`;
      await reply.privately(say(what));
    },
  };
}

/** What Redis could not store: reads are answered anyway; changes are listed in the recap of the outage in their channel. */
function withoutRedis(
  interaction: Interaction,
  gateway: GatewayContext,
  watch: Pick<Watch, "refused">,
): ((reply: Reply) => Promise<void>) | undefined {
  const { id, channelId, userId, teamId, kind } = interaction;
  const remember = (words: { words?: string }): undefined => {
    if (/^[CDG]/.test(channelId)) watch.refused({ id, channelId, userId, teamId, ...words });
  };
  if (kind === "button" || kind === "submission") return remember({});
  if (kind !== "command" && kind !== "mention") return undefined;
  const { text } = interaction;
  const parsed = parseCommand(text, gateway.commands);
  if ("refusal" in parsed) return undefined;
  const sign = kind === "command" ? "/" : isDirect(interaction) ? "" : "@gatehouse ";
  if (asksForChange(parsed)) return remember({ words: `${sign}${text.trim()}` });
  if (parsed.command.class !== "read") return undefined;
  return (reply) => {
    const said = wordsFor(interaction, reply, gateway);
    return answerWithoutRedis(parsed, { interaction, reply: said, gateway });
  };
}

/** A submission has no channel: answers privately where its form was opened, else on the Home tab. */
function replyWhereOpened({ interaction, reply, gateway }: Act<Submission>): Reply {
  return {
    ...reply,
    async privately(message) {
      const chosen = String(interaction.values["channel"] ?? "");
      const channel = textAt(parseJson(interaction.privateMetadata), "channelId") || chosen;
      if (channel !== "") {
        const posted = await showOrSay(message, (shown) =>
          gateway.web.call("chat.postEphemeral", { channel, user: interaction.userId, ...shown }),
        );
        if (posted.ok || posted.kind === "lost") return;
      } else if (await showHome({ interaction, gateway }, { said: message })) return;
      await reply.privately(message);
    },
  };
}

/**
 * Answers in a thread, where slash commands don't work: `/vm list` in a code span becomes `@gatehouse vm list`, and elsewhere
 * loses its slash.
 */
function wordsFor(interaction: Interaction, reply: Reply, { commands }: GatewayContext): Reply {
  if (interaction.kind !== "mention" || isDirect(interaction)) return reply;
  const reworded = ({ text, blocks }: Message): Message => ({
    text: mentionWords(text, commands),
    blocks: withWords(blocks, commands),
  });
  return {
    ...reply,
    privately: (said) => reply.privately(reworded(said)),
    instead: (said) => reply.instead(reworded(said)),
    replace: (said) => reply.replace(reworded(said)),
  };
}

export function mentionWords(text: string, commands: readonly Command[]): string {
  const roots = [...new Set(commands.map(({ name }) => name.split(" ")[0] ?? ""))].join("|");
  const command = new RegExp(`(?<![\\w/.:-])/(${roots})(?![\\w/.-])`, "g");
  return text
    .split("`")
    .map((part, index) =>
      index % 2 === 1
        ? part.replace(command, "@gatehouse $1").replace("@gatehouse gatehouse", "@gatehouse")
        : part.replaceAll(command, "$1"),
    )
    .join("`");
}

/** Only mrkdwn: labels and cells of tables are names. */
function withWords(blocks: readonly Block[], commands: readonly Command[]): Block[] {
  return JSON.parse(JSON.stringify(blocks), (_key, value: unknown) =>
    textAt(value, "type") === "mrkdwn"
      ? { ...payloadOf(value), text: mentionWords(textAt(value, "text"), commands) }
      : value,
  ) as Block[];
}

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
  await orSayWhy({ ...act, reply: { ...reply, privately: onHome, instead: onHome } }, press);
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
  const [open, openCount, mine, state, frozen, failing, alerts] = await Promise.all([
    store.recentIds({ open: true }, maxRead).then((ids) => store.getMany(ids.toReversed())),
    store.openCount(),
    recentRequests({ requesterId: person.id, most: maxOfEach }, store),
    gateway.inventory.state(),
    frozenLine(gateway),
    gateway.digests.drift.failing(),
    gateway.alerts.firing(),
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
  const firing = firingOn(vms, alerts, seesAll).toReversed().map(firingLine);
  const ofAll = firing.length > maxOfEach ? `: the newest ${maxOfEach} of ${firing.length}` : "";
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
    ...(firing.length > 0 ? [header(`Alerts${ofAll}`)] : []),
    ...firing.slice(0, maxOfEach).map(({ text, button }) => section(text, button)),
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
    mayRun({ policy, person, ourTeamId, command, targets: [target] })
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

const maxOptions = 50;

/** Options of a select that loads while someone types. */
export async function suggest(
  request: SuggestRequest,
  gateway: GatewayContext,
): Promise<readonly Suggestion[]> {
  const person = await gateway.person(request.userId, request.teamId);
  if (!maySeeNames(person, gateway)) return [];
  const { inventory } = gateway;
  const typed = request.typed.trim();
  switch (request.action.split(":")[1]) {
    case "vm": {
      const vms = await (typed === "" ? inventory.vms() : inventory.suggestVms(typed, maxOptions));
      return vms
        .slice(0, maxOptions)
        .map((vm) => option(vm.id, `${vm.name} in ${vm.projectName}`, vm.status));
    }
    case "project": {
      const projects = await (typed === ""
        ? inventory.projects()
        : inventory.suggestProjects(typed, maxOptions));
      return projects
        .slice(0, maxOptions)
        .map(({ id, name, type, status }) => option(id, name, `${type}, ${status}`));
    }
    case "snapshot": {
      const targetId = textAt(parseJson(request.privateMetadata), "targetId");
      const known = await gateway.snapshots.of(targetId);
      const options = known
        .filter(({ id }) => id !== "")
        .map((one) => option(one.id, snapshotName(one, known) || one.id, describe(one, gateway)));
      // An unknown ID may be valid: the compute service can't list snapshots
      return fitting(typed, options, option(typed, `Use the ID ${typed}`));
    }
    case "region": {
      const options = (await regionsKnown(gateway)).map((one) => option(one, one));
      const unknown = option(typed, typed, "Nothing that Gatehouse knows is there");
      return fitting(typed, options, unknown);
    }
    default:
      return [];
  }
}

function option(value: string, label: string, description?: string): Suggestion {
  const one = { label: plain(label, 70), value: value.slice(0, 75) };
  return description === undefined ? one : { ...one, description: plain(description, 70) };
}

/** Those that have what was typed, and then that itself, which may be new. */
function fitting(typed: string, options: readonly Suggestion[], asTyped: Suggestion) {
  const found = options
    .filter(({ label, value }) => `${label} ${value}`.toLowerCase().includes(typed.toLowerCase()))
    .slice(0, maxOptions);
  const isNew = typed !== "" && typed.length <= 60 && !found.some(({ value }) => value === typed);
  return isNew ? [...found, asTyped] : found;
}

function describe({ at, id, isSafety }: KnownSnapshot, { now }: GatewayContext): string {
  return `${isSafety ? "safety snapshot, " : ""}${duration(now() - at)} old, ${id}`;
}
