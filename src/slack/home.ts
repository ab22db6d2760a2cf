import type { KnownBlock } from "@slack/types";
import { buttons, context, divider, header, section } from "../messages/message.ts";
import { duration, lines, md, name, when } from "../messages/text.ts";
import { mayRun } from "../policy/refusal.ts";
import { voteRefusal } from "../policy/vote.ts";
import type { Person } from "../registry/person.ts";
import { shortDigest } from "../approvals/digest.ts";
import type { StoredRequest } from "../requests/record.ts";
import { parametersOf } from "../requests/render-asking.ts";
import type { Ask } from "./ask.ts";
import { maySeeNames } from "./refuse.ts";
import { targetOf } from "./resolve.ts";
import { runButton } from "./run-button.ts";
import type { Talk } from "./talk.ts";

const mostOfEach = 8;

/** The Home tab, made anew each time somebody opens it: what waits for me, what runs, what is in trouble, what I asked. */
export async function showHome(ask: Ask, talk: Talk): Promise<void> {
  const person = await talk.person(ask.userId, ask.teamId);
  const blocks =
    person.kind === "member"
      ? await homeBlocks(person, talk)
      : [section(md`This is for full members of the workspace.`)];
  const answer = await talk.web.call("views.publish", {
    user_id: ask.userId,
    view: { type: "home", blocks: blocks.slice(0, 100) },
  });
  if (!answer.ok) talk.log.warn("slack.home-failed", { ...answer });
}

async function homeBlocks(person: Person, talk: Talk): Promise<KnownBlock[]> {
  const { store } = talk;
  const [open, mine, state, frozen] = await Promise.all([
    store.openIds().then((ids) => store.getMany(ids)),
    store.recentIds({ requesterId: person.id }, mostOfEach).then((ids) => store.getMany(ids)),
    talk.inventory.state(),
    store.freezeState(),
  ]);
  const waiting = open.filter((request) => waitsFor(person, request, talk));
  const asked = header("Waits for you");
  const askingRows =
    waiting.length === 0
      ? [section(md`Nothing waits for your approval.`)]
      : waiting.slice(0, mostOfEach).flatMap(askingRow);
  if (!maySeeNames(person, talk)) {
    const hint = md`You may not look at more here: that takes ${name("access.view")} in gatehouse.yml.`;
    return [asked, ...askingRows, section(hint)];
  }
  const running = open.filter((request) => request.state !== "draft");
  const trouble = (await talk.inventory.vms({ status: "ERROR" })).slice(0, mostOfEach);
  const age =
    state.refreshedAt === undefined
      ? "not read yet"
      : `read ${duration(talk.now() - state.refreshedAt)} ago`;
  return [
    ...(frozen
      ? [
          section(
            md`🧊 *All changes are frozen* by ${frozen.by}${frozen.reason ? md`: ${frozen.reason}` : ""}.`,
          ),
          divider,
        ]
      : []),
    asked,
    ...askingRows,
    header("Running"),
    running.length === 0
      ? section(md`Nothing runs.`)
      : section(lines(...running.slice(0, mostOfEach).map((request) => row(request, talk.now())))),
    header("In trouble"),
    ...(trouble.length === 0
      ? [section(md`No VM is in ERROR.`)]
      : trouble.flatMap((vm) => {
          const offered = talk.commands.filter(
            (command) =>
              (command.name === "vm show" || command.name === "vm restart") &&
              mayRun({ policy: talk.policy, person, ourTeamId: talk.ourTeamId, command }),
          );
          const offers = buttons(offered.map((command) => runButton(command, {}, targetOf(vm))));
          return [
            section(md`🔴 ${name(vm.name)} in ${vm.projectName} is ${vm.status}.`),
            ...offers,
          ];
        })),
    header("Your last requests"),
    mine.length === 0
      ? section(
          md`You have asked for nothing yet. ${name("/gatehouse help")} shows what you may run.`,
        )
      : section(lines(...mine.map((request) => row(request, talk.now())))),
    context(
      md`${state.vms} VMs in ${state.projects} projects, ${age}${state.stale ? ", may be old" : ""}.`,
    ),
  ];
}

function waitsFor(person: Person, request: StoredRequest, { policy, ourTeamId }: Talk): boolean {
  if (request.state !== "draft" || !request.record.approval) return false;
  const requesterId = request.record.requester.id;
  if (voteRefusal({ policy, voter: person, ourTeamId, requesterId })) return false;
  return !request.votes.some(({ voterId }) => voterId === person.id);
}

/** All that the card in the channel says to an approver: a vote from here counts as much as one from there. */
function askingRow({ record, votes }: StoredRequest): KnownBlock[] {
  const { approval } = record;
  if (!approval) return [];
  const value = JSON.stringify({ request: record.id, digest: shortDigest(approval.digest) });
  const yes = votes.filter(({ vote }) => vote === "approve").length;
  const facts = approval.evidence.slice(0, 10).map(([label, text]) => md`${label}: ${text}`);
  return [
    section(
      lines(
        md`*${record.command}* ${name(record.target.name)}, asked by ${record.requester.name}${record.reason ? md`: “${record.reason}”` : ""}. ${yes} of ${approval.required}, until ${when(approval.expiresAt, "{time}")}.`,
        ...parametersOf(record),
        ...facts,
        md`Digest ${name(shortDigest(approval.digest))}`,
      ),
    ),
    ...buttons([
      { label: "Approve", action: "vote:approve", value, style: "primary" },
      { label: "Deny", action: "vote:deny", value, style: "danger" },
    ]),
  ];
}

function row({ record, state, changedAt }: StoredRequest, now: number) {
  return md`• ${record.command} ${name(record.target.name)}: ${state}, ${duration(Math.max(1000, now - changedAt))} ago (${name(record.id)})`;
}
