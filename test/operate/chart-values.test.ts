import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { merged, type Values } from "../support/render-chart.ts";
import {
  chartValues,
  openShift,
  overHttp,
  usualCluster,
  valuesOfClusters,
  withApi,
} from "./cluster-values.ts";
import { type StatefulSet, fileOf, gatewayOnly, rendered, setsIn } from "./deployed.ts";

const schemaFile = JSON.parse(fileOf("deploy/helm/gatehouse/values.schema.json")) as Schema;
const schema = z.fromJSONSchema(schemaFile as Parameters<typeof z.fromJSONSchema>[0]);
const defaults = parse(fileOf("deploy/helm/gatehouse/values.yaml")) as Values;

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema | false>;
  additionalProperties?: unknown;
  items?: Schema;
  definitions?: Record<string, Schema>;
  $ref?: string;
}

const problems = (values: Values) =>
  schema
    .safeParse(merged(defaults, values))
    .error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);

const specOf = (set: StatefulSet | undefined) =>
  set?.spec.template.spec as unknown as Record<string, unknown> & {
    containers: [Record<string, unknown>];
  };
const podsIn = (values: Values) => setsIn(values).map(specOf);
const templatesIn = (values: Values) =>
  setsIn(values).map(
    ({ spec }) => spec.template as unknown as { metadata: Record<string, Record<string, string>> },
  );
const named = (values: Values, kind: string, name: string) =>
  rendered(values).find(
    (manifest) => manifest.kind === kind && manifest.metadata.name === name,
  ) as unknown as
    | { metadata: { labels: object; annotations?: object }; spec: Record<string, unknown> }
    | undefined;

describe("the chart's values", () => {
  it("set what containers may do, beside what pods may", () => {
    for (const { containers } of podsIn(usualCluster))
      expect(containers[0]["securityContext"]).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
    for (const { containers } of podsIn({ ...chartValues, containerSecurityContext: null }))
      expect(containers[0]).not.toHaveProperty("securityContext");
  });

  it("leave users and groups to a cluster that assigns them, where they are null", () => {
    const podSecurityContext = { runAsUser: null, runAsGroup: null, fsGroup: null };
    const values = { ...chartValues, podSecurityContext };
    expect(problems(values)).toBeUndefined();
    for (const set of setsIn(values))
      expect(set.spec.template.spec.securityContext).toEqual({
        runAsNonRoot: true,
        fsGroupChangePolicy: "OnRootMismatch",
        seccompProfile: { type: "RuntimeDefault" },
      });
    const others = { ...chartValues, podSecurityContext: { runAsUser: 1_000_660_000 } };
    expect(setsIn(others)[0]?.spec.template.spec.securityContext).toMatchObject({
      runAsUser: 1_000_660_000,
      fsGroup: 1000,
    });
    const none = { ...chartValues, podSecurityContext: null };
    expect(problems(none)).toBeUndefined();
    expect(setsIn(none)[0]?.spec.template.spec).not.toHaveProperty("securityContext");
  });

  it("leave to OpenShift what its restricted-v2 assigns, and ask for all that it demands", () => {
    for (const { securityContext, containers } of podsIn(openShift)) {
      expect(JSON.stringify(containers) + JSON.stringify(securityContext)).not.toMatch(
        /runAsUser|runAsGroup|fsGroup"/,
      );
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(containers[0]["securityContext"]).toMatchObject({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
    }
  });

  it("annotate the Ingress of each host, and open the API outside of the cluster only where it has one", () => {
    expect(named(usualCluster, "Ingress", "gatehouse-slack")?.metadata.annotations).toEqual(
      usualCluster.http.ingressAnnotations,
    );
    const api = named(usualCluster, "Ingress", "gatehouse-api");
    expect(api?.metadata.annotations).toEqual(usualCluster.api.ingressAnnotations);
    expect(api?.spec).toMatchObject({
      tls: [{ hosts: ["gatehouse-api.example"], secretName: "gatehouse-api-tls" }],
      rules: [
        {
          host: "gatehouse-api.example",
          http: { paths: [{ path: "/", backend: { service: { name: "gatehouse-api" } } }] },
        },
      ],
    });
    const callersOf = (values: Values) =>
      JSON.stringify(named(values, "NetworkPolicy", "gatehouse-api")?.spec["ingress"]);
    expect(callersOf(usualCluster)).toContain("ingress-nginx");
    expect(named(withApi, "Ingress", "gatehouse-api")).toBeUndefined();
    expect(callersOf(withApi)).not.toContain("ingress-nginx");
    expect(named(overHttp, "Ingress", "gatehouse-slack")?.metadata).not.toHaveProperty(
      "annotations",
    );
  });

  it("spread the pods of a role over nodes, or as they say, each beside its own role", () => {
    const constraints = (values: Values) =>
      podsIn(values).map((pod) => pod["topologySpreadConstraints"]);
    const role = (name: string) => ({
      matchLabels: {
        "app.kubernetes.io/name": "gatehouse",
        "app.kubernetes.io/instance": "gatehouse",
        "app.kubernetes.io/component": name,
      },
    });
    expect(constraints(chartValues)).toEqual(
      ["gateway", "worker"].map((name) => [
        {
          maxSkew: 1,
          topologyKey: "kubernetes.io/hostname",
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: role(name),
        },
      ]),
    );
    const [zones, nodes] = usualCluster.topologySpreadConstraints;
    expect(constraints(usualCluster)).toEqual(
      ["gateway", "worker"].map((name) => [{ ...zones, labelSelector: role(name) }, nodes]),
    );
  });

  it("say where pods run and who they are, without touching what selects them", () => {
    for (const pod of podsIn(usualCluster))
      expect(pod).toMatchObject({
        affinity: usualCluster.affinity,
        priorityClassName: "operations",
        serviceAccountName: "gatehouse",
      });
    for (const { metadata } of templatesIn(usualCluster)) {
      expect(metadata["labels"]).toMatchObject({
        team: "platform",
        "app.kubernetes.io/name": "gatehouse",
      });
      expect(metadata["annotations"]).toMatchObject({ "sidecar.istio.io/inject": "false" });
      // A changed policy replaces the processes, whatever else annotates them
      expect(metadata["annotations"]?.["checksum/policy"]).toMatch(/^[0-9a-f]{64}$/);
    }
    expect(named(usualCluster, "ServiceAccount", "gatehouse")?.metadata.annotations).toEqual(
      usualCluster.serviceAccount.annotations,
    );
    for (const pod of podsIn(chartValues))
      for (const name of ["affinity", "priorityClassName"]) expect(pod).not.toHaveProperty(name);
  });

  it("take a ServiceAccount that is there already", () => {
    const values = { ...chartValues, serviceAccount: { name: "operations" } };
    for (const pod of podsIn(values)) expect(pod["serviceAccountName"]).toBe("operations");
    expect(rendered(values).map(({ kind }) => kind)).not.toContain("ServiceAccount");
  });

  it("set how patiently probes ask, not what", () => {
    const [{ containers }] = podsIn(usualCluster) as [ReturnType<typeof specOf>];
    expect(containers[0]).toMatchObject({
      startupProbe: { httpGet: { path: "/healthz" }, periodSeconds: 2, failureThreshold: 90 },
      livenessProbe: { httpGet: { path: "/healthz" }, periodSeconds: 10, timeoutSeconds: 10 },
      readinessProbe: { httpGet: { path: "/readyz" }, failureThreshold: 2 },
    });
  });

  it("listen on both families of addresses, so that pods with IPv6 alone get ready", () => {
    for (const { containers } of podsIn(usualCluster)) {
      const env = new Map(
        (containers[0]["env"] as { name: string; value?: string }[]).map(({ name, value }) => [
          name,
          value,
        ]),
      );
      expect(env.get("OPS_HOST")).toBe("::");
      // PORT and API_PORT are open on all addresses unless HOST says otherwise
      expect(env.has("HOST")).toBe(false);
    }
  });
});

describe("the chart's monitoring", () => {
  it("scrapes every process as the job that the alerts look at", () => {
    const monitor = named(usualCluster, "PodMonitor", "gatehouse");
    expect(monitor?.metadata.labels).toMatchObject({ release: "kube-prometheus-stack" });
    expect(monitor?.spec["podMetricsEndpoints"]).toEqual([
      {
        port: "ops",
        path: "/metrics",
        interval: "15s",
        relabelings: [{ targetLabel: "job", replacement: "gatehouse" }],
      },
    ]);
    // Prometheus would scrape twice
    for (const { metadata } of templatesIn(usualCluster))
      expect(metadata["annotations"]).not.toHaveProperty(["prometheus.io/scrape"]);
    for (const { metadata } of templatesIn(chartValues))
      expect(metadata["annotations"]).toMatchObject({ "prometheus.io/scrape": "true" });
  });

  it("has the alerts of deploy/prometheus, all of them and as they are", () => {
    const rules = named(usualCluster, "PrometheusRule", "gatehouse");
    expect(rules?.metadata.labels).toMatchObject({ release: "kube-prometheus-stack" });
    expect(rules?.spec).toEqual(parse(fileOf("deploy/prometheus/alerts.yml")));
  });

  it("gives a second installation a job, and an operator a page, in every alert", () => {
    const monitoring = {
      ...usualCluster.monitoring,
      job: "gatehouse-staging",
      runbook: "https://wiki.example/gatehouse",
    };
    const values = { ...chartValues, monitoring };
    const text = JSON.stringify(named(values, "PrometheusRule", "gatehouse")?.spec);
    expect(text).not.toMatch(/job=\\"gatehouse\\"|docs\/operate\.md/);
    expect(text).toContain(String.raw`job=\"gatehouse-staging\"`);
    expect(text).toContain('"https://wiki.example/gatehouse#gatehousedown"');
    const monitor = named(values, "PodMonitor", "gatehouse");
    expect(JSON.stringify(monitor?.spec)).toContain('"replacement":"gatehouse-staging"');
  });

  it("is there only where it is asked for, each part alone", () => {
    const kinds = (monitoring: object) =>
      rendered({ ...chartValues, monitoring })
        .map(({ kind }) => kind)
        .filter((kind) => /^P.*(Monitor|Rule)$/.test(kind));
    expect(kinds({})).toEqual([]);
    expect(kinds({ podMonitor: true })).toEqual(["PodMonitor"]);
    expect(kinds({ rules: true })).toEqual(["PrometheusRule"]);
  });
});

describe("the chart's schema", () => {
  it("takes the values of every cluster", () => {
    for (const [name, values] of Object.entries(valuesOfClusters))
      expect(problems(values), name).toBeUndefined();
  });

  it.each([
    ["image.repository", { image: { repository: "" } }],
    ["image.digest", { image: { digest: "sha256:abc" } }],
    ["policy", { policy: "" }],
    ["settings.COMPUTE_API_URL", { settings: { COMPUTE_API_URL: "compute.example" } }],
    ["settings.GATEHOUSE_WATCH", { settings: { GATEHOUSE_WATCH: 1 } }],
    ["worker.replicas", { worker: { replicas: 0 } }],
    ["extraVolumeMounts.0.mountPath", { extraVolumeMounts: [{ name: "certificates" }] }],
    ["monitoring.job", { monitoring: { job: 'a"b' } }],
    ["monitoring.interval", { monitoring: { interval: "30" } }],
    ["probes.liveness.periodSeconds", { probes: { liveness: { periodSeconds: 0 } } }],
  ])("refuses a %s with which nothing would work", (at, values) => {
    const all = problems(merged(chartValues, values));
    expect(all).toHaveLength(1);
    expect(all?.[0]?.startsWith(`${at}: `), all?.[0]).toBe(true);
  });

  it("knows every key of values.yaml, and refuses others wherever Kubernetes' own keys are known", () => {
    const open: string[] = [];
    const unknown: string[] = [];
    const compare = (at: string, part: Schema, value: unknown): void => {
      const known = part.$ref ? schemaFile.definitions?.[part.$ref.split("/").at(-1) ?? ""] : part;
      if (known?.items) compare(`${at}[]`, known.items, (value as unknown[] | undefined)?.[0]);
      if (known?.type !== "object" && !known?.type?.includes("object")) return;
      if (known.additionalProperties !== false) open.push(at);
      const keys = Object.keys((value ?? {}) as object);
      if (known.additionalProperties === false)
        unknown.push(
          ...keys.filter((key) => !known.properties?.[key]).map((key) => `${at}.${key}`),
        );
      for (const [key, inner] of Object.entries(known.properties ?? {}))
        if (inner) compare(`${at}.${key}`, inner, (value as Values | undefined)?.[key]);
    };
    compare("", schemaFile, defaults);
    expect(unknown).toEqual([]);
    // Names that are an operator's to choose, and what only Kubernetes can judge
    expect(open.toSorted()).toEqual(
      [
        ".affinity.nodeAffinity",
        ".affinity.podAffinity",
        ".affinity.podAntiAffinity",
        ".api.ingressAnnotations",
        ".api.sources",
        ".extraEnv[].valueFrom",
        ".extraVolumes[]",
        ".gateway.resources.limits",
        ".gateway.resources.requests",
        ".global",
        ".http.ingressAnnotations",
        ".monitoring.labels",
        ".nodeSelector",
        ".podAnnotations",
        ".podLabels",
        ".serviceAccount.annotations",
        ".settings",
        ".topologySpreadConstraints[].labelSelector",
        ".worker.resources.limits",
        ".worker.resources.requests",
      ].toSorted(),
    );
  });

  it.each([
    ["podSecurityContext", { podSecurityContext: { runAsUsr: 1000 } }, "runAsUsr"],
    ["containerSecurityContext", { containerSecurityContext: { priviliged: true } }, "priviliged"],
    ["http", { http: { ingresAnnotations: {} } }, "ingresAnnotations"],
    ["api", { api: { hosts: ["a"] } }, "hosts"],
    ["monitoring", { monitoring: { serviceMonitor: true } }, "serviceMonitor"],
    ["affinity", { affinity: { nodeAfinity: {} } }, "nodeAfinity"],
    ["topologySpreadConstraints.0", { topologySpreadConstraints: [{ maxSkw: 1 }] }, "maxSkw"],
    ["serviceAccount", { serviceAccount: { annotation: {} } }, "annotation"],
    ["probes.liveness", { probes: { liveness: { timeout: 5 } } }, "timeout"],
    ["gateway", { gateway: { replicas: 2, replica: 3 } }, "replica"],
    ["tolerations.0", { tolerations: [{ efect: "NoSchedule" }] }, "efect"],
    ["", { priorityClass: "operations" }, "priorityClass"],
  ])("names a typo in %s", (at, values, typo) => {
    const all = problems({ ...chartValues, ...values })?.join("\n");
    expect(all).toContain(`${at}: Unrecognized key: "${typo}"`);
  });
});

describe("the chart", () => {
  const settings = { COMPUTE_API_URL: "https://compute.example" };

  it.each([
    [{ http: { enabled: true } }, "http.host is empty: name the host that Slack's request URL has"],
    [{ settings: { ...settings, OPS_PORT: "9" } }, "settings.OPS_PORT is set by the chart itself"],
    [
      { extraEnv: [{ name: "DATA_DIR", value: "/" }] },
      "extraEnv: DATA_DIR is set by the chart itself",
    ],
    [
      { podLabels: { "app.kubernetes.io/component": "x" } },
      "podLabels: app.kubernetes.io/component is set by the chart itself",
    ],
  ])("says in a sentence why it refuses %o", (values, sentence) => {
    expect(() => rendered({ ...chartValues, ...values })).toThrow(sentence);
  });

  it.each([
    "SLACK_BOT_TOKEN",
    ...gatewayOnly,
    "COMPUTE_API_KEY",
    "REDIS_URL",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "SOURCE_SECRET_PROMETHEUS",
  ])("takes no %s, because Helm keeps values", (name) => {
    const values = { ...chartValues, settings: { ...settings, [name]: "a secret" } };
    expect(() => rendered(values)).toThrow(
      `settings.${name} is a secret, and Helm keeps values: put it into the Secret gatehouse`,
    );
  });
});
