import * as z from "zod";
import { counted, lines, md, name, context, sentence, table } from "../../messages/message.ts";
import { defineCommand } from "../../registry/define.ts";
import type { ReadContext } from "../context.ts";
import { filterFlag, inventoryAge, noSuchPage, pageFlag, perPage } from "../last-known.ts";
import { pageFacts, pageOf, projectShape } from "../shapes.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import { byTrouble, countByStatus, signed } from "../../inventory/known.ts";

export const list = defineCommand({
  name: "project list",
  aliases: ["ls"],
  summary: "List projects, problems first",
  example: "/project list --type TEE_VM",
  class: "read",
  args: z.object({
    type: filterFlag("TEE_VM, GIT_DEPLOY, or CONTAINER"),
    status: filterFlag("only projects in this status"),
    page: pageFlag,
  }),
  async answer(args, { inventory, now }: ReadContext) {
    const { type, status, page = 1 } = args;
    const { all, projects, state } = await selected(args, inventory);
    const age = inventoryAge(state, now());
    if (projects.length === 0) {
      const nothing =
        all.length === 0
          ? md`There are no projects. ${name("/project create")} creates one.`
          : md`No projects match. There are ${countByStatus(all)}; ${name("/project list")} shows them.`;
      return sentence(nothing, context(age));
    }
    const pages = Math.ceil(projects.length / perPage);
    if (page > pages) return noSuchPage(pages, "project list");
    const first = (page - 1) * perPage;
    const { block, shown } = table(
      "Projects",
      ["Name", "Status", "Type", "Region", "ID"],
      projects
        .slice(first, first + perPage)
        .map((one) => [one.name, signed(one), one.type, one.region ?? "", one.id]),
    );
    const cut = Math.min(perPage, projects.length - first) - shown;
    const head = md`*${counted(projects.length, "project")}*: ${countByStatus(projects)}`;
    return sentence(
      head,
      block,
      context(
        lines(
          pages > 1 && pageWords(page, pages, { type, status }),
          cut > 0 && md`${cut} on this page aren't shown, because of long names.`,
          age,
        ),
      ),
    );
  },
  data: {
    at: "/v1/projects",
    shape: z.object({ projects: z.array(projectShape), ...pageFacts }),
    async read(args, { inventory }: ReadContext) {
      const { projects, state } = await selected(args, inventory);
      const { shown, facts } = pageOf(projects, args.page ?? 1, state);
      return { projects: shown, ...facts };
    },
  },
});

async function selected(
  { type, status }: { type?: string | undefined; status?: string | undefined },
  inventory: Inventory,
) {
  await inventory.upToDate();
  const all = await inventory.projects();
  const projects = all
    .filter((one) => same(type, one.type) && same(status, one.status))
    .toSorted(byTrouble);
  return { all, projects, state: await inventory.state() };
}

function same(given: string | undefined, is: string): boolean {
  return given === undefined || given.toUpperCase() === is.toUpperCase();
}

/** The next page keeps the filters. */
function pageWords(
  page: number,
  pages: number,
  filters: Readonly<Record<string, string | undefined>>,
) {
  if (page === pages) return md`Page ${page} of ${pages}, the last.`;
  const given = Object.entries(filters).flatMap(([key, value]) =>
    value === undefined ? [] : [` --${key} ${value}`],
  );
  return md`Page ${page} of ${pages}; ${name(`/project list${given.join("")} --page ${page + 1}`)} shows the next.`;
}
