import * as z from "zod";
import { showOneOf } from "../../registry/command-buttons.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import {
  type Failing,
  byTrouble,
  countByStatus,
  redFirst,
  signed,
} from "../../fleet/inventory/status-order.ts";
import { paragraph, small, waysRow } from "../../messages/parts.ts";
import { List, sentence, card } from "../../messages/card.ts";
import { csv } from "../../messages/csv.ts";
import { counted, lines, md, name, plain, shortened } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { type Answer, defineCommand, fileFlag, runButton, target } from "../../registry/define.ts";
import { plainForm } from "../../text/fold.ts";
import { compareNames } from "../../text/compare-names.ts";
import { parseTime } from "../../text/parse-time.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import { type ReadContext, isKept } from "../context.ts";
import { viewLimit } from "../view-limit.ts";
import { inventoryAge } from "../inventory-age.ts";
import {
  filterFlag,
  noSuchPage,
  pageButtons,
  pageFlag,
  pageOf,
  pageShape,
  rowsOf,
} from "../pages.ts";
import { listedVmShape } from "../shapes.ts";
import { vmCells, whyNotGreen } from "../vm-rows.ts";

type Order = (a: KnownVm, b: KnownVm) => number;

/** Equal VMs are ordered by name, so that pages never overlap. */
const then =
  (first: Order): Order =>
  (a, b) =>
    first(a, b) || compareNames(a.name, b.name) || compareNames(a.id, b.id);

/** The largest or newest come first, unknown values last. */
export const vmOrders = {
  trouble: then(byTrouble),
  name: then(() => 0),
  project: then((a, b) => compareNames(a.projectName, b.projectName)),
  cpu: then((a, b) => (b.specs?.cpu ?? 0) - (a.specs?.cpu ?? 0)),
  memory: then((a, b) => (b.specs?.memory ?? 0) - (a.specs?.memory ?? 0)),
  newest: then((a, b) => (parseTime(b.createdAt) ?? 0) - (parseTime(a.createdAt) ?? 0)),
} satisfies Record<string, Order>;

type VmOrder = keyof typeof vmOrders;

const args = z.object({
  project: target("project").optional().describe("only the VMs of this project"),
  status: filterFlag("only VMs in this status"),
  sort: z
    .enum(Object.keys(vmOrders) as VmOrder[])
    .optional()
    .meta({
      isFlag: true,
      description:
        "by `name` or `project`, or those with the most `cpu` or `memory` or the `newest` first; by default `trouble`, problems first",
    }),
  page: pageFlag,
  csv: fileFlag("send all of them as a file"),
});

export const list = defineCommand({
  name: "vm list",
  aliases: ["ls"],
  roles: ["everyday"],
  startLabel: "List VMs",
  shortcut: {
    callback: "show-vms",
    type: "message",
    name: "Show the VMs named here",
    description: "Look up the VMs that this message names",
  },
  summary: "List VMs, problems first",
  example: "/vm list payments --status RUNNING",
  class: "read",
  inOwnWords: (text) => (asksForTrouble.test(text) ? {} : undefined),
  args,
  async answer(given, context_: ReadContext) {
    const { within, all, wanted, vms, page, state, failing, unverifiable, order } = await selected(
      given,
      context_,
    );
    const age = inventoryAge(state, context_.now(), { isKept: isKept(context_) });
    const limit = within ? undefined : await viewLimit(context_);
    const where = within ? md` in ${name(within.name)}` : md`${limit?.within ?? ""}`;
    const only = wanted === undefined ? md`` : md` with status ${plain(wanted)}`;
    if (vms.length === 0) {
      const way =
        all.length > 0
          ? md`There are ${countByStatus(all, failing)}.`
          : md`${name("/project list")} shows the projects; those of type TEE_VM have VMs.`;
      const nothing = limit
        ? md`There are no VMs${where}${only}. ${way}`
        : md`No VMs${where}${only}. ${way}`;
      return sentence(nothing, small(age));
    }
    if (page.page > page.pages) return noSuchPage(page, "vm list");
    if (given.csv) return asCsv(vms, order, failing);
    const facts = await context_.factsAbout(page.rows.map(targetOf), { reader: context_ });
    const named = Map.groupBy(page.rows, (vm) => vm.name);
    // Written as people type it: where names repeat, only the project tells them apart.
    const calledOf = (vm: KnownVm) =>
      named.get(vm.name)?.length === 1 ? vm.name : `${vm.projectName}/${vm.name}`;
    const rows = page.rows.map((vm) => [
      ...vmCells(vm, calledOf(vm), { failing, unverifiable }),
      shortened(plain(vm.projectName, 1_000), mostInProject),
      ...restOf(vm),
    ]);
    const { project, status, sort = "trouble" } = given;
    const input = { project, status, sort };
    const whole = runButton("All as a file", "vm.list:csv", { csv: true, ...input });
    const body = new List(rows.length, (many) => {
      const { part, shown } = table("VMs", ["VM", ...columns.slice(1)], rows.slice(0, many));
      const isPart = shown < vms.length;
      const head = md`*${rowsOf(page, shown, ["VM", "VMs"])}*${where}${only}: ${countByStatus(vms, failing)}`;
      const narrower = md`${name("/vm list <project>")} or ${name("--status ERROR")} shows fewer.`;
      return [
        paragraph(head),
        part,
        whyNotGreen(page.rows.slice(0, shown), { failing, unverifiable }, facts),
        showOneOf(page.rows.slice(0, shown)),
        small(lines(isPart && narrower, age)),
        waysRow([...pageButtons(page, { command: "vm.list", input }), ...(isPart ? [whole] : [])]),
      ];
    });
    const head = md`${counted(vms.length, "VM")}${where}${only}: ${countByStatus(vms, failing)}`;
    return card({ push: head, body: [body] });
  },
  data: {
    at: "/v1/vms",
    shape: z.object({ vms: z.array(listedVmShape), ...pageShape }),
    async readData(given, context_: ReadContext) {
      const { page, failing } = await selected(given, context_);
      const vms = page.rows.map((vm) => ({ ...vm, failsAttestation: failing.get(vm.id) }));
      return { vms, ...page, isLimited: !(await context_.seesAll()) };
    },
  },
});

const trouble =
  "(?:broken|failing|failed|red|down|unhealthy|wrong|on fire|in error|erroring|in trouble|not working|sick|dead)";
const things = "(?:vms?|servers?|machines?|instances?|ones?|things?|stuff)";
const problems = "(?:problems?|errors?|issues?|failures?|troubles?|outages?)";
const place = "(?: (?:right now|now|today|here|at the moment|currently|there))?";

/** Questions about everything that isn't well, and none about one VM. */
const asksForTrouble = new RegExp(
  [
    `(?:what|which(?: of)?(?: the| our| my)?(?: ${things})?)(?:'?s| is| are)?(?: all)?(?: currently)? ${trouble}`,
    `(?:is|are) (?:anything|something|everything|any ${things}|any of (?:the|our|my) ${things}) ${trouble}`,
    `(?:is|are) (?:everything|all|we|all (?:the |our |my )?${things}) (?:ok|okay|fine|good|up|well|healthy|green)`,
    `any(?:thing|one| ${things})? ${trouble}`,
    `(?:are there |is there |do we have |got )?any ${problems}`,
    `what (?:broke|failed|fails)|what(?:'?s| is) (?:up|the (?:problem|matter|issue))`,
    `(?:list|show)(?: me)?(?: all)?(?: the| our| my)? ${trouble} ${things}`,
    `(?:list|show)(?: me)?(?: all)?(?: the| our| my)? ${problems}`,
    `show me what(?:'?s| is) ${trouble}`,
    `${trouble}|${problems}`,
  ]
    .map((question) => `^(?:${question})${place}$`)
    .join("|"),
);

async function selected(
  { project, status, sort = "trouble", page }: z.output<typeof args>,
  { inventory, resolve, drift }: ReadContext,
) {
  const within = project === undefined ? undefined : await resolve("project", project);
  await inventory.upToDate();
  const all = await inventory.vms(within ? { projectId: within.id } : {});
  const wanted = status === undefined ? undefined : plainForm(status).toUpperCase();
  const vms = wanted === undefined ? all : all.filter((vm) => vm.status.toUpperCase() === wanted);
  const [state, failing, unverifiable] = await Promise.all([
    inventory.state(),
    drift.failing(),
    drift.unverifiable(),
  ]);
  const order = sort === "trouble" ? then(redFirst(failing)) : vmOrders[sort];
  const rows = pageOf(vms, order, page, state);
  return { within, all, wanted, vms, page: rows, state, failing, unverifiable, order };
}

const columns = ["Name", "Status", "Project", "Region", "CPU", "Memory"];

/** The list as a file. A file can't be ephemeral, so it is sent as a direct message. */
function asCsv(vms: readonly KnownVm[], order: Order, failing: Failing): Answer {
  const text = md`All ${vms.length} VMs are in a file in your direct messages.`;
  const rows = [...vms].toSorted(order).map((vm) => [...row(vm, failing), vm.id]);
  const content = csv([[...columns, "id"].map((column) => column.toLowerCase()), ...rows]);
  return { message: sentence(text), file: { name: "vms.csv", title: "VMs", content } };
}

function row(vm: KnownVm, failing: Failing): string[] {
  return [vm.name, signed(vm, failing), vm.projectName, ...restOf(vm)];
}

const restOf = ({ region, specs }: KnownVm) => [
  region ?? "",
  String(specs?.cpu ?? ""),
  String(specs?.memory ?? ""),
];

/** The longest name of a project in the table (characters). */
const mostInProject = 24;
