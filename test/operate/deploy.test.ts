import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { parsePolicy } from "../../src/config/policy-file.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { renderChart } from "../support/render-chart.ts";
import { policyTerms } from "../../src/features/index.ts";
import { chartValues, everything, overHttp, withApi } from "./cluster-values.ts";
import {
  type StatefulSet,
  type Volume,
  chart,
  chartFolder,
  dockerfile,
  endorsements,
  fileOf,
  foldersFiles,
  gatewayOnly,
  gid,
  imageStarts,
  isKnown,
  known,
  manifests,
  manifestsIn,
  plainName,
  rendered,
  sets,
  setsIn,
  uid,
} from "./deployed.ts";

const setsWithApi = setsIn(withApi);

describe("deploy/kubernetes", () => {
  it("holds whole manifests, and names each of them where kustomize looks", () => {
    expect(manifests.length).toBeGreaterThan(10);
    for (const folder of ["base", "http", "api"]) {
      const kustomization = parse(fileOf(`deploy/kubernetes/${folder}/kustomization.yaml`)) as {
        resources: string[];
        patches?: { path: string }[];
      };
      const named = [
        ...kustomization.resources,
        ...(kustomization.patches ?? []).map((p) => p.path),
      ];
      const there = foldersFiles(`deploy/kubernetes/${folder}`).map(
        (file) => file.split("/").at(-1) ?? "",
      );
      const others = there.filter((name) => !/^(kustomization.yaml|gatehouse.yml)$/.test(name));
      expect(named.filter((name) => name !== "../base").toSorted()).toEqual(others.toSorted());
    }
    for (const { file, manifest } of manifests)
      if (!file.endsWith("kustomization.yaml")) expect(manifest.metadata?.name, file).toBeTruthy();
  });

  it.each([
    ["gateway", "manifests", sets],
    ["worker", "manifests", sets],
    ["gateway", "chart", setsIn(chartValues)],
    ["worker", "chart", setsIn(chartValues)],
    ["gateway", "chart over HTTP", setsIn(overHttp)],
    ["worker", "chart over HTTP", setsIn(overHttp)],
    ["gateway", "chart with the API", setsWithApi],
    ["worker", "chart with the API", setsWithApi],
  ] as const)(
    "runs a %s as the image does, unprivileged, with a disk of its own (%s)",
    (role, _, from) => {
      const set = from.find(({ metadata }) => metadata.name === `gatehouse-${role}`);
      if (!set) throw new Error(`no ${role}`);
      const pod = set.spec.template.spec;
      const [container] = pod.containers;
      expect(container).not.toHaveProperty("command");
      expect(container.args).toEqual([role]);
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: Number(uid),
        runAsGroup: Number(gid),
        fsGroup: Number(gid),
      });
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(10);
      const variables = new Map(container.env.map(({ name, value = "" }) => [name, value]));
      expect([...variables.keys()].filter((name) => !isKnown(name))).toEqual([]);
      const port = container.ports.find(({ name }) => name === "ops")?.containerPort;
      expect(variables.get("OPS_PORT")).toBe(String(port));
      expect(variables.get("OPS_HOST")).toBe("::");
      // While Slack is away, the API's Service still publishes every gateway
      const ready = role === "gateway" && from === setsWithApi ? "api" : "ops";
      for (const [probe, answers, asked] of [
        ["startupProbe", "/healthz", "ops"],
        ["livenessProbe", "/healthz", "ops"],
        ["readinessProbe", "/readyz", ready],
      ] as const)
        expect(container[probe], probe).toMatchObject({ httpGet: { path: answers, port: asked } });
      const parts = container.volumeMounts.filter(({ subPath }) => subPath !== undefined);
      const mounts = new Map(
        container.volumeMounts
          .filter((mount) => !parts.includes(mount))
          .map(({ name, mountPath }) => [name, mountPath]),
      );
      expect(set.spec.volumeClaimTemplates.map(({ metadata }) => metadata.name)).toEqual(["data"]);
      expect(mounts.get("data")).toBe(variables.get("DATA_DIR"));
      // What is mounted by a subPath isn't replaced when its secret is
      expect(parts).toEqual([{ name: "data", mountPath: endorsements, subPath: "endorsements" }]);
      const secret = pod.volumes.find(({ name }) => name === "secrets")?.secret?.items ?? [];
      const files = [...variables]
        .filter(([name]) => name.endsWith("_FILE"))
        .map(([, file]) => file);
      expect(files.toSorted()).toEqual(
        secret.map((item) => `${mounts.get("secrets")}/${item.path}`).toSorted(),
      );
      const held = gatewayOnly.filter((name) => variables.has(`${name}_FILE`));
      expect(held.length > 0).toBe(role === "gateway");
      if (role === "worker")
        expect(JSON.stringify(set)).not.toMatch(/API_PORT|SOURCE_SECRET|"api"|source-/);
    },
  );

  it("opens the API in an overlay and in the chart alike, to the namespaces that are named", () => {
    const patch = parse(fileOf("deploy/kubernetes/api/gateway-patch.yaml")) as StatefulSet;
    const { containers, volumes } = patch.spec.template.spec;
    const chosen = setsIn({ ...withApi, http: {} })[0]?.spec.template.spec;
    for (const variable of containers[0].env)
      expect(chosen?.containers[0].env).toContainEqual(variable);
    expect(chosen?.containers[0].ports).toContainEqual(containers[0].ports[0]);
    expect(chosen?.containers[0]).toMatchObject({ readinessProbe: containers[0].readinessProbe });
    const keys = (all: readonly Volume[] = []) =>
      all
        .flatMap(({ secret }) => secret?.items ?? [])
        .map(({ key }) => key)
        .toSorted();
    expect(keys(chosen?.volumes)).toEqual(keys(volumes));
    const policyIn = (all: readonly { kind: string; metadata?: { name: string } }[]) =>
      all.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata?.name === "gatehouse-api",
      );
    const from = [
      { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } },
    ];
    const ingress = [{ from, ports: [{ port: "api" }] }];
    for (const all of [manifests.map(({ manifest }) => manifest), rendered(withApi)])
      expect(policyIn(all)).toMatchObject({ spec: { ingress } });
    expect(policyIn(rendered(overHttp))).toBeUndefined();
  });

  it("opens one path of one port to Slack over HTTP, and the operations port to nobody outside", () => {
    const text = fileOf("deploy/kubernetes/http/ingress.yaml");
    expect([...text.matchAll(/ path: (\S+)/g)].map(([, opened]) => opened)).toEqual([
      "/slack/events",
    ]);
    expect(text).toContain("pathType: Exact");
    expect(text).not.toMatch(/3001|ops[ ,}]/);
    const patch = parse(fileOf("deploy/kubernetes/http/gateway-patch.yaml")) as StatefulSet;
    const [{ env }] = patch.spec.template.spec.containers;
    expect(env.filter(({ name }) => !isKnown(name))).toEqual([]);
    expect(env).toContainEqual({ name: "SLACK_APP_TOKEN_FILE", $patch: "delete" });
  });
});

describe("deploy/kubernetes over HTTP and with the API", () => {
  const folder = "deploy/kubernetes/http-and-api";

  it("is both overlays, whose files kustomize doesn't share", () => {
    expect(fileOf(`${folder}/api.yaml`)).toBe(fileOf("deploy/kubernetes/api/api.yaml"));
    const patch = (name: string) => fileOf(`deploy/kubernetes/${name}/gateway-patch.yaml`);
    expect(patch("http-and-api")).toBe(
      patch("api").replaceAll("slack-app-token", "slack-signing-secret"),
    );
  });
});

describe("deploy/helm", () => {
  it("makes what the manifests are, beside names and labels", () => {
    const plain = (set: StatefulSet): unknown => {
      const { spec } = structuredClone(set) as StatefulSet & { spec: Record<string, unknown> };
      const pod = spec.template.spec as StatefulSet["spec"]["template"]["spec"] & {
        serviceAccountName?: string;
      };
      const [container] = pod.containers;
      container.env.sort((a, b) => a.name.localeCompare(b.name));
      pod.volumes[1]?.secret?.items.sort((a, b) => a.key.localeCompare(b.key));
      for (const name of ["image", "imagePullPolicy"]) delete container[name];
      delete pod.serviceAccountName;
      return JSON.parse(
        JSON.stringify(spec, (key, value: unknown) =>
          key === "app.kubernetes.io/instance" || key.startsWith("checksum/") ? undefined : value,
        ),
      );
    };
    expect(setsIn(chartValues).map(plain)).toEqual(sets.map(plain));
    const namesOf = (all: readonly { kind: string; metadata?: { name: string } }[]) =>
      all.map(({ kind, metadata }) => `${kind} ${metadata?.name}`).toSorted();
    const ours = manifests.map(({ manifest }) => manifest);
    const elsewhere = ["Kustomization undefined", "Namespace gatehouse"];
    const theirs = namesOf(ours).filter((name) => !elsewhere.includes(name));
    const more = ["ConfigMap gatehouse-policy", "ConfigMap gatehouse-settings"];
    const account = "ServiceAccount gatehouse";
    expect(namesOf(rendered(withApi))).toEqual(
      [...new Set([...theirs, ...more, account])].toSorted(),
    );
  });

  it("opens /slack/events alone over HTTP, and nothing else than asked for", () => {
    const [slack, ...others] = rendered(overHttp).filter(({ kind }) => kind === "Ingress");
    expect(others).toEqual([]);
    expect(slack?.spec).toMatchObject({
      tls: [{ hosts: ["gatehouse.example"], secretName: "gatehouse-tls" }],
      rules: [
        {
          host: "gatehouse.example",
          http: { paths: [{ path: "/slack/events", pathType: "Exact" }] },
        },
      ],
    });
    const env = setsIn(overHttp)[0]?.spec.template.spec.containers[0].env.map(({ name }) => name);
    expect(env).toContain("SLACK_SIGNING_SECRET_FILE");
    expect(env).not.toContain("SLACK_APP_TOKEN_FILE");
    expect(rendered(chartValues).map(({ kind }) => kind)).not.toContain("Ingress");
  });

  it("runs an image by its digest rather than its tag, where it has one", () => {
    const images = JSON.stringify(rendered(everything)).match(/"image":"[^"]+"/g) ?? [];
    expect(new Set(images)).toEqual(
      new Set([`"image":"registry.example/gatehouse@sha256:${"0".repeat(64)}"`]),
    );
  });

  it("gives every process the variables and volumes that an installation adds", () => {
    const podsOf = (text: string) => text.split(/^---$/m).filter((one) => one.includes("args:"));
    const pods = [...renderChart(chartFolder, { ...chart, values: everything }).values()]
      .flatMap(podsOf)
      .map((text) => parse(text, { merge: true }) as unknown as StatefulSet);
    expect(pods.map(({ kind }) => kind)).toEqual(["StatefulSet", "StatefulSet"]);
    for (const { spec } of pods) {
      const { template } = spec;
      const [container] = template.spec.containers;
      expect(container.env).toContainEqual(everything.extraEnv[0]);
      expect(container.volumeMounts).toContainEqual(everything.extraVolumeMounts[0]);
      expect(template.spec.volumes).toContainEqual(everything.extraVolumes[0]);
      expect(container.envFrom).toEqual([{ configMapRef: { name: "gatehouse-settings" } }]);
    }
  });

  it("gives the policy the revision of the release as its version, unless it has one", () => {
    const policyOf = (policy: string, revision?: number) => {
      const values = { ...chartValues, policy };
      const files = renderChart(chartFolder, {
        ...chart,
        values,
        ...(revision && { revision }),
      });
      const [map] = manifestsIn(files.get("config.yaml") ?? "");
      const { data } = map as unknown as { data: Record<string, string> };
      const text = data["gatehouse.yml"] ?? "";
      const read = parsePolicy(text, "gatehouse.yml", policyTerms);
      if ("problems" in read) throw new Error(read.problems.join());
      return { version: read.policy.version, text };
    };
    const example = fileOf("gatehouse.example.yml");
    expect(policyOf(example, 7).version).toBe(7);
    // A line that is wrong is named as it stands in the file
    expect(policyOf(example, 7).text.startsWith(example)).toBe(true);
    expect(policyOf("access: {}").version).toBe(1);
    expect(policyOf("access: {}\nversion: 40\n", 7).version).toBe(40);
    expect(policyOf("{}", 7).version).toBeUndefined();
  });

  it("tells how to check what was installed", () => {
    const notes =
      renderChart(chartFolder, { ...chart, values: chartValues }).get("NOTES.txt") ?? "";
    for (const words of ["doctor gateway", "doctor worker", "audit verify"])
      expect(notes).toMatch(new RegExp(` exec gatehouse-\\w+-0 -- node gatehouse.mjs ${words}\n`));
  });
});

describe("deploy/systemd", () => {
  it.each(["gateway", "worker"])(
    "runs a %s as the image does, with variables that exist",
    (role) => {
      const unit = fileOf(
        `deploy/systemd/gatehouse-${role}${role === "worker" ? "@" : ""}.service`,
      );
      const [, command = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
      const here = command.replace("/usr/bin/", "").replace("/opt/gatehouse/", "");
      expect(here.split(" ")).toEqual([...imageStarts, role]);
      const variables = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(
        ([, name = "", value = ""]) => [name, value] as const,
      );
      const unknown = variables.filter(
        ([name]) => name !== "NODE_ENV" && !known.has(plainName(name)),
      );
      expect(unknown).toEqual([]);
      // Credentials of systemd's are copied at the start: a secret that is replaced would not be seen
      expect(unit).not.toMatch(/^(Load|Set)Credential/m);
      const files = variables.filter(([name]) => name.endsWith("_FILE"));
      const placed = files.map(([name]) => {
        const folder = gatewayOnly.includes(plainName(name)) ? "secrets/inbound" : "secrets";
        return `/etc/gatehouse/${folder}/${plainName(name).toLowerCase().replaceAll("_", "-")}`;
      });
      expect(files.map(([, file]) => file)).toEqual(placed);
      const [, groups] = /^SupplementaryGroups=(.*)$/m.exec(unit) ?? [];
      expect(groups).toBe(role === "gateway" ? "gatehouse gatehouse-inbound" : "gatehouse");
      for (const setting of ["DynamicUser=yes", "ProtectSystem=strict", "UMask=0077"])
        expect(unit).toContain(`\n${setting}\n`);
      expect(unit).toMatch(/^RestartPreventExitStatus=.*\b78\b/m);
      const isGateway = gatewayOnly.some((name) => unit.includes(name));
      expect(isGateway).toBe(role === "gateway");
      const own = role === "gateway" ? "gatehouse-gateway" : "gatehouse-worker-%i";
      expect(unit).toContain(`\nUser=${own}\n`);
      expect(unit).toContain(`\nStateDirectory=${own} ${own}-endorsements\n`);
      expect(unit).toContain(`\nBindPaths=/var/lib/private/${own}-endorsements:${endorsements}\n`);
    },
  );

  it("receives over HTTP with a file beside the unit, which holds nothing else", () => {
    const lines = fileOf("deploy/systemd/http.conf").split("\n");
    expect(lines.filter((line) => line !== "" && !line.startsWith("#"))).toEqual([
      "[Service]",
      // The proxy is on the same machine
      "Environment=HOST=127.0.0.1",
      "Environment=PORT=3000",
      "Environment=SLACK_SIGNING_SECRET_FILE=/etc/gatehouse/secrets/inbound/slack-signing-secret",
      "UnsetEnvironment=SLACK_APP_TOKEN_FILE",
    ]);
  });

  it("opens the API with a file beside the unit, whose secrets only gateways can read", () => {
    const lines = fileOf("deploy/systemd/api.conf").split("\n");
    expect(lines.filter((line) => line !== "" && !line.startsWith("#"))).toEqual([
      "[Service]",
      "Environment=HOST=127.0.0.1",
      "Environment=API_PORT=3002",
      "Environment=SOURCE_SECRET_PROMETHEUS_FILE=/etc/gatehouse/secrets/inbound/source-prometheus",
    ]);
  });
});

describe("memory", () => {
  const share = imageStarts.find((word) => word.startsWith("--max-old-space-size-percentage"));

  it("has one limit for every process, of which the heap leaves enough for the rest of a process under load", () => {
    const units = ["gateway", "worker@"].map((name) =>
      fileOf(`deploy/systemd/gatehouse-${name}.service`),
    );
    const found = [
      ...units.map((unit) => /^MemoryMax=(\d+)M$/m.exec(unit)?.[1]),
      ...[sets, setsIn(chartValues)].flat().map(({ spec }) => {
        const [{ resources }] = spec.template.spec.containers;
        const { requests, limits } = resources as Record<string, { memory: string }>;
        // What a process takes under load is asked for
        expect(parseInt(requests?.["memory"] ?? "", 10)).toBeGreaterThanOrEqual(350);
        return /^(\d+)Mi$/.exec(limits?.["memory"] ?? "")?.[1];
      }),
      ...(/^  mem_limit: (\d+)m$/m.exec(fileOf("compose.yaml"))?.slice(1) ?? []),
    ].map(Number);
    expect(found).toEqual(Array.from(found, () => 512));
    expect(found).toHaveLength(7);
    const percent = Number(share?.split("=")[1]);
    // Code, buffers, and the young generation: a process at rest has 125 MB, of which its heap is the smaller part
    expect(512 * (1 - percent / 100)).toBeGreaterThan(150);
    expect((512 * percent) / 100).toBeGreaterThan(250);
  });
});

describe("compose.yaml", () => {
  const compose = parse(fileOf("compose.yaml"), { merge: true }) as {
    services: Record<
      string,
      {
        build?: string;
        image: string;
        command: string[];
        entrypoint?: string[];
        environment?: Record<string, string>;
        logging?: { options?: object };
        mem_limit?: string;
        volumes: (string | { source: string; bind?: object })[];
      }
    >;
  };
  const { redis, ...ours } = compose.services;

  it("builds the image once, bounds memory and logs, and takes no floating version of others", () => {
    expect(Object.values(ours).filter(({ build }) => build !== undefined)).toHaveLength(1);
    expect(new Set(Object.values(ours).map(({ image }) => image)).size).toBe(1);
    expect(redis?.image).toMatch(/^redis:\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?$/);
    expect(dockerfile).toMatch(/^FROM node:\d+\.\d+\.\d+-slim(@sha256:[0-9a-f]{64})?$/m);
    for (const [name, service] of Object.entries(compose.services)) {
      expect(service.mem_limit, name).toMatch(/^\d+m$/);
      expect(service.logging?.options, name).toMatchObject({ "max-size": "10m" });
    }
  });

  it("gives each process what it may know: workers have nothing that lets deliveries in", () => {
    const documented = [...fileOf(".env.example").matchAll(/^#? ?([A-Z][A-Z0-9_]+)=/gm)].map(
      ([, name = ""]) => name,
    );
    // Its Redis is its own and asks for no certificate, and a container's ports are open where Docker publishes them
    const ofOthers = ["REDIS_CERT_FILE", "REDIS_KEY_FILE", "REDIS_NAMESPACE", "HOST"];
    const elsewhere = ["REDIS_PASSWORD", "GATEHOUSE_ALLOW_VOLATILE_REDIS", ...ofOthers];
    const given = documented.filter((name) => known.has(name) && !elsewhere.includes(name));
    for (const [name, { command, entrypoint, environment = {} }] of Object.entries(ours)) {
      const role = name.replace(/-\d$/, "");
      expect({ entrypoint, command }).toEqual({ entrypoint: undefined, command: [role] });
      expect(Object.keys(environment).filter((variable) => !isKnown(variable))).toEqual([]);
      const missing = given.filter((variable) => !(variable in environment));
      expect(missing.toSorted(), name).toEqual(
        role === "gateway" ? [] : ["API_PORT", "PORT", ...gatewayOnly],
      );
      expect("SOURCE_SECRET_PROMETHEUS" in environment, name).toBe(role === "gateway");
    }
  });

  it("keeps what is fetched of endorsements where the image lets Gatehouse write", () => {
    for (const { volumes } of Object.values(ours))
      expect(volumes).toContain(`endorsements:${endorsements}`);
    expect(dockerfile).toContain(`RUN install -d -m 700 -o node -g node /data ${endorsements}\n`);
  });

  it("says that gatehouse.yml is missing, and shows Redis' password in no argument", () => {
    for (const { volumes } of Object.values(ours))
      expect(volumes).toContainEqual(
        expect.objectContaining({
          source: "./gatehouse.yml",
          bind: { create_host_path: false },
        }),
      );
    expect(Object.keys(redis?.environment ?? {})).toEqual(["REDIS_PASSWORD"]);
    expect(redis?.command.join(" ")).not.toContain("${");
  });
});

describe("metrics", () => {
  const catalog = createTelemetry().catalog;
  const names = new Set(catalog.map(({ name }) => name));
  const baseOf = (name: string) => name.replace(/_(bucket|sum|count)$/, "");

  it.each([
    "deploy/prometheus/alerts.yml",
    "deploy/prometheus/alerts.test.yml",
    "deploy/grafana/gatehouse.json",
    "README.md",
  ])("are there with those labels where %s names them", (file) => {
    const text = fileOf(file).replaceAll(String.raw`\"`, '"');
    const used = [...text.matchAll(/\b(gatehouse_[a-z_]+)(?:\{([^}]*)\})?/g)];
    expect(used.length).toBeGreaterThan(3);
    const wrong = used.filter(([, name = "", labels = ""]) => {
      const metric = catalog.find((one) => one.name === name || one.name === baseOf(name));
      // What every scrape adds, and Prometheus' own of a histogram
      const more = ["instance", "job", "le"];
      const asked = [...labels.matchAll(/(\w+) ?(?:=~?|!=)/g)].map(([, label = ""]) => label);
      const has: readonly string[] = [...(metric?.labels ?? []), ...more];
      return metric === undefined || asked.some((label) => !has.includes(label));
    });
    expect(wrong.map(([whole]) => whole)).toEqual([]);
  });

  it("are all in docs/operate.md, with their labels, and no other is", () => {
    const rows = [...fileOf("docs/operate.md").matchAll(/^\| `(gatehouse_\w+)` +\| (.*?) *\|/gm)];
    const documented = rows.map(([, name, labels = ""]) => [
      name,
      [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).toSorted(),
    ]);
    const ours = catalog.map(({ name, labels }) => [name, [...labels].toSorted()]);
    const byName = (a: unknown[], b: unknown[]) => String(a[0]).localeCompare(String(b[0]));
    expect(documented.toSorted(byName)).toEqual(ours.toSorted(byName));
    expect(names.size).toBe(catalog.length);
  });

  const rules = parse(fileOf("deploy/prometheus/alerts.yml")) as {
    groups: {
      rules: {
        alert: string;
        labels: { severity: string };
        annotations: { runbook_url?: string };
      }[];
    }[];
  };

  it("have a row for every alert in docs/operate.md with its severity, which its runbook_url names, and no other has", () => {
    const documented = [
      ...fileOf("docs/operate.md").matchAll(/^\| <a id="(\w+)"><\/a>`(\w+)` *\| (\w+) +\|/gm),
    ].map(([, anchor, alert, severity]) => ({ alert, severity, anchor }));
    const ours = rules.groups
      .flatMap((group) => group.rules)
      .map(({ alert, labels, annotations }) => ({
        alert,
        severity: labels.severity,
        anchor: /^docs\/operate\.md#(\w+)$/.exec(annotations.runbook_url ?? "")?.[1],
      }));
    expect(ours.length).toBeGreaterThan(20);
    expect(documented).toEqual(ours);
  });

  it("have a story for every alert in which it fires", () => {
    const stories = parse(fileOf("deploy/prometheus/alerts.test.yml")) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
    };
    const fired = stories.tests.flatMap(({ alert_rule_test }) =>
      alert_rule_test.filter(({ exp_alerts }) => exp_alerts?.length).map((one) => one.alertname),
    );
    const alerts = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
    expect([...new Set(fired)].toSorted()).toEqual(alerts.toSorted());
  });

  it.each([
    ["deploy/prometheus/alerts.yml", 'job="gatehouse"'],
    ["deploy/grafana/gatehouse.json", String.raw`job=~\"$job\"`],
  ])("are of one installation where %s looks at them", (file, filter) => {
    const text = fileOf(file)
      .split("\n")
      .filter((line) => !/^ *(description|summary|#)|label_values/.test(line.replaceAll('"', "")))
      .join("\n");
    const looks = [...text.matchAll(/\b(?:gatehouse|nodejs)_[a-z_\d]+(\{[^}]*\})?/g)];
    expect(looks.length).toBeGreaterThan(15);
    const open = looks.filter(([, labels = ""]) => !labels.includes(filter));
    expect(open.map(([whole]) => whole)).toEqual([]);
  });
});
