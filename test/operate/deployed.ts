import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { parseAllDocuments } from "yaml";
import { root } from "../structure/sources.ts";
import { renderChart, type Values } from "../support/render-chart.ts";

export const fileOf = (name: string) =>
  readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
export const foldersFiles = (folder: string) =>
  readdirSync(new URL(`../../${folder}`, import.meta.url)).map((name) => `${folder}/${name}`);

/** Every variable that the configuration reads. */
export const known = new Set(
  foldersFiles("src/config").flatMap((file) =>
    [...fileOf(file).matchAll(/^ {2}([A-Z][A-Z0-9_]{3,}):|"([A-Z][A-Z0-9_]{3,})"/gm)].map(
      ([, name, other = ""]) => name ?? other,
    ),
  ),
);
/** What lets deliveries in: a worker must not have it. */
export const gatewayOnly = ["SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"];
export const dockerfile = fileOf("Dockerfile");
/** What the image runs before the words that follow its name. */
export const imageStarts = JSON.parse(
  /^ENTRYPOINT (\[.*\])/m.exec(dockerfile)?.[1] ?? "[]",
) as string[];
export const [, uid, gid] = /^USER (\d+):(\d+)/m.exec(dockerfile) ?? [];

/** Where gatehouse.yml may let endorsements be fetched to: one path, as every process reads the same file. */
export const endorsements = "/var/lib/gatehouse/endorsements";

export const plainName = (name: string) => name.replace(/_FILE$/, "");
/** The secrets of sources are named by gatehouse.yml. */
export const isKnown = (name: string) =>
  known.has(name) || known.has(plainName(name)) || name.startsWith("SOURCE_SECRET_");

export interface Volume {
  name: string;
  secret?: { items: { key: string; path: string }[] };
}
export interface Container {
  args: string[];
  env: { name: string; value?: string; $patch?: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[];
  securityContext: object;
  [probe: string]: unknown;
}
export interface StatefulSet {
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

/** A CronJob has its pod one level deeper. */
const kubernetes = ["base", "http", "api"].flatMap((folder) =>
  foldersFiles(`deploy/kubernetes/${folder}`),
);
export const manifests = kubernetes
  .filter((file) => !file.endsWith("gatehouse.yml"))
  .flatMap((file) =>
    parseAllDocuments(fileOf(file), { merge: true }).map((document) => {
      expect(document.errors, file).toEqual([]);
      return { file, manifest: document.toJS() as { kind: string; metadata?: { name: string } } };
    }),
  );
export const sets = manifests
  .filter(({ file, manifest }) => manifest.kind === "StatefulSet" && file.includes("/base/"))
  .map(({ manifest }) => manifest as StatefulSet);

export const chartFolder = path.join(root, "deploy/helm/gatehouse");
export const chart = { release: "gatehouse", namespace: "gatehouse" };
export const manifestsIn = (text: string) =>
  parseAllDocuments(text, { merge: true })
    .map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as { kind: string; metadata: { name: string }; spec: object } | null;
    })
    .filter((manifest) => manifest !== null);
export const rendered = (values: Values) =>
  [...renderChart(chartFolder, { ...chart, values })]
    .filter(([name]) => name.endsWith(".yaml"))
    .flatMap(([, text]) => manifestsIn(text));
export const setsIn = (values: Values) =>
  rendered(values).filter(({ kind }) => kind === "StatefulSet") as unknown as StatefulSet[];
