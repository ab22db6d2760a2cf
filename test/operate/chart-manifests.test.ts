import { describe, expect, it } from "vitest";
import { valuesOfClusters } from "./cluster-values.ts";
import { rendered, type StatefulSet } from "./deployed.ts";

type Labels = Readonly<Record<string, string>>;
interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: string; values: string[] }[];
}
interface Manifest {
  kind: string;
  metadata: { name: string };
  spec: Record<string, unknown>;
}
type Pod = StatefulSet["spec"]["template"] & { metadata: { labels: Labels } };

function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ""))
  );
}

const repeated = (names: readonly string[]) =>
  names.filter((name, at) => names.indexOf(name) !== at);

describe.each(Object.entries(valuesOfClusters))("the chart's manifests (%s)", (_, values) => {
  const manifests = rendered(values) as unknown as Manifest[];
  const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
  const named = (kind: string) => ofKind(kind).map(({ metadata }) => metadata.name);
  const sets = ofKind("StatefulSet") as unknown as (StatefulSet & {
    spec: { serviceName: string; selector: Selector };
  })[];
  const pods = sets.map(({ spec }) => spec.template as unknown as Pod);
  const selected = (selector: Selector) =>
    pods.filter(({ metadata }) => matches(selector, metadata.labels));
  const portsOf = (pod: Pod) => pod.spec.containers[0].ports.map(({ name }) => name);

  it("have each name once", () => {
    expect(repeated(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`))).toEqual([]);
    const [settings = {}] = ofKind("ConfigMap")
      .filter(({ metadata }) => metadata.name.endsWith("-settings"))
      .map((map) => (map as unknown as { data: object }).data);
    for (const { spec } of pods) {
      const [{ env, ports, volumeMounts }] = spec.containers;
      // What both have would be ignored in the settings
      expect(repeated([...env.map(({ name }) => name), ...Object.keys(settings)])).toEqual([]);
      expect(repeated(ports.map(({ name }) => name))).toEqual([]);
      expect(repeated(ports.map(({ containerPort }) => String(containerPort)))).toEqual([]);
      expect(repeated(volumeMounts.map(({ mountPath }) => mountPath))).toEqual([]);
      expect(repeated(spec.volumes.map(({ name }) => name))).toEqual([]);
    }
  });

  it("ask probes at ports that the container has", () => {
    for (const pod of pods)
      for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
        const { httpGet } = pod.spec.containers[0][probe] as { httpGet: { port: string } };
        expect(portsOf(pod), probe).toContain(httpGet.port);
      }
  });

  it("select the pods that they are about", () => {
    for (const { spec } of sets)
      expect(selected(spec.selector)).toEqual([spec.template as unknown as Pod]);
    for (const { metadata, spec } of ofKind("PodDisruptionBudget"))
      expect(selected(spec["selector"] as Selector), metadata.name).toHaveLength(1);
    for (const pod of pods) {
      const { topologySpreadConstraints } = pod.spec as unknown as {
        topologySpreadConstraints: { labelSelector: Selector }[];
      };
      expect(topologySpreadConstraints.length).toBeGreaterThan(0);
      for (const { labelSelector } of topologySpreadConstraints)
        expect(selected(labelSelector)).toContain(pod);
    }
  });

  it("lead each Service and each Ingress to a port of the pods behind it", () => {
    const services = ofKind("Service") as unknown as {
      metadata: { name: string };
      spec: { selector: Labels; ports: { name: string; targetPort: string }[] };
    }[];
    for (const { metadata, spec } of services) {
      const [pod, ...others] = selected({ matchLabels: spec.selector });
      expect(others, metadata.name).toEqual([]);
      for (const { targetPort } of spec.ports) expect(pod && portsOf(pod)).toContain(targetPort);
    }
    for (const { spec } of sets) expect(named("Service")).toContain(spec.serviceName);
    const backends = JSON.stringify(ofKind("Ingress")).matchAll(/"backend":(\{.*?\}\}\})/g);
    for (const [, backend = ""] of backends) {
      const { service } = JSON.parse(backend) as {
        service: { name: string; port: { name: string } };
      };
      const target = services.find(({ metadata }) => metadata.name === service.name);
      expect(target?.spec.ports.map(({ name }) => name)).toContain(service.port.name);
    }
  });

  it("name ConfigMaps and a ServiceAccount that are among them", () => {
    for (const { spec } of pods) {
      const { serviceAccountName, containers, volumes } = spec as unknown as {
        serviceAccountName: string;
        containers: { envFrom: { configMapRef: { name: string } }[] }[];
        volumes: { name: string; configMap?: { name: string } }[];
      };
      expect(named("ServiceAccount")).toContain(serviceAccountName);
      const maps = [
        ...(containers[0]?.envFrom ?? []).map(({ configMapRef }) => configMapRef.name),
        volumes.find(({ name }) => name === "policy")?.configMap?.name,
      ];
      for (const name of maps) expect(named("ConfigMap")).toContain(name);
    }
  });

  it("let in whoever has something to do with a port, and nobody at a port that isn't there", () => {
    const policies = ofKind("NetworkPolicy") as unknown as {
      spec: {
        podSelector: Selector;
        ingress: { from: { namespaceSelector: Selector }[]; ports: { port: string }[] }[];
      };
    }[];
    const isClosed = JSON.stringify(values).includes('"networkPolicy":{"enabled":false}');
    expect(policies.length > 0).toBe(!isClosed);
    if (isClosed) return;
    const open = (pod: Pod) =>
      policies
        .filter(({ spec }) => matches(spec.podSelector, pod.metadata.labels))
        .flatMap(({ spec }) => spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port)));
    // Each port of a pod is there for somebody: the monitoring, the ingress controller, or callers of the API
    for (const pod of pods)
      expect([...new Set(open(pod))].toSorted()).toEqual(portsOf(pod).toSorted());
    for (const { spec } of policies)
      for (const { from } of spec.ingress) expect(from.length).toBeGreaterThan(0);
    for (const { spec } of ofKind("PodMonitor")) {
      const { selector, podMetricsEndpoints } = spec as {
        selector: Selector;
        podMetricsEndpoints: { port: string }[];
      };
      expect(selected(selector)).toEqual(pods);
      for (const { port } of podMetricsEndpoints)
        for (const pod of pods) expect(open(pod)).toContain(port);
    }
  });
});
