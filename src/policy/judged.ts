import { acceptedFor, pinsFor } from "../attestation/pins.ts";
import type { Policy } from "../config/policy-file.ts";
import type { Command, Target } from "../registry/define.ts";
import type { Owned } from "./teams.ts";

/** What a command is asked to do. */
export interface Judged {
  command: Command;
  targets: readonly Target[];
  /** The arguments: a new name is among them. */
  input?: Readonly<Record<string, unknown>> | undefined;
  /** The names of a project's VMs; undefined when they can't be told. */
  vmNames?: readonly string[] | undefined;
}

/** A target under one of the names that a rule may know it by. */
export type Named = Target & {
  /** In words, where this isn't the name that was asked for. */
  because?: string;
};

/**
 * Everything that rules look at: each target, a project under its new name too, and the VMs inside under both. Whoever
 * judges takes the strictest rule of all, so that no change of name leads out of one (decision 021).
 */
export function judgedNames(judged: Judged): readonly Named[] {
  const { command, targets, vmNames = [] } = judged;
  if (command.kind !== "change" || command.on !== "project") return targets;
  const ofNow = targets.flatMap((target) => [
    target,
    ...vmNames.map((name) => inside(target, name, name)),
  ]);
  return [...ofNow, ...renamed(judged).map(({ after }) => after)];
}

/** Of a rename each project, and each VM inside, under the name that rules know now and under the one of afterwards. */
export function renamed(judged: Judged): readonly { before: Named; after: Named }[] {
  const { targets, vmNames = [] } = judged;
  const newName = newNameOf(judged);
  if (newName === undefined) return [];
  return targets.flatMap((target) => {
    const renamedTo = { ...target, name: newName };
    return [
      { before: target, after: { ...renamedTo, because: `its new name ${newName}` } },
      ...vmNames.map((name) => ({
        before: inside(target, name, name),
        after: inside(renamedTo, name, `${newName}/${name}, its name afterwards`),
      })),
    ];
  });
}

/** The projects that all of these are in, or are. */
export function projectsOf(judged: Judged): readonly Owned[] {
  const owned = judgedNames(judged).map(ownerOf);
  return [...new Map(owned.map((one) => [`${one.id}\n${one.name}`, one])).values()];
}

/** The project of a VM, or the project itself. */
export function ownerOf({
  kind,
  name,
  projectId,
  projectName,
}: Pick<Target, "kind" | "name" | "projectId" | "projectName">): Owned {
  return kind === "vm" ? { id: projectId, name: projectName } : { id: projectId, name };
}

function inside(project: Target, name: string, because: string): Named {
  return { ...project, kind: "vm", name, projectName: project.name, because };
}

function newNameOf({ command, input }: Judged): string | undefined {
  if (command.kind !== "change" || command.on !== "project" || command.renames !== true)
    return undefined;
  const name = input?.["name"];
  return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}

/** The pinned VM that a new name would take out of its pin, let run more than before, or put under another rule of appraisal. */
export function looserPin(policy: Policy, judged: Judged) {
  const { pins, appraisal } = policy.attestation;
  const newName = newNameOf(judged);
  if (newName === undefined || pins.length === 0) return undefined;
  const { vmNames } = judged;
  for (const target of judged.targets) {
    if (vmNames === undefined) return { target, vmName: undefined };
    for (const vmName of vmNames) {
      const names = [vmName, `${target.name}/${vmName}`];
      const newNames = [vmName, `${newName}/${vmName}`];
      const [before, after] = [pinsFor(pins, names), pinsFor(pins, newNames)];
      const isLooser = after.length === 0 || after.some((one) => !before.includes(one));
      const isJudgedOtherwise = acceptedFor(appraisal, names) !== acceptedFor(appraisal, newNames);
      if (before.length > 0 && (isLooser || isJudgedOtherwise)) return { target, vmName };
    }
  }
  return undefined;
}
