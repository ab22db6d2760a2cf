import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { findProgram } from "../../sandbox/find-program.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";

const fileOf = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
const foldersFiles = (folder: string) =>
  readdirSync(new URL(`../../${folder}`, import.meta.url)).map((name) => `${folder}/${name}`);

/** Every variable that the configuration reads. */
const known = new Set(
  foldersFiles("src/config").flatMap((file) =>
    [...fileOf(file).matchAll(/^ {2}([A-Z][A-Z0-9_]{3,}):|"([A-Z][A-Z0-9_]{3,})"/gm)].map(
      ([, name, other = ""]) => name ?? other,
    ),
  ),
);
/** What lets deliveries in: a worker must not have it. */
const gatewayOnly = ["SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"];
const dockerfile = fileOf("Dockerfile");
const imageStarts = JSON.parse(/^CMD (\[.*\])/m.exec(dockerfile)?.[1] ?? "[]") as string[];
const [, uid, gid] = /^USER (\d+):(\d+)/m.exec(dockerfile) ?? [];

const plainName = (name: string) => name.replace(/_FILE$/, "");

interface Volume {
  name: string;
  secret?: { items: { key: string; path: string }[] };
}
interface Container {
  args: string[];
  env: { name: string; value?: string; $patch?: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string; subPath?: string }[];
  securityContext: object;
  [probe: string]: unknown;
}
interface StatefulSet {
  kind: string;
  metadata: { name: string };
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: object;
        containers: [Container];
        volumes: Volume[];
      };
    };
    volumeClaimTemplates: { metadata: { name: string } }[];
  };
}

const kubernetes = ["base", "http"].flatMap((folder) =>
  foldersFiles(`deploy/kubernetes/${folder}`),
);
const manifests = kubernetes
  .filter((file) => !file.endsWith("gatehouse.yml"))
  .flatMap((file) =>
    parseAllDocuments(fileOf(file), { merge: true }).map((document) => {
      expect(document.errors, file).toEqual([]);
      return { file, manifest: document.toJS() as { kind: string; metadata?: { name: string } } };
    }),
  );
const sets = manifests
  .filter(({ file, manifest }) => manifest.kind === "StatefulSet" && file.includes("/base/"))
  .map(({ manifest }) => manifest as StatefulSet);

describe("deploy/kubernetes", () => {
  it("holds whole manifests, and names each of them where kustomize looks", () => {
    expect(manifests.length).toBeGreaterThan(10);
    for (const folder of ["base", "http"]) {
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

  it.each(["gateway", "worker"])(
    "runs a %s as the image does, unprivileged, with a disk of its own",
    (role) => {
      const set = sets.find(({ metadata }) => metadata.name === `gatehouse-${role}`);
      if (!set) throw new Error(`no ${role}`);
      const pod = set.spec.template.spec;
      const [container] = pod.containers;
      expect(container.args).toEqual([...imageStarts, role]);
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
      expect([...variables.keys()].filter((name) => !known.has(plainName(name)))).toEqual([]);
      const port = container.ports.find(({ name }) => name === "ops")?.containerPort;
      expect(variables.get("OPS_PORT")).toBe(String(port));
      expect(variables.get("OPS_HOST")).toBe("0.0.0.0");
      for (const [probe, path] of [
        ["startupProbe", "/healthz"],
        ["livenessProbe", "/healthz"],
        ["readinessProbe", "/readyz"],
      ] as const)
        expect(container[probe], probe).toMatchObject({ httpGet: { path, port: "ops" } });
      const mounts = new Map(
        container.volumeMounts.map(({ name, mountPath }) => [name, mountPath]),
      );
      expect(set.spec.volumeClaimTemplates.map(({ metadata }) => metadata.name)).toEqual(["data"]);
      expect(mounts.get("data")).toBe(variables.get("DATA_DIR"));
      // What is mounted by a subPath isn't replaced when its secret is
      expect(container.volumeMounts.filter(({ subPath }) => subPath !== undefined)).toEqual([]);
      const secret = pod.volumes.find(({ name }) => name === "secrets")?.secret?.items ?? [];
      const files = [...variables]
        .filter(([name]) => name.endsWith("_FILE"))
        .map(([, file]) => file);
      expect(files.toSorted()).toEqual(
        secret.map(({ path }) => `${mounts.get("secrets")}/${path}`).toSorted(),
      );
      const held = gatewayOnly.filter((name) => variables.has(`${name}_FILE`));
      expect(held.length > 0).toBe(role === "gateway");
    },
  );

  it("opens one path of one port to Slack over HTTP, and the operations port to nobody outside", () => {
    const text = fileOf("deploy/kubernetes/http/ingress.yaml");
    expect([...text.matchAll(/ path: (\S+)/g)].map(([, path]) => path)).toEqual(["/slack/events"]);
    expect(text).toContain("pathType: Exact");
    expect(text).not.toMatch(/3001|ops[ ,}]/);
    const patch = parse(fileOf("deploy/kubernetes/http/gateway-patch.yaml")) as StatefulSet;
    const [{ env }] = patch.spec.template.spec.containers;
    expect(env.filter(({ name }) => !known.has(plainName(name)))).toEqual([]);
    expect(env).toContainEqual({ name: "SLACK_APP_TOKEN_FILE", $patch: "delete" });
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
    },
  );
});

describe("compose.yaml", () => {
  const compose = parse(fileOf("compose.yaml"), { merge: true }) as {
    services: Record<
      string,
      {
        build?: string;
        image: string;
        command: string[];
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
    expect(redis?.image).toMatch(/^redis:\d+\.\d+\.\d+$/);
    expect(dockerfile).toMatch(/^FROM node:\d+\.\d+\.\d+-slim$/m);
    for (const [name, service] of Object.entries(compose.services)) {
      expect(service.mem_limit, name).toMatch(/^\d+m$/);
      expect(service.logging?.options, name).toMatchObject({ "max-size": "10m" });
    }
  });

  it("gives each process what it may know: workers have nothing that lets deliveries in", () => {
    const documented = [...fileOf(".env.example").matchAll(/^#? ?([A-Z][A-Z0-9_]+)=/gm)].map(
      ([, name = ""]) => name,
    );
    const elsewhere = ["REDIS_PASSWORD", "GATEHOUSE_ALLOW_VOLATILE_REDIS"];
    const given = documented.filter((name) => known.has(name) && !elsewhere.includes(name));
    for (const [name, { command, environment = {} }] of Object.entries(ours)) {
      const role = name.replace(/-\d$/, "");
      expect(command).toEqual([...imageStarts, role]);
      expect(Object.keys(environment).filter((variable) => !known.has(variable))).toEqual([]);
      const missing = given.filter((variable) => !(variable in environment));
      expect(missing.toSorted(), name).toEqual(role === "gateway" ? [] : ["PORT", ...gatewayOnly]);
    }
  });

  it("says that gatehouse.yml is missing, and shows Redis' password in no argument", () => {
    for (const { volumes } of Object.values(ours))
      expect(volumes).toContainEqual(
        expect.objectContaining({
          source: "./gatehouse.yml",
          bind: { create_host_path: false },
        }),
      );
    expect(redis?.environment).toBeUndefined();
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
  ])("that %s names are there, with those labels", (file) => {
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

  it("of every alert have a story in which it fires", () => {
    const rules = parse(fileOf("deploy/prometheus/alerts.yml")) as {
      groups: { rules: { alert: string }[] }[];
    };
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
  ])("that %s looks at are of one installation", (file, filter) => {
    const text = fileOf(file)
      .split("\n")
      .filter((line) => !/^ *(description|summary|#)|label_values/.test(line.replaceAll('"', "")))
      .join("\n");
    const looks = [...text.matchAll(/\b(?:gatehouse|nodejs)_[a-z_\d]+(\{[^}]*\})?/g)];
    expect(looks.length).toBeGreaterThan(15);
    const open = looks.filter(([, labels = ""]) => !labels.includes(filter));
    expect(open.map(([whole]) => whole)).toEqual([]);
  });

  it("fire in those stories by Prometheus' own count", ({ skip }) => {
    const promtool = findProgram(["promtool"]);
    if (promtool === undefined) throw skip("there is no promtool here: apt install prometheus");
    const cwd = new URL("../../deploy/prometheus/", import.meta.url);
    for (const words of ["check rules alerts.yml", "test rules alerts.test.yml"]) {
      const { status, stdout, stderr } = spawnSync(promtool, words.split(" "), {
        cwd,
        encoding: "utf8",
      });
      expect({ words, status }, `${stdout}${stderr}`).toEqual({ words, status: 0 });
    }
  });
});
