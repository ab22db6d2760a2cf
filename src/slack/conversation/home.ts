import type { KnownBlock } from "@slack/types";
import { restart } from "../../commands/vm/restart.ts";
import { show } from "../../commands/vm/show.ts";
import { buttons, context, divider, header, section } from "../../messages/message.ts";
import { duration, lines, md, name } from "../../messages/text.ts";
import { mayRun } from "../../policy/refusal.ts";
import { voteRefusal } from "../../policy/vote.ts";
import type { Person } from "../../registry/person.ts";
import { type StoredRequest, stateWords } from "../../requests/journal/record.ts";
import { askingRow } from "../../requests/render/asking.ts";
import type { Interaction } from "../receive/interaction.ts";
import { maySeeNames } from "./authorize.ts";
import { targetOf } from "../../requests/submit/resolve.ts";
import { runButton } from "./run.ts";
import { changeNamed, type GatewayContext } from "./gateway-context.ts";

const maxOfEach = 8;
/** Of the open requests only the newest are read: the page is built each time somebody looks. */
const maxRead = 200;

export async function showHome(interaction: Interaction, gateway: GatewayContext): Promise<void> {
  const person = await gateway.person(interaction.userId, interaction.teamId);
  const blocks =
    person.kind === "member"
      ? await homeBlocks(person, gateway)
      : [section(md`Only full members of the workspace can use this.`)];
  const answer = await gateway.web.call("views.publish", {
    user_id: interaction.userId,
    view: { type: "home", blocks: blocks.slice(0, 100) },
  });
  if (!answer.ok) gateway.log.warn("slack.home-failed", { ...answer });
}

async function homeBlocks(person: Person, gateway: GatewayContext): Promise<KnownBlock[]> {
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
  return [
    ...(frozen ? [section(md`🧊 *All changes are frozen* by ${frozen.by}${why}.`), divider] : []),
    asked,
    ...askingRows,
    header("Running"),
    running.length === 0
      ? section(md`Nothing is running.`)
      : section(lines(...running.slice(0, maxOfEach).map(rowOf))),
    header("Problems"),
    ...(trouble.length === 0
      ? [section(md`No VM is in ERROR.`)]
      : trouble.flatMap((vm) => {
          const offered = [show, restart].filter((command) =>
            mayRun({ policy: gateway.policy, person, ourTeamId: gateway.ourTeamId, command }),
          );
          const offers = buttons(offered.map((command) => runButton(command, {}, targetOf(vm))));
          const what = md`🔴 ${name(vm.name)} in ${vm.projectName} is ${vm.status}.`;
          return [section(what), ...offers];
        })),
    header("Your recent requests"),
    mine.length === 0
      ? section(md`You have no requests yet. ${name("/gatehouse help")} shows what you can run.`)
      : section(lines(...mine.map(rowOf))),
    context(
      md`${state.vms} VMs in ${state.projects} projects, ${age}${state.stale ? ", may be old" : ""}.`,
    ),
  ];
}

function waitsFor(
  person: Person,
  request: StoredRequest,
  { policy, ourTeamId }: GatewayContext,
): boolean {
  if (request.state !== "draft" || !request.record.approval) return false;
  const { requester } = request.record;
  if (voteRefusal({ policy, voter: person, ourTeamId, requester })) return false;
  return !request.votes.some(({ voterId }) => voterId === person.id);
}

/** The same facts as on the card in the channel: a vote from here counts as much. */
function rowOfAsking(request: StoredRequest, gateway: GatewayContext): KnownBlock[] {
  const command = changeNamed(request.record.command, gateway);
  return command ? askingRow(request, command, { mayVote: true }) : [];
}

function row({ record, state, changedAt }: StoredRequest, now: number) {
  return md`• ${record.command} ${name(record.target.name)}: ${stateWords(state)}, ${duration(Math.max(1000, now - changedAt))} ago (${name(record.id)})`;
}
