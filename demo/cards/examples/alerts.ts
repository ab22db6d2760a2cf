import { renderRefusal } from "../../../src/features/alerts/refusals.ts";
import type { AlertSource } from "../../../src/features/alerts/sources.ts";
import { someOf } from "../reading.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { show } from "../../../src/commands/vm/show.ts";
import {
  type View,
  renderAlert,
  renderCall,
  renderConfirm,
  renderEvents,
  renderMoved,
} from "../../../src/features/alerts/render-alert.ts";
import { renderOverview } from "../../../src/features/alerts/render-overview.ts";
import type { LastChangeFact } from "../../../src/core/facts/last-change-facts.ts";
import type { StoredAlert } from "../../../src/features/alerts/alerts.ts";
import { md } from "../../../src/messages/markdown.ts";
import type { Target } from "../../../src/registry/define.ts";
import { type About, type Example, at } from "../example.ts";
import { done, freezeBy, vmTarget } from "../requests.ts";

type Group = StoredAlert["record"]["group"];

const alertOn = (vm: string, over: object = {}): Group["alerts"][string] => ({
  at: at - 300_000,
  detail: {
    name: "HighCpu",
    vm,
    severity: "critical",
    summary: `CPU of ${vm} above 95% for 5 min`,
    description: "Requests wait longer than 2 s. The runbook says what to try.",
    runbook: "https://runbooks.example/HighCpu",
    graph: "https://prometheus.example/graph",
    since: at - 300_000,
  },
  ...over,
});

function groupOf(
  vms: readonly string[],
  over: Partial<StoredAlert> = {},
  of: object = {},
): StoredAlert {
  const ended = over.state === "ended" ? { endedAt: at } : {};
  const alerts = Object.fromEntries(vms.map((vm) => [`f-${vm}`, alertOn(vm, { ...ended, ...of })]));
  return {
    id: "a-5kq7zv2m",
    record: {
      source: "prometheus",
      channelId: "C01OPS",
      group: { alerts, omitted: 0, told: { heardAt: at, states: [], senders: {} } },
      vms: vms.map((label) => ({ label, id: vmTarget(label).id })),
      events: [],
      told: 0,
      firings: 1,
      urgentAt: at,
      requests: [],
    },
    state: "firing",
    revision: 1,
    createdAt: at,
    changedAt: at,
    delivered: { marks: {}, formerShown: "" } as never,
    closed: {} as never,
    ...over,
  };
}

const lastChange = (about: Target): LastChangeFact => ({
  kind: "last change",
  about,
  severity: "info",
  sign: "🕒",
  text: md`The last change of ${about.name} with Gatehouse: ada restarted it.`,
  deed: md`ada restarted it`,
  since: at - 7_200_000,
  request: "r-4cd8n2v7aa",
});

const viewOf = (alert: StoredAlert, over: Partial<View> = {}): View => ({
  alert,
  vms: new Map(
    alert.record.vms.map(({ label }, n) => [
      label,
      {
        n,
        target: vmTarget(label),
        readAt: at,
        facts: [lastChange(vmTarget(label))],
        advice: [{ command: "vm restart", text: "A restart didn't help the last 2 times" }],
      },
    ]),
  ),
  offered: [show, restart],
  instead: "",
  presses: [],
  frozen: undefined,
  helpsWithinMs: 300_000,
  policy: { confirm: [] },
  ...over,
});

const firing = ({ vm }: About) => viewOf(groupOf([vm]));
const pressed = (about: About) => {
  const request = done(about, { command: "vm restart" });
  return { ...firing(about), presses: [{ request, command: restart }] };
};
const ended = (about: About) => ({
  ...pressed(about),
  alert: groupOf([about.vm], { state: "ended" }),
});

export const examples: readonly Example[] = [
  {
    name: "an alert",
    reader: "on-call",
    make: (about) => renderAlert(firing(about), ["S01ONCALL"]),
    push: "🔥 HighCpu on db-1: CPU of db-1 above 95% for 5 min",
  },
  { name: "an alert after a press", make: (about) => renderAlert(pressed(about)) },
  {
    name: "an alert during a freeze",
    make: (about) => renderAlert({ ...firing(about), frozen: freezeBy(about) }),
  },
  {
    name: "an alert on several VMs",
    reader: "on-call",
    make: ({ vm }) => renderAlert(viewOf(groupOf([vm, "web-1", "web-2"])), ["S01ONCALL"]),
    push: "🔥 HighCpu on db-1, web-1, web-2: CPU of db-1 above 95% for 5 min",
  },
  {
    name: "an alert on something that is no VM",
    make: ({ vm }) => renderAlert({ ...viewOf(groupOf([vm])), vms: new Map() }),
  },
  {
    name: "an alert that ended",
    make: (about) => renderAlert(ended(about)),
  },
  {
    name: "a call of those who weren't called before",
    reader: "on-call",
    make: (about) => renderCall(["S01ONCALL"], [firing(about)]),
    push: "🔥 HighCpu on db-1 · critical",
  },
  {
    name: "an alert that joined another one",
    make: (about) => renderEvents([{ is: "joined", vms: [about.vm] }], firing(about)),
  },
  {
    name: "an alert that fires again",
    make: (about) => renderEvents([{ is: "fired", vms: [about.vm] }], firing(about)),
  },
  {
    name: "an end of an alert, in its thread",
    make: (about) => renderEvents([{ is: "ended", vms: [] }], ended(about)),
  },
  {
    name: "an alert that moved to another channel",
    make: (about) => renderMoved(firing(about), "C02STATUS"),
  },
  {
    name: "a question before a change from an alert's menu",
    make: (about) => {
      const view = firing(about);
      const [vm] = view.vms.values();
      if (!vm) throw new Error("no VM");
      return renderConfirm({ action: "alert:vm.restart", value: "{}" }, restart, vm, view.alert);
    },
  },
  {
    name: "an overview of many alerts",
    reader: "channel",
    make: ({ vm }) => {
      const groups = [groupOf([vm]), groupOf(["web-1"])];
      const rows = groups.map((group) => ({ view: viewOf(group), groups: [group] }));
      return renderOverview(rows, { firing: 9, ended: 2 });
    },
    push: "🔥 9 alert groups firing: HighCpu on db-1",
  },
  {
    name: "an overview of alerts that have all ended",
    make: () => renderOverview([], { firing: 0, ended: 11 }),
  },
  {
    name: "a source of alerts that is refused",
    reader: "channel",
    make: () =>
      renderRefusal("prometheus", someOf<AlertSource>({ format: "alertmanager" }), {
        status: 401,
        why: "Its secret is wrong.",
      }),
  },
];
