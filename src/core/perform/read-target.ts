import {
  type CallOptions,
  ComputeError,
  type Endpoint,
  type ListGaps,
  type Vm,
  describeFailure,
  endpoints,
  gapsWords,
  mayHide,
} from "../../fleet/compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import type { Seen, Target } from "../../registry/define.ts";
import { isList } from "../request/seen.ts";
import type { WorkerContext } from "./worker-context.ts";
import { deadlineMs } from "../../deadline.ts";

/**
 * A read at the gate may take this long (ms). A target that hangs must not hold a worker's slot for
 * the timeout of several calls.
 */
const gateReadMs = 5_000;

export function readWithin({ httpTimeoutMs }: Policy["timing"]): CallOptions {
  return { signal: AbortSignal.timeout(Math.min(deadlineMs(gateReadMs), 2 * httpTimeoutMs)) };
}

export interface TargetReading {
  seen: Seen | undefined;
  /** The VMs of a project. */
  vms: readonly Vm[];
  /** What is missing in the list of VMs. */
  gaps?: ListGaps | undefined;
}

/**
 * Says why it isn't known which VMs a project has, or what they are called. Rules and people decide
 * by those names, so nothing is decided then. Undefined where it is known.
 */
export function hiddenVms({ seen, vms, gaps }: TargetReading): string | undefined {
  if (!gaps || seen === undefined || isList(seen)) return undefined;
  const nameless = vms.filter(({ id, name }) => name === id && gaps.marked.includes(id));
  const words = [
    ...[gapsWords(gaps) ?? []].flat(),
    ...(nameless.length > 0 ? [`no name of ${nameless.map(({ id }) => id).join(", ")}`] : []),
  ];
  if (words.length === 0) return undefined;
  return `the compute service's list of the VMs of ${seen.name} can't be read whole: ${words.join("; ")}`;
}

/** The error for an answer that lacks something that a decision needs. */
function unusable(endpoint: Endpoint, lack: string | undefined): ComputeError {
  const message = `${describeFailure(endpoint, "unexpected", "answer", undefined)}: ${lack}`;
  return new ComputeError("unexpected", endpoint, message, { reason: "answer" });
}

/** The error for a list that isn't whole, which doesn't prove that something doesn't exist. */
const notWhole = (gaps: ListGaps) => unusable(endpoints.listProjects, gapsWords(gaps));

/**
 * Reads the target. `seen` is undefined only for a proven absence: a 404 while the list that would
 * have it succeeds without it. A 404 of something that is listed is asked again once, and is then an
 * error (`not-found`), which proves nothing.
 */
export async function readTarget(
  target: Target,
  { compute }: Pick<WorkerContext, "compute">,
  options: CallOptions = {},
): Promise<TargetReading> {
  let gaps: ListGaps | undefined;
  const telling = { ...options, onGaps: (listGaps: ListGaps) => void (gaps = listGaps) };
  if (target.id === "") {
    const all = await compute.projects.listAll(undefined, telling);
    const seen = all.filter((project) => project.name === target.name);
    if (seen.length === 0 && gaps && mayHide(gaps, target.name)) throw notWhole(gaps);
    return { seen, vms: [] };
  }
  const read = async (): Promise<TargetReading> => {
    if (target.kind === "vm") return { seen: await compute.vms.get(target.id, options), vms: [] };
    const project = await compute.projects.get(target.id, options);
    const vms = project.type === "TEE_VM" ? await compute.projects.vms(target.id, telling) : [];
    return { seen: project, vms, gaps };
  };
  try {
    return await read();
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return (await isListed(target, compute, options)) ? read() : { seen: undefined, vms: [] };
  }
}

const isNotFound = (error: unknown) => error instanceof ComputeError && error.kind === "not-found";

/** Whether the list in which it belongs still has it. Rejects for a list that may hide it. */
async function isListed(
  target: Target,
  compute: WorkerContext["compute"],
  options: CallOptions,
): Promise<boolean> {
  let gaps: ListGaps | undefined;
  const telling = { ...options, onGaps: (listGaps: ListGaps) => void (gaps = listGaps) };
  const hasIt = async (list: Promise<readonly { id: string }[]>) => {
    if ((await list).some(({ id }) => id === target.id)) return true;
    if (gaps && mayHide(gaps, target.name)) throw notWhole(gaps);
    return false;
  };
  if (target.kind === "project") return hasIt(compute.projects.listAll(undefined, telling));
  try {
    return await hasIt(compute.projects.vms(target.projectId, telling));
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // The VM's project may be gone, too. Only the list of all projects proves that.
    const { projectId } = target;
    const projects = await compute.projects.listAll(undefined, telling);
    if (projects.some(({ id }) => id === projectId) || gaps?.isCut) throw error;
    return false;
  }
}

/**
 * Returns the target as rules know it now: a VM under the name that its project has at the service,
 * which may have changed since anybody looked. Undefined where the project can't be found.
 */
export async function asNamedNow(
  target: Target,
  { compute }: Pick<WorkerContext, "compute">,
  options: CallOptions = {},
): Promise<Target | undefined> {
  if (target.kind !== "vm") return target;
  try {
    let isMarked = false;
    const onGaps = () => void (isMarked = true);
    const { id, name } = await compute.projects.get(target.projectId, { ...options, onGaps });
    // Rules go by the name, so an ID must not stand in for a name that can't be read.
    if (isMarked && name === id && target.projectName !== id)
      throw unusable(endpoints.getProject, "name is missing");
    return { ...target, projectName: name };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
