// Values of the chart for clusters that differ: what the tests of deploy/ render, and .ci/manifests.
import { readFileSync } from "node:fs";
import type { Values } from "../support/render-chart.ts";

const policy = readFileSync(new URL("../../gatehouse.example.yml", import.meta.url), "utf8");

export const chartValues: Values = {
  image: { repository: "registry.example/gatehouse" },
  policy,
  settings: { COMPUTE_API_URL: "https://compute.example" },
};
export const overHttp = { ...chartValues, http: { enabled: true, host: "gatehouse.example" } };
export const withApi = {
  ...overHttp,
  api: { enabled: true, sources: { PROMETHEUS: "source-prometheus" }, namespaces: ["monitoring"] },
};
export const everything = {
  ...withApi,
  image: { repository: "registry.example/gatehouse", digest: `sha256:${"0".repeat(64)}` },
  data: { storageClass: "fast" },
  nodeSelector: { disk: "local" },
  tolerations: [{ key: "ops", operator: "Exists" }],
  extraEnv: [{ name: "CA_FILE", value: "/certificates/ca.pem" }],
  extraVolumes: [{ name: "certificates", configMap: { name: "company-ca" } }],
  extraVolumeMounts: [{ name: "certificates", mountPath: "/certificates", readOnly: true }],
};
/** What a cluster with an ingress controller, the Prometheus Operator, and rules of its own for pods asks for. */
export const usualCluster = {
  ...everything,
  http: { ...overHttp.http, ingressAnnotations: { "cert-manager.io/cluster-issuer": "company" } },
  api: {
    ...withApi.api,
    host: "gatehouse-api.example",
    ingressAnnotations: { "nginx.ingress.kubernetes.io/proxy-read-timeout": "65" },
  },
  containerSecurityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: "pool", operator: "In", values: ["ops"] }] },
        ],
      },
    },
  },
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: "topology.kubernetes.io/zone",
      whenUnsatisfiable: "DoNotSchedule",
      minDomains: 2,
    },
    {
      maxSkew: 2,
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: { matchLabels: { "app.kubernetes.io/name": "gatehouse" } },
    },
  ],
  priorityClassName: "operations",
  podLabels: { team: "platform" },
  podAnnotations: { "sidecar.istio.io/inject": "false", "checksum/policy": "of somebody else" },
  serviceAccount: {
    annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/gatehouse" },
  },
  probes: { startup: { failureThreshold: 90 }, liveness: { timeoutSeconds: 10 } },
  monitoring: {
    podMonitor: true,
    rules: true,
    labels: { release: "kube-prometheus-stack" },
    interval: "15s",
  },
};
/** OpenShift assigns users and groups (restricted-v2), and has its monitoring and its router in namespaces of its own. */
export const openShift = {
  ...overHttp,
  http: { ...overHttp.http, ingressNamespace: "openshift-ingress" },
  podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null },
  networkPolicy: { monitoringNamespace: "openshift-user-workload-monitoring" },
  monitoring: { podMonitor: true, rules: true },
};
export const valuesOfClusters = {
  plain: chartValues,
  "over HTTP": overHttp,
  "with the API": withApi,
  everything,
  "usual cluster": usualCluster,
  OpenShift: openShift,
  "without policies": {
    ...withApi,
    networkPolicy: { enabled: false },
    containerSecurityContext: null,
  },
} satisfies Record<string, Values>;
