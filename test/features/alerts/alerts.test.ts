import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AlertSource } from "../../../src/features/alerts/sources.ts";
import {
  detailsOf,
  firingIn,
  isFiring,
  merge,
  type AlertGroup,
} from "../../../src/features/alerts/alerts.ts";
import { settle } from "../../../src/features/alerts/alert-group.ts";
import { type Alert, readAlerts } from "../../../src/features/alerts/read-alerts.ts";
import { alertmanagerBody, minute, pagerdutyBody } from "./sending.ts";

const none: AlertGroup = { alerts: {}, omitted: 0 };
const now = Date.parse(minute(30));
/** Seconds after 03:00 as a time of day. */
const clock = (seconds: number) =>
  new Date(3 * 3600_000 + seconds * 1000).toISOString().slice(11, 19);

const sourceOf = (format: AlertSource["format"], more: Partial<AlertSource> = {}): AlertSource => ({
  format,
  vm: ["vm", "instance"],
  offer: [],
  notify: {},
  signed: false,
  ...more,
});

function readOne(body: unknown, source: AlertSource): Alert & { group: string } {
  const delivery = readAlerts(body, source);
  if ("field" in delivery) throw new Error(`${delivery.field}: ${delivery.text}`);
  const [alert] = delivery.alerts;
  if (!alert) throw new Error("no alert");
  return { ...alert, group: delivery.groupKey };
}

const problem = (body: unknown, source: AlertSource) => {
  const delivery = readAlerts(body, source);
  return "field" in delivery ? delivery.field : "none";
};

/** Grafana's example: https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/ */
const grafanaBody = {
  receiver: "My Super Webhook",
  status: "firing",
  orgId: 1,
  alerts: [
    {
      status: "firing",
      labels: { alertname: "High memory usage", team: "blue", zone: "us-1" },
      annotations: {
        description: "The system has high memory usage",
        summary: "This alert was triggered for zone us-1",
      },
      startsAt: "2021-10-12T09:51:03.157076+02:00",
      endsAt: "0001-01-01T00:00:00Z",
      generatorURL: "https://play.grafana.org/alerting/1afz29v7z/edit",
      fingerprint: "c6eadffa33fcdf37",
      silenceURL: "https://play.grafana.org/alerting/silence/new",
      dashboardURL: "",
      panelURL: "",
      values: { B: 44.23943737541908, C: 1 },
    },
    {
      status: "resolved",
      labels: { alertname: "High CPU usage", team: "blue", zone: "eu-1" },
      annotations: { description: "The system has high CPU usage" },
      startsAt: "2021-10-12T09:56:03.157076+02:00",
      endsAt: "2021-10-12T10:01:03.157076+02:00",
      fingerprint: "d1e59ba1a8a1b6a1",
      values: null,
    },
  ],
  groupLabels: {},
  commonLabels: { team: "blue" },
  commonAnnotations: {},
  externalURL: "https://play.grafana.org/",
  version: "1",
  groupKey: "{}:{}",
  truncatedAlerts: 0,
  title: "[FIRING:2]  (blue)",
  state: "alerting",
  message: "**Firing**",
};

describe("the format of a delivery", () => {
  it("is Alertmanager's: the first label that names a VM counts, and an end has its time", () => {
    expect(readOne(alertmanagerBody([{}]), sourceOf("alertmanager"))).toMatchObject({
      group: '{}:{alertname="HighCpu"}',
      at: Date.parse(minute(0)),
      name: "HighCpu",
      vm: "web-2",
      severity: "critical",
      summary: "CPU above 95% for 5 min",
    });
    const instance = alertmanagerBody([
      { label: "instance", vm: "web-2:9100", status: "resolved" },
    ]);
    expect(readOne(instance, sourceOf("alertmanager"))).toMatchObject({
      vm: "web-2:9100",
      endedAt: Date.parse(minute(9)),
    });
  });

  it("has a runbook and a graph that a browser can open, and what the source says beyond the summary", () => {
    const runbook_url = "https://runbooks.example/HighCpu?a=1#fix";
    const description = `CPU of web-2 is 97%.${" It is high.".repeat(60)}`;
    const sent = {
      notes: { runbook_url, description },
      graph: "http://prometheus.example/graph?g0",
    };
    const read = readOne(alertmanagerBody([sent]), sourceOf("alertmanager"));
    expect(read).toMatchObject({
      runbook: runbook_url,
      graph: "http://prometheus.example/graph?g0",
    });
    expect(read.description).toMatch(/^CPU of web-2 is 97%\. It is high\..*…$/);
    expect(read.description).toHaveLength(300);
    const dashboard = { notes: { dashboard_url: "https://grafana.example/d/1" } };
    expect(readOne(alertmanagerBody([dashboard]), sourceOf("alertmanager")).graph).toBe(
      "https://grafana.example/d/1",
    );
  });

  it.each([
    "javascript:alert(1)",
    "data:text/html,x",
    "//evil.example",
    "runbooks/HighCpu",
    "https://",
    "https://user:secret@wiki.example/",
    `https://wiki.example/${"a".repeat(1_000)}`,
    { url: "https://wiki.example" },
    "",
  ])("has no link to %j", (address) => {
    const body = alertmanagerBody([{ notes: { runbook_url: address }, graph: address }]);
    const read = readOne(body, sourceOf("alertmanager"));
    expect([read.runbook, read.graph]).toEqual([undefined, undefined]);
  });

  it("has the links of Grafana's panels, PagerDuty's links, and those of `plain`", () => {
    const [firing, ...others] = grafanaBody.alerts;
    const panel = { ...firing, panelURL: "https://play.grafana.org/d/1?viewPanel=2" };
    expect(
      readOne({ ...grafanaBody, alerts: [panel, ...others] }, sourceOf("grafana")),
    ).toMatchObject({
      graph: "https://play.grafana.org/d/1?viewPanel=2",
      description: "The system has high memory usage",
    });
    const { event } = pagerdutyBody();
    const links = [
      { href: "https://graphs.example/web-2", text: "CPU" },
      { href: "https://wiki.example/cpu", text: "The runbook" },
    ];
    const data = { ...event.data, links, body: { details: "load 40" } };
    expect(readOne({ event: { ...event, data } }, sourceOf("pagerduty"))).toMatchObject({
      runbook: "https://wiki.example/cpu",
      graph: "https://graphs.example/web-2",
      description: "load 40",
    });
    const more = {
      runbook: "https://wiki.example/disk",
      graph: "https://g.example",
      description: "sda",
    };
    const one = { name: "DiskFull", vm: "web-2", startsAt: minute(0), ...more };
    expect(readOne({ alerts: [one] }, sourceOf("plain"))).toMatchObject({
      ...more,
      graph: "https://g.example/",
    });
  });

  it("is Grafana's, with its additions", () => {
    const delivery = readAlerts(grafanaBody, sourceOf("grafana", { vm: ["zone"] }));
    expect(delivery).toMatchObject({
      groupKey: "{}:{}",
      alerts: [
        {
          name: "High memory usage",
          summary: "This alert was triggered for zone us-1",
          vm: "us-1",
        },
        { name: "High CPU usage", summary: "The system has high CPU usage", vm: "eu-1" },
      ],
    });
  });

  it("is PagerDuty's: the later event counts, and a ping is nothing", () => {
    const source = sourceOf("pagerduty", { vm: ["incident_key"] });
    const fired = readOne(pagerdutyBody(), source);
    expect(fired).toMatchObject({
      group: "PGR0VU2",
      vm: "web-2",
      severity: "P1",
      summary: "API Service",
    });
    const resolved = readOne(pagerdutyBody("resolved", "2026-11-25T03:05:00Z"), source);
    expect(resolved).toMatchObject({
      key: fired.key,
      at: Date.parse(minute(5)),
      endedAt: Date.parse(minute(5)),
    });
    const ping = { event: { event_type: "pagey.ping", data: { message: "Hello", type: "ping" } } };
    expect(readAlerts(ping, source)).toEqual({ groupKey: "", alerts: [], omitted: 0 });
  });

  it("is Gatehouse's own simple one", () => {
    const body = { alerts: [{ name: "DiskFull", vm: "db-1", startsAt: minute(0) }] };
    const fired = readOne(body, sourceOf("plain"));
    expect(fired).toMatchObject({ group: "DiskFull", name: "DiskFull", vm: "db-1" });
    const over = {
      alerts: [{ name: "DiskFull", vm: "db-1", status: "resolved", endsAt: minute(3) }],
    };
    expect(readOne(over, sourceOf("plain"))).toMatchObject({
      key: fired.key,
      endedAt: Date.parse(minute(3)),
    });
  });

  /** Each of these ways to leave a field out means the same. */
  const left = [undefined, null, ""];
  const [prometheusAlert] = alertmanagerBody([{}]).alerts;

  it.each([
    ["alertmanager", ["status", "externalURL", "truncatedAlerts"]],
    ["grafana", ["status", "externalURL", "truncatedAlerts"]],
    ["plain", ["group"]],
  ] as const)(
    "lets what is optional of a group be absent, null, or empty: %s",
    (format, fields) => {
      const bodies = {
        alertmanager: alertmanagerBody([{}]),
        grafana: grafanaBody,
        plain: { alerts: [{ name: "DiskFull", vm: "db-1", startsAt: minute(0) }] },
      };
      for (const field of fields)
        for (const value of left)
          expect(problem({ ...bodies[format], [field]: value }, sourceOf(format)), field).toBe(
            "none",
          );
    },
  );

  it.each([
    ["alertmanager", ["annotations", "endsAt", "fingerprint", "generatorURL", "panelURL"]],
    ["grafana", ["annotations", "endsAt", "fingerprint", "dashboardURL", "values"]],
    [
      "plain",
      ["status", "vm", "summary", "severity", "description", "runbook", "graph", "endsAt", "id"],
    ],
  ] as const)(
    "lets what is optional of an alert be absent, null, or empty: %s",
    (format, fields) => {
      const simple = { name: "DiskFull", vm: "db-1", startsAt: minute(0) };
      const body =
        format === "plain"
          ? {}
          : { ...alertmanagerBody([]), version: format === "grafana" ? "1" : "4" };
      for (const field of fields)
        for (const value of left) {
          const alert = { ...(format === "plain" ? simple : prometheusAlert), [field]: value };
          const read = readOne({ ...body, alerts: [alert] }, sourceOf(format));
          expect(isFiring(read), field).toBe(true);
          expect(read.at, field).toBe(Date.parse(minute(0)));
        }
    },
  );

  it("lets what is optional of an incident be absent, null, or empty", () => {
    const { event } = pagerdutyBody();
    const fields = [
      "title",
      "created_at",
      "incident_key",
      "urgency",
      "priority",
      "service",
      "links",
      "body",
    ];
    for (const field of fields)
      for (const value of left) {
        const body = { event: { ...event, data: { ...event.data, [field]: value } } };
        expect(problem(body, sourceOf("pagerduty")), field).toBe("none");
      }
    const data = { ...event.data, links: [null, { href: null, text: null }] };
    expect(problem({ event: { ...event, data } }, sourceOf("pagerduty"))).toBe("none");
  });

  it("takes the alerts that can be read, and counts the others", () => {
    const [good] = alertmanagerBody([{}]).alerts;
    const [ended] = alertmanagerBody([{ status: "resolved", vm: "db-1" }]).alerts;
    const alerts = [good, null, { ...good, startsAt: "then" }, { ...ended, startsAt: "then" }];
    expect(readAlerts({ ...alertmanagerBody([]), alerts }, sourceOf("alertmanager"))).toMatchObject(
      {
        alerts: [{ name: "HighCpu" }],
        isWhole: false,
        unreadable: { count: 3, open: 2, why: expect.stringMatching(/^alerts\.1: /) },
      },
    );
    const simple = { name: "DiskFull", vm: "db-1", startsAt: minute(0) };
    expect(readAlerts({ alerts: [{}, simple] }, sourceOf("plain"))).toMatchObject({
      alerts: [{ name: "DiskFull" }],
      unreadable: { count: 1, open: 1, why: expect.stringMatching(/^alerts\.0\.name: /) },
    });
  });

  it.each([
    [
      "DatasourceError",
      { Error: "failed to build query A: data source not found" },
      "PaymentsLatency can't be evaluated",
    ],
    ["DatasourceNoData", { summary: "p95 above 500 ms" }, "PaymentsLatency has no data"],
  ])("names the rule that Grafana calls %s, and says why", (alertname, notes, name) => {
    const labels = { alertname, rulename: "PaymentsLatency", severity: "page" };
    const [alert] = grafanaBody.alerts;
    const body = { ...grafanaBody, alerts: [{ ...alert, labels, annotations: notes }] };
    const [summary] = Object.values(notes);
    expect(readOne(body, sourceOf("grafana"))).toMatchObject({ name, summary, severity: "page" });
    const { rulename: _, ...unnamed } = labels;
    const plain = { ...body, alerts: [{ ...alert, labels: unnamed, annotations: notes }] };
    expect(readOne(plain, sourceOf("grafana")).name).toBe(alertname);
  });

  it("says of a rule that alerts because Grafana can't evaluate it that this is why", () => {
    const [alert] = grafanaBody.alerts;
    const annotations = { summary: "High", Error: "timeout", grafana_state_reason: "Error" };
    const body = { ...grafanaBody, alerts: [{ ...alert, annotations }] };
    expect(readOne(body, sourceOf("grafana"))).toMatchObject({
      name: "High memory usage can't be evaluated",
      summary: "timeout",
    });
  });

  it("is refused with the name of the wrong field, and without its value", () => {
    const broken = alertmanagerBody([{ startsAt: "secret-time" }]);
    expect(problem(broken, sourceOf("alertmanager"))).toBe("alerts.0.startsAt");
    expect(JSON.stringify(readAlerts(broken, sourceOf("alertmanager")))).not.toContain(
      "secret-time",
    );
    for (const startsAt of [
      "1795577400000",
      "Wed, 25 Nov 2026 03:00:00 GMT",
      "2026-02-30T00:00:00Z",
    ])
      expect(problem(alertmanagerBody([{ startsAt }]), sourceOf("alertmanager")), startsAt).toBe(
        "alerts.0.startsAt",
      );
    expect(problem(grafanaBody, sourceOf("alertmanager"))).toBe("version");
    expect(problem(alertmanagerBody([{}]), sourceOf("grafana"))).toBe("version");
    expect(problem({ text: "a custom payload" }, sourceOf("grafana"))).toBe("groupKey");
    expect(problem({ alerts: [{ name: "DiskFull" }] }, sourceOf("plain"))).toBe(
      "alerts.0.startsAt",
    );
    for (const format of ["alertmanager", "grafana", "pagerduty", "plain"] as const)
      for (const body of [null, [], 7, "text", { alerts: null }])
        expect(problem(body, sourceOf(format))).not.toBe("none");
  });

  it("is shortened, without invisible characters", () => {
    const evil = alertmanagerBody([
      { vm: `web\u202e-2${"x".repeat(100_000)}`, summary: `a\u0000b\n${"y".repeat(100_000)}` },
    ]);
    const { vm, summary } = readOne(evil, sourceOf("alertmanager"));
    expect(vm).toHaveLength(200);
    expect(vm).toMatch(/^web-2x+…$/);
    expect(summary).toHaveLength(300);
    expect(summary).toMatch(/^ab y+…$/);
  });
});

const source = sourceOf("alertmanager");
type Told = Parameters<typeof alertmanagerBody>[0];
/** A post of one peer of Alertmanager; `after` is in minutes. */
interface Post {
  tells: Told;
  after?: number;
  sender?: string;
  truncated?: number;
}

function groupAfter(posts: readonly Post[]): AlertGroup {
  return posts.reduce((group, { tells, after = 0, sender = "a", truncated = 0 }) => {
    const body = { ...alertmanagerBody(tells), truncatedAlerts: truncated };
    const delivery = readAlerts(body, source);
    if ("field" in delivery) throw new Error(`${delivery.field}: ${delivery.text}`);
    return merge(group, { ...delivery, sender }, Date.parse(minute(0)) + after * 60_000);
  }, none);
}

const firingVms = (group: AlertGroup) =>
  detailsOf(group)
    .filter(isFiring)
    .map(({ vm }) => vm)
    .toSorted();

const [web, db, gpu] = [{}, { vm: "db-1" }, { vm: "gpu-1" }];
const over = { status: "resolved" } as const;

/**
 * The life of a group with two peers of Alertmanager: what fires there, and what the peers post in
 * turn.
 */
const life = fc.array(
  fc.record({
    /** Which of three alerts fire from now on. */
    fire: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
    /** Silenced alerts fire in Alertmanager but are in no list. */
    isSilenced: fc.boolean(),
    /** How late the other peer's copy arrives (s); undefined for never. */
    copyAfterS: fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined }),
    pauseS: fc.integer({ min: 60, max: 900 }),
    sender: fc.constantFrom("a", "b"),
  }),
  { minLength: 1, maxLength: 14 },
);

describe("a group of alerts", () => {
  it("fires when Alertmanager's does, through fires, ends, refires, silences, and late copies of its peers", () => {
    const vms = ["web-2", "db-1", "gpu-1"];
    fc.assert(
      fc.property(life, (steps) => {
        const sent: { at: number; sender: string; tells: Told }[] = [];
        let [at, before] = [0, new Set<string>()];
        for (const { fire, isSilenced, copyAfterS, pauseS, sender } of steps) {
          at += pauseS;
          const firing = new Set(vms.filter((_vm, n) => fire[n] && !(isSilenced && n === 2)));
          const ended = [...before].filter(
            (vm) => !firing.has(vm) && !(isSilenced && vm === "gpu-1"),
          );
          const tells = [
            ...[...firing].map((vm) => ({ vm })),
            ...ended.map((vm) => ({
              vm,
              ...over,
              endsAt: minute(0).replace("03:00:00", clock(at)),
            })),
          ];
          before = firing;
          // Alertmanager sends nothing more about a group that has ended.
          if (tells.length === 0) continue;
          sent.push({ at, sender, tells });
          const other = sender === "a" ? "b" : "a";
          if (copyAfterS !== undefined) sent.push({ at: at + copyAfterS, sender: other, tells });
        }
        const last = sent.at(-1);
        if (!last) return;
        const group = groupAfter(
          sent
            .toSorted((one, other) => one.at - other.at)
            .map(({ at: s, sender, tells }) => ({ tells, sender, after: s / 60 })),
        );
        const firing = last.tells.filter((one) => one.status === undefined).map(({ vm }) => vm);
        expect(firingVms(group)).toEqual(firing.map(String).toSorted((a, b) => (a < b ? -1 : 1)));
      }),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 500) },
    );
  });

  it("fires a minute later when Alertmanager's does, however fast it changes and whichever peer tells it", () => {
    const step = fc.record({
      fire: fc.tuple(fc.boolean(), fc.boolean()),
      pauseS: fc.integer({ min: 1, max: 50 }),
      sender: fc.constantFrom("a", "b"),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
        const vms = ["web-2", "db-1"];
        const posts: Post[] = [];
        let [at, before] = [0, new Set<string>()];
        for (const { fire, pauseS, sender } of steps) {
          at += pauseS;
          const firing = new Set(vms.filter((_vm, n) => fire[n]));
          const ended = [...before].filter((vm) => !firing.has(vm));
          const end = { ...over, endsAt: minute(0).replace("03:00:00", clock(at)) };
          const tells = [
            ...[...firing].map((vm) => ({ vm })),
            ...ended.map((vm) => ({ vm, ...end })),
          ];
          before = firing;
          if (tells.length > 0) posts.push({ tells, sender, after: at / 60 });
        }
        const group = settle(groupAfter(posts), Date.parse(minute(0)) + (at + 61) * 1_000);
        expect(firingVms(group)).toEqual([...before].toSorted((a, b) => (a < b ? -1 : 1)));
      }),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 500) },
    );
  });

  it("holds a delivery that may be a peer's late copy, which counts a minute later unless that peer takes it back or news comes", () => {
    const at = (group: AlertGroup, after: number) =>
      firingVms(settle(group, Date.parse(minute(0)) + after * 60_000));
    const quick = [{ tells: [web] }, { tells: [over], after: 0.2 }];
    const copied = [...quick, { tells: [web], after: 0.4, sender: "b" }];
    expect([at(groupAfter(copied), 0.9), at(groupAfter(copied), 1.1)]).toEqual([[], ["web-2"]]);
    const takenBack = { tells: [over], after: 0.6, sender: "b" };
    expect(at(groupAfter([...copied, takenBack]), 1.1)).toEqual([]);
    const retried = { tells: [over], after: 0.6 };
    expect(at(groupAfter([...copied, retried]), 1.1)).toEqual(["web-2"]);
    const news = { tells: [over, db], after: 0.6 };
    expect(at(groupAfter([...copied, news]), 1.1)).toEqual(["db-1"]);
    // This may be the sender's own retry, or a new firing sooner than this sender ever told a state
    // before.
    const own = [{ tells: [web] }, { tells: [over], after: 10 }, { tells: [web], after: 10.2 }];
    expect([at(groupAfter(own), 10.4), at(groupAfter(own), 10.6)]).toEqual([[], ["web-2"]]);
  });

  it("follows the last of two states that a peer tells at once after it was away", () => {
    const posts = [
      { tells: [gpu] },
      { tells: [gpu], after: 0.1, sender: "b" },
      { tells: [gpu, web], after: 9.9, sender: "b" },
      { tells: [db, gpu], after: 10 },
      { tells: [gpu, web], after: 10.0001 },
    ];
    const later = settle(groupAfter(posts), Date.parse(minute(12)));
    expect(firingVms(later)).toEqual(["gpu-1", "web-2"]);
  });

  it("holds a delivery of each of two peers, and follows the last one", () => {
    const at = (seconds: number) =>
      firingVms(settle(group, Date.parse(minute(0)) + seconds * 1_000));
    const group = groupAfter(
      [
        { tells: [web, db], after: 1 },
        {
          tells: [
            { ...web, ...over },
            { ...db, ...over },
          ],
          after: 2,
          sender: "b",
        },
        { tells: [web], after: 6 },
        { tells: [{ ...web, ...over }], after: 11 },
        { tells: [web], after: 12, sender: "b" },
        { tells: [web, db], after: 13 },
      ].map((post) => ({ ...post, after: post.after / 60 })),
    );
    expect([at(40), at(42), at(70)]).toEqual([[], ["db-1", "web-2"], ["db-1", "web-2"]]);
  });

  it("holds a list in which another peer leaves alerts out, and a beginning that its end overtook", () => {
    const at = (group: AlertGroup, after: number) =>
      firingVms(settle(group, Date.parse(minute(0)) + after * 60_000));
    const left = [
      { tells: [web, db] },
      { tells: [web, { vm: "gpu-1", ...over }], after: 0.2, sender: "b" },
    ];
    expect(at(groupAfter(left), 0.9)).toEqual(["db-1", "web-2"]);
    expect(at(groupAfter(left), 1.1)).toEqual(["web-2"]);
    const overtaken = [{ tells: [over] }, { tells: [web], after: 0.2 }];
    expect([at(groupAfter(overtaken), 0.9), at(groupAfter(overtaken), 1.1)]).toEqual([
      [],
      ["web-2"],
    ]);
    // The alert was among those that a shorter list left out, so its beginning isn't under way.
    const limited = [
      { tells: [web, db], truncated: 1 },
      { tells: [web, { vm: "gpu-1", ...over }], truncated: 1, after: 0.2 },
      { tells: [web, gpu], truncated: 1, after: 0.4 },
    ];
    expect(at(groupAfter(limited), 0.5)).toContain("gpu-1");
  });

  it("holds nothing until a time from before Redis's clock was set back", () => {
    const at = (group: AlertGroup, after: number) =>
      firingVms(settle(group, Date.parse(minute(0)) + after * 60_000));
    const quick = [{ tells: [web] }, { tells: [over], after: 0.2 }];
    const held = groupAfter([...quick, { tells: [web], after: 0.4, sender: "b" }]);
    expect([at(held, 0.3), at(held, -60)]).toEqual([[], ["web-2"]]);
    const since = groupAfter([...quick, { tells: [web], after: -60, sender: "b" }]);
    expect([at(since, -59.1), at(since, -58.9)]).toEqual([[], ["web-2"]]);
  });

  it("isn't changed by a delivery that a process held back until a newer one was stored", () => {
    const began = Date.parse(minute(0));
    const tell = (group: AlertGroup, tells: Told, afterMs: number, arrivedAt: number) => {
      const delivery = readAlerts(alertmanagerBody(tells), source);
      if ("field" in delivery) throw new Error(delivery.text);
      return merge(group, { ...delivery, arrivedAt, sender: "a" }, began + afterMs);
    };
    const ended = tell(tell(none, [web], 0, began), [over], 600_000, began + 600_000);
    expect(firingVms(tell(ended, [web], 900_000, began + 1_000))).toEqual([]);
    expect(firingVms(tell(ended, [web], 900_000, began + 900_000))).toEqual(["web-2"]);
  });

  it("fires again with the same beginning, alone and beside an alert that never ended", () => {
    const ended = { ...over, endsAt: minute(9) };
    const alone = [{ tells: [web] }, { tells: [ended], after: 10 }, { tells: [web], after: 20 }];
    expect(firingVms(groupAfter(alone))).toEqual(["web-2"]);
    const beside = alone.map((post) => ({ ...post, tells: [...post.tells, db] }));
    expect(firingVms(groupAfter(beside))).toEqual(["db-1", "web-2"]);
    const again = [...beside, { tells: [{ ...over, endsAt: minute(24) }, db], after: 25 }];
    expect(firingVms(groupAfter(again))).toEqual(["db-1"]);
  });

  it("isn't opened again by a retry, or by the late copy of a peer; nor ended by a late copy of an end", () => {
    const ended = [{ tells: [web] }, { tells: [over], after: 10 }];
    const retry = { tells: [web], after: 10.2 };
    expect(firingVms(groupAfter([...ended, retry]))).toEqual([]);
    const quick = [{ tells: [web] }, { tells: [over], after: 0.2 }];
    expect(firingVms(groupAfter([...quick, { tells: [web], after: 0.5, sender: "b" }]))).toEqual(
      [],
    );
    expect(firingVms(groupAfter([...quick, { tells: [web], after: 3, sender: "b" }]))).toEqual([
      "web-2",
    ]);
    const again = [...ended, { tells: [web], after: 10.6 }];
    expect(firingVms(groupAfter([...again, { tells: [over], after: 10.8, sender: "b" }]))).toEqual([
      "web-2",
    ]);
    expect(groupAfter([...again, { tells: [web], after: 11 }])).toEqual(groupAfter(again));
  });

  it("ends when the beginning has moved back since it fired", () => {
    const posts = [
      { tells: [{ startsAt: minute(5) }], after: 6 },
      { tells: [{ ...over, startsAt: minute(1), endsAt: minute(9) }], after: 10 },
    ];
    expect(firingIn(groupAfter(posts))).toBe(0);
    const moved = [
      { tells: [{ startsAt: minute(5) }] },
      { tells: [{ startsAt: minute(1) }], after: 6 },
    ];
    const stillIts = { tells: [{ ...over, startsAt: minute(1), endsAt: minute(4) }], after: 10 };
    expect(firingIn(groupAfter([...moved, stillIts]))).toBe(0);
  });

  it("fires as long as alerts are left out of its list, and counts none of them twice", () => {
    const five = { tells: [web, db], truncated: 3 };
    expect(firingIn(groupAfter([five]))).toBe(5);
    const twoEnded = { tells: [over, { ...db, ...over }], truncated: 3, after: 10 };
    expect(firingIn(groupAfter([five, twoEnded]))).toBe(3);
    const others = { tells: [gpu, { vm: "edge-1" }], truncated: 1, after: 20 };
    expect(firingIn(groupAfter([five, twoEnded, others]))).toBe(3);
    expect(firingIn(groupAfter([five, { tells: [gpu, { vm: "edge-1" }], truncated: 3 }]))).toBe(5);
    const rest = { tells: [gpu, { vm: "edge-1" }].map((one) => ({ ...one, ...over })), after: 30 };
    expect(firingIn(groupAfter([five, twoEnded, others, rest]))).toBe(0);
  });

  it("takes an alert that a complete list leaves out as no longer reported, until it is listed again", () => {
    const silenced = [{ tells: [web, db] }, { tells: [over], after: 10 }];
    const group = groupAfter(silenced);
    expect(firingIn(group)).toBe(0);
    expect(detailsOf(group).map(({ vm, isMissing }) => [vm, isMissing])).toEqual([
      ["db-1", true],
      ["web-2", false],
    ]);
    expect(firingVms(groupAfter([...silenced, { tells: [db], after: 20 }]))).toEqual(["db-1"]);
    // A list that another peer made may be older than what this one has told
    const older = [{ tells: [web, db] }, { tells: [{ ...web, startsAt: minute(1) }], sender: "b" }];
    expect(firingVms(groupAfter(older))).toEqual(["db-1", "web-2"]);
  });

  it("ends with an end that has no time: it ends when that is told", () => {
    for (const endsAt of ["0001-01-01T00:00:00Z", minute(0)]) {
      const group = groupAfter([{ tells: [web] }, { tells: [{ ...over, endsAt }], after: 7 }]);
      expect(firingIn(group), endsAt).toBe(0);
    }
    const [ended] = detailsOf(
      groupAfter([
        { tells: [web] },
        { tells: [{ ...over, endsAt: "0001-01-01T00:00:00Z" }], after: 7 },
      ]),
    );
    expect(ended?.endedAt).toBe(Date.parse(minute(7)));
  });

  it("follows its sender's times when PagerDuty tells of it or its times are signed; at equal times the end counts", () => {
    const pagerduty = sourceOf("pagerduty");
    const told = (...events: [status: string, at: number][]) =>
      events.reduce((group, [status, at]) => {
        const delivery = readAlerts(pagerdutyBody(status, minute(at)), pagerduty);
        return "field" in delivery ? group : merge(group, delivery, now);
      }, none);
    expect(firingIn(told(["triggered", 0], ["resolved", 5], ["acknowledged", 3]))).toBe(0);
    expect(firingIn(told(["resolved", 5], ["triggered", 5]))).toBe(0);
    expect(firingIn(told(["triggered", 0], ["resolved", 5], ["triggered", 9]))).toBe(1);
  });

  it("has ended when the end came first: the later time counts, and at equal times the end", () => {
    const told = (...fired: Parameters<typeof alertmanagerBody>[0][]) =>
      fired.reduce((group, one) => {
        const delivery = readAlerts(alertmanagerBody(one), source);
        return "field" in delivery ? group : merge(group, delivery, now);
      }, none);
    expect(firingIn(told([{ status: "resolved" }], [{}]))).toBe(0);
    expect(firingIn(told([{}], [{ status: "resolved" }]))).toBe(0);
    expect(firingIn(told([{ status: "resolved" }], [{ startsAt: minute(20) }]))).toBe(1);
  });

  it("knows when each was told last: a list that leaves it out says nothing of it", () => {
    const at = (minutes: number) => Date.parse(minute(0)) + minutes * 60_000;
    const heard = (group: AlertGroup) =>
      detailsOf(group).map(({ vm, heardAt }) => [vm, heardAt - at(0)]);
    const first: Post = { tells: [web, db] };
    const cut: Post = { tells: [web], after: 5, truncated: 1 };
    const cutAgain: Post = { tells: [{ ...web, startsAt: minute(1) }], after: 10, truncated: 1 };
    const m = 60_000;
    expect(heard(groupAfter([first]))).toEqual([
      ["db-1", 0],
      ["web-2", 0],
    ]);
    expect(heard(groupAfter([first, cut, cutAgain]))).toEqual([
      ["db-1", 0],
      ["web-2", 10 * m],
    ]);
    expect(heard(groupAfter([first, cut, { ...first, after: 12 }]))).toEqual([
      ["db-1", 12 * m],
      ["web-2", 12 * m],
    ]);
  });

  it("was told of when a delivery arrived, not when one that was held counts", () => {
    const tells = (vms: readonly object[], arrived: number, sender: string) => {
      const read = readAlerts(alertmanagerBody(vms), source);
      if ("field" in read) throw new Error(read.field);
      return { ...read, sender, arrivedAt: Date.parse(minute(0)) + arrived * 1_000 };
    };
    const deliveries = [tells([web], 0, "a"), tells([web, db], 20, "a"), tells([web], 40, "b")];
    const group = deliveries.reduce((all, one) => merge(all, one, one.arrivedAt), none);
    const heard = (all: AlertGroup) => (all.told?.heardAt ?? 0) - Date.parse(minute(0));
    expect(heard(group)).toBe(20_000);
    expect(heard(settle(group, Date.parse(minute(5))))).toBe(40_000);
  });

  it("keeps what a list that isn't whole leaves out, also once that list was held", () => {
    const posts = [
      { tells: [web, db] },
      { tells: [{ ...web, startsAt: minute(1) }], after: 0.1, truncated: 1 },
      { tells: [{ ...web, startsAt: minute(2) }], after: 0.2, truncated: 1 },
      { tells: [{ ...web, startsAt: minute(1) }], after: 0.3, truncated: 1, sender: "b" },
    ];
    const held = groupAfter(posts);
    expect(held.held).toHaveLength(1);
    expect(firingVms(settle(held, Date.parse(minute(5))))).toEqual(["db-1", "web-2"]);
  });

  it("shows firing alerts, however many have ended", () => {
    const ends = Array.from({ length: 300 }, (_, n) => ({ vm: `vm-${n}`, ...over }));
    const group = groupAfter([{ tells: [...ends, web, db] }]);
    expect(firingVms(group)).toEqual(["db-1", "web-2"]);
  });

  it("keeps the texts of a hundred; what each is, and whom it calls, however many fire", () => {
    const alerts = Array.from({ length: 5_000 }, (_, n): Alert => ({
      key: `key-${n}`,
      at: now,
      name: "HighCpu",
      summary: "x".repeat(300),
      severity: n === 999 ? "critical" : "warning",
      vm: `vm-${n}`,
      since: now,
    }));
    const group = merge(none, { groupKey: "g", alerts, omitted: 7 }, now);
    expect(detailsOf(group).filter(({ summary }) => summary !== "")).toHaveLength(100);
    const few = merge(none, { groupKey: "g", alerts: alerts.slice(0, 1_000), omitted: 0 }, now);
    expect(detailsOf(few)).toHaveLength(1_000);
    expect(detailsOf(few).filter(({ severity }) => severity === "critical")).toHaveLength(1);
    expect(firingIn(group)).toBe(5_007);
    expect(JSON.stringify(group).length).toBeLessThan(1_000_000);
  });
});
