import { contentsOf } from "../../src/fleet/inventory/contents.ts";
import { KnownFleet } from "../../src/fleet/inventory/known-fleet.ts";
import { createScopes } from "../../src/fleet/inventory/scopes.ts";
import { approvalRule, voteRefusal } from "../../src/core/permit/approval-rule.ts";
import { refusal } from "../../src/core/permit/refusal.ts";
import { scopeOfPerson } from "../../src/core/permit/access.ts";
import type { Person } from "../../src/registry/invocation.ts";
import type { Target } from "../../src/registry/define.ts";
import { createTally, type Fuzzed, type FuzzOptions, sampled } from "./fuzzed.ts";
import { ourTeamId, type Place, type TeamCase, teamCase } from "./team-cases.ts";

/**
 * Any policy with teams, any world, any person: no rule allows, no vote counts, and no list of names shows what isn't of
 * one's team. Judged by a second reading of gatehouse.yml in these few lines, which shares nothing with the first.
 */
export async function fuzzTeamRights({ cases, seed }: FuzzOptions): Promise<Fuzzed> {
  const tally = createTally();
  for (const one of sampled(teamCase, { cases, seed })) {
    tally.count();
    const began = performance.now();
    try {
      for (const wrong of [...rightsWrong(one), ...(await Array.fromAsync(sightWrong(one)))])
        tally.wrong(
          `${wrong}: ${JSON.stringify({ ...one, policy: undefined, command: one.command.name })}`,
        );
      if (isAllowed(one)) tally.accept();
    } catch (error) {
      tally.crash(`${String(error)} for ${JSON.stringify(one)}`);
    }
    tally.took(performance.now() - began);
  }
  return tally.result("held against a second reading of the policy");
}

type Owned = { id: string; name: string };
type List = Exclude<keyof Place, "projects">;

const folded = (text: string) => text.normalize("NFC").toLowerCase();
const globOf = (entry: string) =>
  new RegExp(
    `^${folded(entry)
      .split("")
      .map((c) => (c === "*" ? ".*" : c === "?" ? "." : RegExp.escape(c)))
      .join("")}$`,
    "u",
  );

/** Whose a project is; `access` where nobody claims it. */
function ownersOf(places: TeamCase["places"], { id, name }: Owned): readonly Place[] {
  const teams = Object.entries(places)
    .filter(([place]) => place !== "access")
    .map(([, place]) => place)
    .filter(({ projects }) =>
      projects.some((entry) => (id !== "" && entry === id) || globOf(entry).test(folded(name))),
    );
  return teams.length > 0 ? teams : [places["access"] as Place];
}

export function isListed(
  entries: readonly string[],
  { id, groups, kind, teamId }: Person,
  isView: boolean,
): boolean {
  const byName =
    entries.includes(id) ||
    entries.some((entry) => entry.startsWith("S") && groups.includes(entry));
  if (teamId !== ourTeamId) return false;
  if (kind === "guest") return isView && byName;
  return kind === "member" && (byName || entries.includes("*"));
}

/** In this list of every place that has the project. */
const isInAll = ({ places, person }: TeamCase, project: Owned, list: List): boolean =>
  ownersOf(places, project).every((place) => isListed(place[list], person, false));

const isAdministrator = ({ administrators, person }: TeamCase) =>
  isListed(administrators, person, false);

const looks = ["view", "operate", "approve", "breakGlass"] as const;

/** Whoever is in any list of a place may look at what it has, guests too. */
export function mayLook(one: TeamCase, project: Owned): boolean {
  const { places, person } = one;
  if (isAdministrator(one)) return true;
  return ownersOf(places, project).every((place) =>
    looks.some((list) => isListed(place[list], person, true)),
  );
}

function targetIn({ projects, at, command }: TeamCase): { target: Target; project: Owned } {
  const project = projects[at] ?? { id: "", name: "", vms: [] };
  const { id, name } = project;
  const isVm = command.name.startsWith("vm ");
  const target: Target = isVm
    ? {
        kind: "vm",
        id: `vm-${id}-0`,
        name: "db",
        projectId: id,
        projectName: name,
        status: "RUNNING",
      }
    : { kind: "project", id, name, projectId: id, status: "ACTIVE" };
  return { target, project };
}

function asked(one: TeamCase) {
  const { target } = targetIn(one);
  const { policy, person, command } = one;
  const input = command.name === "project update" ? { name: one.newName } : {};
  return {
    policy,
    person,
    ourTeamId,
    command,
    targets: [target],
    input,
    channelId: "C0",
    vms: [{ id: "vm-db", name: "db" }],
  };
}

const isAllowed = (one: TeamCase) => refusal(asked(one)) === undefined;

function* rightsWrong(one: TeamCase): Generator<string> {
  const { project } = targetIn(one);
  const { command, policy } = one;
  const others = command.name === "project update" ? [{ id: project.id, name: one.newName }] : [];
  const isAdmins = command.class === "administer";
  // The channel is no team's
  const speaks = command.kind === "read" && command.speaksFor !== undefined;
  const should =
    (!speaks || mayLook(one, { id: "", name: "nobody's" })) &&
    [project, ...others].every((each) =>
      command.class === "read" ? mayLook(one, each) : isInAll(one, each, "operate"),
    );
  const may = isAllowed(one);
  if (!isAdmins && may && !should) yield "allowed what no list gives";
  if (!isAdmins && !may && should) yield "refused what a list gives";
  if (isAdmins && may && !isAdministrator(one) && !isFreezer(one, project)) yield "administers";
  const { votes } = approvalRule(policy, asked(one));
  const counts =
    voteRefusal({ votes, voter: one.person, ourTeamId, requester: { id: "U0ELSE" } }) === undefined;
  const mayApprove = [project, ...others].some((each) =>
    ownersOf(one.places, each).some((place) => isListed(place.approve, one.person, false)),
  );
  if (votes.length > 0 && counts && !mayApprove) yield "a vote counts of nobody's approver";
}

const isFreezer = (one: TeamCase, project: Owned) =>
  one.command.name === "gatehouse freeze" && isInAll(one, project, "approve");

/** Compared with an inventory that never held anything else: equal answers leave nothing to tell them apart by. */
async function* sightWrong(one: TeamCase): AsyncGenerator<string> {
  const { projects, policy, person, words } = one;
  const scope = scopeOfPerson(policy, person, ourTeamId);
  const whole = new KnownFleet();
  const alone = new KnownFleet();
  const part = scope ? await createScopes(whole)(scope) : whole;
  for (const { id, name, vms } of projects) {
    const project = { id, name, type: "TEE_VM", status: "ACTIVE" };
    const of = vms.map((vm, n) => ({
      id: `vm-${id}-${n}`,
      name: vm,
      projectId: id,
      status: "RUNNING",
    }));
    const entry = { contents: contentsOf(project, of), version: 1 };
    whole.set(entry);
    const sees = mayLook(one, { id, name });
    if (scope && scope.sees({ id, name }) !== sees) yield `sees ${name} (${id}): ${!sees}`;
    if (sees) alone.set(entry);
  }
  const answers = async (known: KnownFleet) =>
    JSON.stringify([
      known.vms(),
      known.projects(),
      known.count(),
      known.findVm(words) ?? known.suggestVms(words, 5),
      known.findProject(words) ?? known.suggestProjects(words, 5),
      await known.matchVms(words),
      known.vm(words),
    ]);
  if ((await answers(part)) !== (await answers(alone)))
    yield `another answer to ${words} than where nothing else is`;
}
