/** A request as the checker read it. */
export interface Journalled {
  id: string;
  command: string;
  target: string;
  targetName: string;
  requester: string;
  /** Kind of its origin. */
  origin: string;
  state: string;
  isFinal: boolean;
  attempt: number;
  /** The facts of its state. */
  stage: {
    why?: string;
    already?: boolean;
    /** `returned`: claims that were given back unsent. */
    setbacks?: { returned: number };
    decidedBy?: unknown;
    reads?: { blindSince?: number };
  };
  fields: Record<string, string>;
  /** States, in order, without the first. */
  history: string[];
  /** When each of them was reached (ms, Redis time). */
  movedAt: number[];
}

type Effects = Record<string, unknown>;

export interface Counted {
  journal: readonly Journalled[];
  truth: { vms: Record<string, Effects>; projects: Record<string, Effects> };
}

export interface Accounts {
  twice: number;
  falseSuccess: number;
  falseFailure: number;
  findings: string[];
}

/** Which counter of the service tells of which command. */
export const counters: Record<string, string> = {
  "vm start": "starts",
  "vm stop": "stops",
  "vm restart": "restarts",
  "vm resize": "resizes",
  "vm snapshot": "snapshots",
  "vm restore": "restores",
  "vm console": "consoles",
  "project create": "creations",
  "project update": "updates",
  "project delete": "deletions",
};

const negative = new Set(["failed", "rejected", "not-applied", "cancelled", "expired", "denied"]);

/**
 * Holds what the service really did against what was reported, per target and command. With one request per target and
 * command (which is how most of the campaign asks) the sums are exact for each request.
 */
export function countEffects({ journal, truth }: Counted): Accounts {
  const groups = new Map<string, Journalled[]>();
  for (const request of journal) {
    const name = `${request.command}|${request.target}`;
    groups.set(name, [...(groups.get(name) ?? []), request]);
  }
  // An effect that nobody asked for is the worst of all
  for (const [kind, things] of [
    ["vm", truth.vms],
    ["project", truth.projects],
  ] as const) {
    for (const [id, thing] of Object.entries(things)) {
      for (const [command, counter] of Object.entries(counters)) {
        if (!command.startsWith(kind) || Number(thing[counter] ?? 0) === 0) continue;
        const target = command === "project create" ? String(thing["name"]) : id;
        if (!groups.has(`${command}|${target}`)) groups.set(`${command}|${target}`, []);
      }
    }
  }
  const accounts: Accounts = { twice: 0, falseSuccess: 0, falseFailure: 0, findings: [] };
  for (const [name, requests] of groups) {
    const [command = "", target = ""] = name.split("|");
    const counter = counters[command];
    if (counter === undefined) continue;
    const effects = effectsOn(truth, command, target, counter);
    const sent = requests.filter(({ attempt }) => attempt > 0).length;
    const done = requests.filter(
      ({ state, stage }) => state === "done" && !stage.already && !stage.decidedBy,
    ).length;
    const open = requests.filter(
      ({ state, isFinal, stage }) =>
        !isFinal ||
        stage.decidedBy !== undefined ||
        (state === "failed" && isBroken(truth, target)),
    ).length;
    const denied = requests.filter(({ state }) => negative.has(state)).length;
    const said = () =>
      `${command} ${target}: ${effects} effects; ${requests.map(tellOf).join("; ")}`;
    if (effects > sent) {
      accounts.twice += effects - sent;
      accounts.findings.push(`twice: ${said()}`);
    }
    if (done > effects) {
      accounts.falseSuccess += done - effects;
      accounts.findings.push(`false success: ${said()}`);
    }
    const unreported = Math.min(effects, sent) - done - open;
    if (unreported > 0 && denied > 0) {
      accounts.falseFailure += unreported;
      accounts.findings.push(`false failure: ${said()}`);
    }
  }
  return accounts;
}

function effectsOn(
  { vms, projects }: Counted["truth"],
  command: string,
  target: string,
  counter: string,
): number {
  if (command === "project create") {
    return Object.values(projects)
      .filter(({ name }) => name === target)
      .reduce((sum, project) => sum + Number(project[counter] ?? 0), 0);
  }
  const things = command.startsWith("vm") ? vms : projects;
  return Number(things[target]?.[counter] ?? 0);
}

/** "Failed" is true of what happened and ended badly. */
function isBroken({ vms, projects }: Counted["truth"], target: string): boolean {
  return (vms[target] ?? projects[target])?.["status"] === "ERROR";
}

function tellOf({ id, state, attempt, history, stage }: Journalled): string {
  return `${id} ${state} attempt ${attempt} [${history.join(" ")}] ${stage.why ?? ""}`;
}
