import { renderHelp } from "../../../src/registry/help.ts";
import { trouble, well } from "../../../src/messages/finding.ts";
import { md } from "../../../src/messages/markdown.ts";
import { approvals } from "../../../src/commands/gatehouse/approvals.ts";
import { canI } from "../../../src/commands/gatehouse/can-i.ts";
import { help } from "../../../src/commands/gatehouse/help.ts";
import { jobs } from "../../../src/commands/gatehouse/jobs.ts";
import { status } from "../../../src/commands/gatehouse/status.ts";
import { why } from "../../../src/commands/gatehouse/why.ts";
import { commands } from "../../../src/commands/index.ts";
import { lastKnown } from "../../../src/commands/last-known.ts";
import { noSuchPage } from "../../../src/commands/pages.ts";
import { list as listProjects } from "../../../src/commands/project/list.ts";
import { show as showProject } from "../../../src/commands/project/show.ts";
import { list as listVms } from "../../../src/commands/vm/list.ts";
import { metrics } from "../../../src/commands/vm/metrics.ts";
import { show as showVm } from "../../../src/commands/vm/show.ts";
import { ComputeError } from "../../../src/fleet/compute/compute.ts";
import type { Command } from "../../../src/registry/define.ts";
import type { Input } from "../../../src/registry/invocation.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf } from "../reading.ts";
import { done, recordOf, sent, stageOf, stored, vmTarget } from "../requests.ts";

/** Requests that wait, run, and have ended. */
const requestsOf = (about: About): readonly StoredRequest[] => {
  const amir = { id: "U0AMIR", teamId: "T0OURS", name: "amir" };
  const record = recordOf(about, { id: "r-2waits4you", requester: amir });
  const running = recordOf(about, { id: "r-3runs5now1", command: "vm restart" });
  return [
    stored(about, { record }),
    stored(about, { record: running }, stageOf("accepted", sent(about))),
    done(about, { command: "vm restart" }),
  ];
};

const answers =
  (command: Command, input: Input | ((about: About) => Input) = {}) =>
  (about: About) =>
    answerOf(
      command,
      typeof input === "function" ? input(about) : input,
      readingOf(about, commands, { requests: requestsOf(about) }),
    );

const withheld = commands
  .filter(({ name }) => /^vm (restart|stop)$/.test(name))
  .map((command) => ({
    command,
    who: md`Only @oncall can restart VMs.`,
    rule: md`Rule: \`access.operate\` in gatehouse.yml.`,
    isForEmergencies: false,
  }));

const parts = [
  { ...well("connected for 3 d"), kind: "Slack" },
  { ...well("12 MB of 512 MB"), kind: "Redis" },
  {
    ...trouble("can't be reached"),
    kind: "Compute service",
    advice: "Check `COMPUTE_API_URL`.",
    since: at - 240_000,
  },
];

export const examples: readonly Example[] = [
  { name: "/vm list", make: answers(listVms) },
  { name: "/vm list without a match", make: answers(listVms, { status: "DELETING" }) },
  { name: "/vm list --csv", make: answers(listVms, { csv: true }) },
  {
    name: "/vm list, a page that isn't there",
    make: () => noSuchPage({ page: 9, pages: 2, rows: [], from: 0 } as never, "vm list"),
  },
  { name: "/vm show", make: answers(showVm, ({ vm }) => ({ vm })) },
  { name: "/vm show, of a VM in trouble", make: answers(showVm, { vm: "web-2" }) },
  { name: "/vm metrics", make: answers(metrics, ({ vm }) => ({ vm })) },
  {
    name: "/vm show, without the compute service",
    make: (about) => {
      const away = new ComputeError("unreachable", "GET /v1/vms/{vm_id}", "away", {});
      return lastKnown(vmTarget(about.vm), away, readingOf(about, commands));
    },
  },
  { name: "/project list", make: answers(listProjects) },
  {
    name: "/project list, without any",
    make: (about) => {
      const reading = readingOf(about, commands);
      const inventory = { ...reading.inventory, projects: async () => [] };
      return answerOf(listProjects, {}, { ...reading, inventory });
    },
  },
  { name: "/project show", make: answers(showProject, { project: "payments" }) },
  { name: "/gatehouse help", make: answers(help) },
  { name: "/gatehouse help all", make: answers(help, { command: "all" }) },
  { name: "/gatehouse help, of a command", make: answers(help, { command: "vm restart" }) },
  { name: "/gatehouse help, of nothing", make: answers(help, { command: "vm reboot" }) },
  {
    name: "/gatehouse status",
    make: (about) =>
      answerOf(status, {}, readingOf(about, commands, { status: async () => parts })),
  },
  { name: "/gatehouse jobs", make: answers(jobs) },
  {
    name: "/gatehouse jobs, without any",
    make: (about) => answerOf(jobs, {}, readingOf(about, commands)),
  },
  { name: "/gatehouse approvals", make: answers(approvals) },
  {
    name: "/gatehouse approvals, without any",
    make: (about) => answerOf(approvals, {}, readingOf(about, commands)),
  },
  { name: "/gatehouse can-i", make: answers(canI, ({ vm }) => ({ command: `vm stop ${vm}` })) },
  { name: "/gatehouse can-i, for a typo", make: answers(canI, { command: "vm sotp db-1" }) },
  {
    name: "/gatehouse why, of a request",
    make: answers(why, { request: "r-7fk3m9q2xw" }),
  },
  {
    name: "/gatehouse why, of a request that waits",
    make: answers(why, { request: "r-2waits4you" }),
  },
  { name: "/gatehouse can-i, for a read", make: answers(canI, { command: "vm list" }) },
  { name: "/gatehouse help, of a flag", make: answers(help, { command: "csv" }) },
  { name: "/gatehouse help, of no command", make: answers(help, { command: "teleport" }) },
  { name: "/gatehouse help break-glass", make: answers(help, { command: "break-glass" }) },
  {
    name: "/gatehouse help, of what others may run",
    make: () => renderHelp([help], "vm restart", undefined, undefined, withheld),
  },
  {
    name: "/gatehouse help, of several that others may run",
    make: () => renderHelp([help], "vm", undefined, undefined, withheld),
  },
  { name: "/gatehouse help, without a right", make: () => renderHelp([], "vm") },
];
