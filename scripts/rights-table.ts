import { emptyPolicy, type Policy, type Team } from "../src/config/policy-file.ts";
import { targetArgument, type Command, isChange, type Target } from "../src/registry/define.ts";
import type { Person } from "../src/registry/invocation.ts";
import { type About, askAndPermit } from "../src/core/permit/permit.ts";

const ourTeamId = "T0";
const itsChannel = "C0ITS";
const someone: Person = { id: "U0", teamId: ourTeamId, name: "U0", kind: "member", groups: [] };
export const teamLists = ["view", "operate", "approve", "breakGlass"] as const;
export type TeamList = (typeof teamLists)[number];

/** Where somebody is listed, as seen from a target: in its team, in another team, or in `access`. */
export type Place = "its team" | "another team" | "access";

/** Whether this list alone lets somebody run a command: on a target of a team, or at all where it has none. */
export function mayWith(
  command: Command,
  place: Place,
  list: TeamList | "administer",
  targetOf: (command: Command) => Target | undefined = targetInTeam,
): boolean {
  const empty: Policy["access"] = {
    view: [],
    operate: [],
    approve: [],
    administer: [],
    breakGlass: [],
  };
  const withSomeone = <T extends object>(lists: T): T => ({ ...lists, [list]: [someone.id] });
  const team = (name: string, has: boolean): Team => {
    const lists = {
      projects: [name],
      view: [],
      operate: [],
      approve: [],
      breakGlass: [],
      digests: [],
      channel: name === "its" ? itsChannel : "C0ELSE",
    };
    return has ? withSomeone(lists) : lists;
  };
  const policy: Policy = {
    ...emptyPolicy(),
    access: place === "access" ? withSomeone(empty) : empty,
    teams: {
      its: team("its", place === "its team"),
      another: team("another", place === "another team"),
    },
  };
  const target = targetOf(command);
  const targets = target ? [target] : [];
  const channelId = place === "access" ? "C0" : itsChannel;
  const question = { person: someone, command, channelId };
  const about: About = { targets, vms: [] };
  return askAndPermit(question, about, { policy, ourTeamId }).permit !== undefined;
}

function targetInTeam(command: Command): Target | undefined {
  const kind =
    isChange(command) && command.on === "new-project" ? "project" : targetArgument(command)?.target;
  if (kind === undefined) return undefined;
  const project = { projectId: "p-its", status: "" };
  return kind === "project"
    ? { kind, id: "p-its", name: "its", ...project }
    : { kind, id: "v-1", name: "v-1", projectName: "its", ...project };
}

/** In words, where no target says whose it is. */
function anotherTeam(command: Command): string | undefined {
  if (command.kind === "read" && command.speaksFor)
    return "the same, in channels where they see everything";
  return targetInTeam(command) ? undefined : "the same: it has no target";
}

const about = `# Rights

Derived from the rules and the commands by \`npm run derive\`. Being in one of the lists is enough; if two teams have a project, both must
allow. For what no team has, the lists of \`access\` give the same rights. Anything a person can't see is treated as if it didn't exist.
[policy.md](policy.md) explains the lists.
`;

/** docs/rights.md: which lists let whom run what, as the rules themselves answer. Commands with equal rights share a row. */
export function renderRights(commands: readonly Command[]): string {
  const listed = (command: Command, place: Place) => {
    const found = teamLists.filter((list) => mayWith(command, place, list));
    return found.length === 0 ? "–" : found.map((list) => `\`${list}\``).join(", ");
  };
  const rows = commands.map((command) => ({
    name: `\`/${command.name}\``,
    cells: [
      listed(command, "its team"),
      anotherTeam(command) ?? listed(command, "another team"),
      mayWith(command, "access", "administer") ? "yes" : "–",
    ].join(" | "),
  }));
  const grouped = Map.groupBy(rows, ({ cells }) => cells);
  return [
    about,
    "| commands | lists of the team that has the target | of another team | `access.administer` |",
    "| --- | --- | --- | --- |",
    ...[...grouped].map(
      ([cells, all]) => `| ${all.map(({ name }) => name).join(", ")} | ${cells} |`,
    ),
    "",
  ].join("\n");
}
