import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { fold } from "../../text/fold.ts";
import * as z from "zod";
import { byTrouble, countByStatus, statusSign } from "../../fleet/inventory/status-order.ts";
import { small, waysRow } from "../../messages/parts.ts";
import { sentence } from "../../messages/card.ts";
import { lines, md, name } from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { defineCommand } from "../../registry/define.ts";
import { type ReadContext, isKept } from "../context.ts";
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
import { listedProjectShape } from "../shapes.ts";
import { viewLimit } from "../view-limit.ts";

const args = z.object({
  type: filterFlag("only projects of this type: TEE_VM, GIT_DEPLOY, or CONTAINER"),
  status: filterFlag("only projects in this status"),
  page: pageFlag,
});

export const list = defineCommand({
  name: "project list",
  aliases: ["ls"],
  summary: "List projects, problems first",
  example: "/project list --type TEE_VM",
  class: "read",
  args,
  async answer(given, context_: ReadContext) {
    const { all, projects, page, state } = await selected(given, context_);
    const age = inventoryAge(state, context_.now(), { isKept: isKept(context_) });
    const within = (await viewLimit(context_))?.within ?? "";
    if (projects.length === 0) {
      const nothing =
        all.length === 0
          ? md`There are no projects${within}. ${name("/project create")} creates one.`
          : md`No projects${within} match. There are ${countByStatus(all)}; ${name("/project list")} shows them.`;
      return sentence(nothing, small(age));
    }
    if (page.page > page.pages) return noSuchPage(page, "project list");
    const { part, shown } = table(
      "Projects",
      ["Project", "Status", "Type", "Region", "ID"],
      page.rows.map((project) => [
        `${statusSign(project.status)} ${project.name}`,
        project.status,
        project.type,
        project.region ?? "",
        project.id,
      ]),
    );
    const head = md`*${rowsOf(page, shown, ["project", "projects"])}*${within}: ${countByStatus(projects)}`;
    const { type, status } = given;
    const fewer = shown < projects.length && md`${name("--status ERROR")} shows fewer.`;
    return sentence(
      head,
      part,
      small(lines(fewer, age)),
      waysRow(pageButtons(page, { command: "project.list", input: { type, status } })),
    );
  },
  data: {
    at: "/v1/projects",
    shape: z.object({ projects: z.array(listedProjectShape), ...pageShape }),
    async readData(given, context_: ReadContext) {
      const { page } = await selected(given, context_);
      return { projects: page.rows, ...page, isLimited: !(await context_.seesAll()) };
    },
  },
});

async function selected(
  { type, status, page }: z.output<typeof args>,
  { inventory }: { inventory: Inventory },
) {
  await inventory.upToDate();
  const all = await inventory.projects();
  const projects = all.filter(
    (project) => same(type, project.type) && same(status, project.status),
  );
  const state = await inventory.state();
  return { all, projects, page: pageOf(projects, byTrouble, page, state), state };
}

function same(given: string | undefined, value: string): boolean {
  return given === undefined || fold(given) === fold(value);
}
