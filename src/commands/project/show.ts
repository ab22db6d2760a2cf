import * as z from "zod";
import {
  ComputeError,
  gapsWords,
  type ListGaps,
  mayHaveVms,
  type Project,
} from "../../fleet/compute/compute.ts";
import { pairsOf, paragraph, small, waysRow } from "../../messages/parts.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { List, sentence } from "../../messages/card.ts";
import { counted, md, name, plain, when } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { target, defineCommand, dottedName, isChange, runButton } from "../../registry/define.ts";
import { showOneOf } from "../../registry/command-buttons.ts";
import type { ReadContext } from "../context.ts";
import { lastKnown, unlessUnreachable } from "../last-known.ts";
import {
  countByStatus,
  firstOf,
  redFirst,
  statusSign,
} from "../../fleet/inventory/status-order.ts";
import { isoTime, readAt, projectShape, vmShape } from "../shapes.ts";
import { targetOfVm } from "../../core/submit/resolve-targets.ts";
import { vmCells, whyNotGreen } from "../vm-rows.ts";
import { timeField } from "../vm/show.ts";

const maxRows = 50;
const columns = ["VM", "Status", "CPU", "Memory", "IP address"];

export const show = defineCommand({
  name: "project show",
  aliases: ["status", "describe", "info", "get"],
  summary: "Show a project and its VMs",
  example: "/project show payments",
  class: "read",
  args: z.object({ project: target("project").describe("the project to show") }),
  async answer({ project: words }, context_: ReadContext) {
    const { compute, inventory, resolve, drift, factsAbout, now } = context_;
    const namedProject = await resolve("project", words);
    let isMarked = false;
    const onMark = () => void (isMarked = true);
    const project = await unlessUnreachable(
      compute.projects.get(namedProject.id, { onGaps: onMark }),
    );
    if (project instanceof ComputeError) return lastKnown(namedProject, project, context_);
    let gaps: ListGaps | undefined;
    const onGaps = (short: ListGaps) => void (gaps = short);
    const reading = mayHaveVms(project) ? compute.projects.vms(namedProject.id, { onGaps }) : [];
    const vms = await unlessUnreachable(Promise.resolve(reading));
    if (vms instanceof ComputeError) return lastKnown(namedProject, vms, context_);
    await inventory.note({ project });
    const ids = vms.map(({ id }) => id);
    const failing = await drift.failing(ids);
    const attested = { failing, unverifiable: await drift.unverifiable(ids) };
    const some = firstOf(vms, maxRows, redFirst(failing));
    const vmTargets = some.map((vm) => targetOfVm(vm, project.name));
    const facts = await factsAbout(vmTargets, { reader: context_ });
    const rows = some.map((vm) => [
      ...vmCells(vm, vm.name, attested),
      String(vm.specs?.cpu ?? ""),
      String(vm.specs?.memory ?? ""),
      vm.ipAddress ?? "",
    ]);
    const vmList = new List(rows.length, (many) => {
      const { part, shown } = table(`VMs of ${project.name}`, columns, rows.slice(0, many));
      return [
        part,
        whyNotGreen(some.slice(0, shown), attested, facts),
        showOneOf(some.slice(0, shown)),
        small(
          vms.length > shown
            ? md`The first ${shown} of ${vms.length} are shown; ${name(`/vm list ${plain(project.name, 60)} --status ERROR`)} shows fewer. ID ${name(project.id)}`
            : md`Read at ${when(now())} · ID ${name(project.id)}`,
        ),
      ];
    });
    const head = md`${statusSign(project.status)} *${plain(project.name)}* is *${plain(project.status)}*`;
    return sentence(
      head,
      pairsOf([
        ["Type", md`${plain(project.type)}`],
        ["Region", md`${plain(project.region ?? "not reported")}`],
        timeField("Created", project.createdAt),
        timeField("Changed", project.updatedAt),
      ]),
      paragraph(
        vms.length > 0
          ? md`*${counted(vms.length, "VM")}*: ${countByStatus(vms, failing)}`
          : md`${mayHaveVms(project) ? "It has" : "Projects of this type have"} no VMs.`,
      ),
      gapsSection(isMarked, gaps),
      vmList,
      waysRow(lookButtons(project)),
      waysRow(changeButtons(project, context_)),
    );
  },
  data: {
    at: "/v1/projects/{project}",
    shape: projectShape.extend({
      vms: z.array(vmShape),
      gaps: z
        .string()
        .optional()
        .describe("what of the list of its VMs is missing or can't be read"),
      ...readAt,
    }),
    async readData({ project: words }, { compute, resolve, drift, now }: ReadContext) {
      const { id } = await resolve("project", words);
      const project = await compute.projects.get(id, { onGaps: () => undefined });
      let short: ListGaps | undefined;
      const onGaps = (listGaps: ListGaps) => void (short = listGaps);
      const vms = mayHaveVms(project) ? await compute.projects.vms(id, { onGaps }) : [];
      const gaps = short && gapsWords(short);
      const failing = await drift.failing(vms.map((vm) => vm.id));
      const owner = { projectId: id, projectName: project.name };
      const rows = vms.map((vm) => ({ ...vm, ...owner, failsAttestation: failing.get(vm.id) }));
      return { ...project, vms: rows, readAt: isoTime(now()), ...(gaps ? { gaps } : {}) };
    },
  },
});

/** Says which parts of the project can't be read. Undefined when everything can. */
function gapsSection(isMarked: boolean, gaps: ListGaps | undefined) {
  const words = [
    ...(isMarked ? ["not everything about the project itself can be read"] : []),
    ...(gaps && gaps.marked.length > 0
      ? [`not everything of ${counted(gaps.marked.length, "VM")} can be read`]
      : []),
    ...[(gaps && gapsWords(gaps)) ?? []].flat(),
  ];
  if (words.length === 0) return undefined;
  return small(md`⚠️ *Incomplete:* ${plain(words.join("; "), 600)}.`);
}

function lookButtons({ id, name: called, type }: Project): ButtonSpec[] {
  const refresh = runButton("Refresh", "project.show", { project: id }, called);
  const listVms = runButton("List VMs", "vm.list", { project: id }, `in ${called}`);
  return type === "TEE_VM" ? [listVms, refresh] : [refresh];
}

/** Buttons for what this person may do with the project, in a row of their own. */
function changeButtons(
  { id, name: called, status }: Project,
  { commands, mayRun }: Pick<ReadContext, "commands" | "mayRun">,
): ButtonSpec[] {
  if (status === "DELETING") return [];
  return commands.flatMap((command): ButtonSpec[] => {
    if (!isChange(command) || command.on !== "project" || !mayRun(command)) return [];
    const base = runButton(command.say.verb, dottedName(command), { project: id }, called);
    return [command.class === "destroy" ? { ...base, style: "danger" } : base];
  });
}
