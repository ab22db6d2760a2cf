import * as z from "zod";
import { context, message, section, table } from "../../messages/message.ts";
import { lines, md, name } from "../../messages/text.ts";
import { flagOnly, wholeNumber } from "../../registry/arguments.ts";
import { defineCommand } from "../../registry/define.ts";
import { inventoryAge } from "../inventory-age.ts";
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
    const same = (given: string | undefined, is: string) =>
      given === undefined || given.toUpperCase() === is.toUpperCase();
    const projects = all
      .filter((one) => same(type, one.type) && same(status, one.status))
      .toSorted(byTrouble);
    const age = inventoryAge(await inventory.state(), now());
    const pages = Math.max(1, Math.ceil(projects.length / perPage));
    if (projects.length === 0) {
      const others = all.length === 0 ? md`` : md` There are ${countByStatus(all)}.`;
      return message("No projects", section(md`No projects match.${others}`), context(age));
    }
    if (page > pages) {
      return message(
        "No such page",
        section(
          md`There ${pages === 1 ? "is one page" : `are ${pages} pages`}. ${name("/project list --page 1")} shows the first.`,
        ),
      );
    }
    const shown = projects.slice((page - 1) * perPage, page * perPage);
    return message(
      `${projects.length} projects: ${countByStatus(projects)}`,
      section(
        md`*${projects.length} ${projects.length === 1 ? "project" : "projects"}*: ${countByStatus(projects)}`,
      ),
      table(
        ["name", "status", "type", "region", "id"],
        shown.map((one) => [
          one.name,
          `${statusSign(one.status)} ${one.status}`,
          one.type,
          one.region ?? "",
          one.id,
        ]),
      ),
      context(
        lines(
          pages > 1 &&
            md`Page ${page} of ${pages}; ${name(`/project list --page ${page + 1}`)} goes on.`,
          age,
        ),
      ),
    );
  },
});
