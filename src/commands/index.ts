import type { Command } from "../registry/define.ts";
import type { ReadContext } from "./context.ts";
import { approvals } from "./gatehouse/approvals.ts";
import { audit } from "./gatehouse/audit.ts";
import { canI } from "./gatehouse/can-i.ts";
import { help } from "./gatehouse/help.ts";
import { jobs } from "./gatehouse/jobs.ts";
import { status } from "./gatehouse/status.ts";
import { why } from "./gatehouse/why.ts";
import { create } from "./project/create.ts";
import { deleteProject } from "./project/delete.ts";
import { list as listProjects } from "./project/list.ts";
import { show as showProject } from "./project/show.ts";
import { update } from "./project/update.ts";
import { list as listVms } from "./vm/list.ts";
import { metrics } from "./vm/metrics.ts";
import { resize } from "./vm/resize.ts";
import { restart } from "./vm/restart.ts";
import { show as showVm } from "./vm/show.ts";
import { start } from "./vm/start.ts";
import { stop } from "./vm/stop.ts";

/** The commands that belong to no feature, in the order of help. */
export const commands: readonly Command<ReadContext>[] = [
  listVms,
  showVm,
  metrics,
  start,
  stop,
  restart,
  resize,
  listProjects,
  showProject,
  create,
  update,
  deleteProject,
  help,
  jobs,
  approvals,
  status,
  canI,
  why,
  audit,
];
