import * as z from "zod";
import { context, message, readable, section } from "../../messages/message.ts";
import { lines, md, name } from "../../messages/text.ts";
import { flagOnly, wholeNumber } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { inventoryAge } from "../inventory-age.ts";
import { shownTable } from "../shown-table.ts";
import { byTrouble, countByStatus, statusSign } from "../status-words.ts";

const perPage = 50;

export const list = defineCommand({
  kind: "read",
  name: "project list",
  summary: "List projects, those in trouble first",
  example: "/project list --type TEE_VM",
  class: "read",
  args: z.object({
    type: flagOnly(z.string().max(40).optional().describe("TEE_VM, GIT_DEPLOY or CONTAINER")),
    status: flagOnly(z.string().max(40).optional().describe("only projects in this status")),
    page: wholeNumber(10_000).optional().meta({ flagOnly: true, description: "which page of 50" }),
  }),
  async answer({ type, status, page = 1 }, { inventory, now }) {
    const all = await inventory.projects();
    const projects = all
      .filter((one) => same(type, one.type) && same(status, one.status))
      .toSorted(byTrouble);
    const age = inventoryAge(await inventory.state(), now());
    const pages = Math.max(1, Math.ceil(projects.length / perPage));
    if (projects.length === 0) {
      const nothing =
        all.length === 0
          ? md`There are no projects. ${name("/project create")} makes one.`
          : md`No projects match. There are ${countByStatus(all)}; ${name("/project list")} shows them.`;
      return message(readable(nothing), section(nothing), context(age));
    }
    if (page > pages) {
      return message(
        "No such page",
        section(
          md`There ${pages === 1 ? "is one page" : `are ${pages} pages`}. ${name("/project list --page 1")} shows the first.`,
        ),
      );
    }
    const first = (page - 1) * perPage;
    const { block, shown } = shownTable(
      ["name", "status", "type", "region", "id"],
      projects
        .slice(first, first + perPage)
        .map((one) => [
          one.name,
          `${statusSign(one.status)} ${one.status}`,
          one.type,
          one.region ?? "",
          one.id,
        ]),
    );
    const cut = Math.min(perPage, projects.length - first) - shown;
    const head = md`*${projects.length} ${projects.length === 1 ? "project" : "projects"}*: ${countByStatus(projects)}`;
    return message(
      readable(head),
      section(head),
      block,
      context(
        lines(
          pages > 1 && pageWords(page, pages, { type, status }),
          cut > 0 && md`${cut} of this page found no room: their names are long.`,
          age,
        ),
      ),
    );
  },
});

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
  return md`Page ${page} of ${pages}; ${name(`/project list${given.join("")} --page ${page + 1}`)} goes on.`;
}
