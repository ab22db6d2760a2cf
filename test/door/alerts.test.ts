import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AlertSource } from "../../src/config/policy-file.ts";
import { detailsOf, firingIn, merge, type AlertGroup } from "../../src/door/alerts.ts";
import { type Alert, type Delivery, readAlerts } from "../../src/door/read-alerts.ts";
import { alertmanagerBody, minute, pagerdutyBody } from "./sending.ts";

const none: AlertGroup = { alerts: {}, omitted: 0 };
const now = Date.parse(minute(30));

const sourceOf = (format: AlertSource["format"], more: Partial<AlertSource> = {}): AlertSource => ({
  format,
  vm: ["vm", "instance"],
  offer: [],
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

describe("what sources send", () => {
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

  it("is Grafana's, with what it adds", () => {
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

  it("is our own simple one", () => {
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

  it("is refused with the field that is wrong, and without what stands there", () => {
    const broken = alertmanagerBody([{ startsAt: "secret-time" }]);
    expect(problem(broken, sourceOf("alertmanager"))).toBe("alerts.0.startsAt");
    expect(JSON.stringify(readAlerts(broken, sourceOf("alertmanager")))).not.toContain(
      "secret-time",
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

  it("is shortened, and without what can't be seen", () => {
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

const alert = fc.record({
  key: fc.integer({ min: 0, max: 5 }).map((n) => `key-${n}`),
  at: fc.integer({ min: 0, max: 3 }).map((n) => now - n * 60_000),
  endedAt: fc.option(
    fc.integer({ min: 0, max: 3 }).map((n) => now - n * 60_000),
    { nil: undefined },
  ),
  summary: fc.constantFrom("", "a", "b"),
});
const deliveries = fc.array(
  fc.record({
    omitted: fc.integer({ min: 0, max: 3 }),
    alerts: fc.array(alert, { maxLength: 8 }).map((all) =>
      all.map(({ endedAt, ...one }): Alert => ({
        ...one,
        ...(endedAt === undefined ? {} : { endedAt }),
        name: "HighCpu",
        severity: "",
        vm: one.key,
        since: one.at,
      })),
    ),
  }),
  { minLength: 1, maxLength: 8 },
);

const mergeAll = (all: readonly Omit<Delivery, "groupKey">[]) =>
  all.reduce((group, one) => merge(group, { ...one, groupKey: "g" }, now), none);

describe("a group of alerts", () => {
  it("ends the same in whatever order its deliveries come, and however often", () => {
    fc.assert(
      fc.property(deliveries, fc.infiniteStream(fc.nat()), (all, random) => {
        const shuffled = all
          .concat(all.slice(0, 3))
          .map((one) => [one, random.next().value ?? 0] as const)
          .toSorted(([, a], [, b]) => a - b)
          .map(([one]) => one);
        expect(JSON.stringify(mergeAll(shuffled))).toBe(JSON.stringify(mergeAll(all)));
      }),
    );
  });

  it("has ended when the end came first: the later time counts, and at one time the end", () => {
    const source = sourceOf("alertmanager");
    const told = (...fired: Parameters<typeof alertmanagerBody>[0][]) =>
      fired.reduce((group, one) => {
        const delivery = readAlerts(alertmanagerBody(one), source);
        return "field" in delivery ? group : merge(group, delivery, now);
      }, none);
    expect(firingIn(told([{ status: "resolved" }], [{}]))).toBe(0);
    expect(firingIn(told([{}], [{ status: "resolved" }]))).toBe(0);
    expect(firingIn(told([{ status: "resolved" }], [{ startsAt: minute(20) }]))).toBe(1);
  });

  it("keeps a hundred by detail, and counts the rest", () => {
    const alerts = Array.from({ length: 3_000 }, (_, n): Alert => ({
      key: `key-${n}`,
      at: now,
      name: "HighCpu",
      summary: "x".repeat(300),
      severity: "",
      vm: `vm-${n}`,
      since: now,
    }));
    const group = merge(none, { groupKey: "g", alerts, omitted: 7 }, now);
    expect(detailsOf(group)).toHaveLength(100);
    expect(firingIn(group)).toBe(1_007);
    expect(JSON.stringify(group).length).toBeLessThan(100_000);
  });
});
