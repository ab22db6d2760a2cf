import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { emptyPolicy, parsePolicy } from "../../src/config/policy-file.ts";
import { parseDuration } from "../../src/config/durations.ts";
import { usualPace } from "../../src/config/policy-schema.ts";
import { createTelemetry } from "../../src/log/telemetry.ts";
import { usageOfPrograms } from "../../src/cli/command-line.ts";
import { programsFor } from "../../src/cli/programs.ts";
import { readSources, root } from "./sources.ts";
import { handedToPrograms, policyTerms } from "../../src/features/index.ts";
import { faultyShare } from "../faults/campaign/weather.ts";

const programs = programsFor(async () => handedToPrograms);

const textOf = (name: string) => readFileSync(path.join(root, name), "utf8");
const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(path.join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
const decisions = readdirSync(path.join(root, "docs/decisions")).map(
  (name) => `docs/decisions/${name}`,
);

/** The cells of the first column, without code marks; a cell may name several. */
const firstCells = (text: string) =>
  [...text.matchAll(/^\| (`[^|]*`) *\|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );

/** Between this heading and the next of its kind. */
function sectionOf(text: string, heading: string): string {
  const from = text.indexOf(`\n## ${heading}\n`);
  if (from < 0) throw new Error(`no section ${heading}`);
  const to = text.indexOf("\n## ", from + 1);
  return text.slice(from, to < 0 ? undefined : to);
}

/** Every variable that is looked at when everything is configured, over HTTP or not. */
function variablesRead(): Set<string> {
  const asked = new Set<string>();
  const complete: Record<string, string> = {
    SLACK_BOT_TOKEN: "xoxb-1",
    SLACK_SIGNING_SECRET: "s3cret",
    COMPUTE_API_URL: "https://compute.example",
    COMPUTE_API_KEY: "key",
    REDIS_URL: "redis://localhost",
    HTTPS_PROXY: "http://proxy.example:3128",
    GATEHOUSE_CONFIG: "gatehouse.example.yml",
  };
  const env = new Proxy(complete, {
    get(target, name) {
      asked.add(String(name));
      return target[String(name)];
    },
  });
  loadConfig({ env, role: "all", cwd: root, terms: policyTerms });
  return asked;
}

/** Relative links of a document: where each leads from the repository's root, and its anchor. */
const linksOf = (document: string) =>
  [...textOf(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(
    ([whole, file = "", anchor]) => ({
      whole,
      anchor,
      there: file === "" ? document : path.join(path.dirname(document), file),
    }),
  );

/** Names that a document says stand in a file: `name` in [its path](src/file.ts). */
const namesPlaced = (text: string) =>
  [...text.matchAll(/((?:`\w+`(?:, | and )?)+) in \[[^\]]*\]\((src\/[^)]+\.ts)\)/g)].flatMap(
    ([, names = "", file = ""]) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => ({ name, file })),
  );

it("a name that a document places in a file of src is declared there", () => {
  const placed = documents.flatMap((document) => namesPlaced(textOf(document)));
  expect(placed.length).toBeGreaterThan(10);
  const isDeclared = ({ name, file }: (typeof placed)[number]) =>
    new RegExp(`^(?:export )?(?:async )?(?:class|const|function) ${name}\\b`, "m").test(
      textOf(file),
    );
  expect(placed.filter((place) => !isDeclared(place))).toEqual([]);
});

describe("the documents", () => {
  it("link to files and headings that are there", () => {
    const slug = (heading: string) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replaceAll(/\s/g, "-");
    const headings = (text: string) =>
      [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => slug(heading));
    const all = [
      ...documents,
      ...decisions,
      "CHANGELOG.md",
      "sandbox/README.md",
      "test/faults/README.md",
    ];
    const broken = all.flatMap((document) =>
      linksOf(document).flatMap(({ whole, there, anchor }) => {
        if (!existsSync(path.join(root, there))) return [`${document}: ${whole}`];
        const isBroken = anchor !== undefined && !headings(textOf(there)).includes(anchor);
        return isBroken ? [`${document}: ${whole}`] : [];
      }),
    );
    expect(broken).toEqual([]);
  });

  it("link from a release's tarball to nothing outside of it, and README says what it lacks", () => {
    const { files } = JSON.parse(textOf("package.json")) as { files: string[] };
    // npm packs these three without being told
    const packed = [...files, "package.json", "README.md", "LICENSE"];
    const topOf = (file: string) => file.split("/")[0] ?? "";
    const isPacked = (file: string) => packed.includes(topOf(file)) || packed.includes(file);
    const left = [...documents, ...decisions, "CHANGELOG.md"]
      .filter(isPacked)
      .flatMap((document) => linksOf(document).map(({ there }) => ({ document, there })))
      .filter(({ there }) => !isPacked(there));
    expect(left).toEqual([]);
    const [, named = ""] =
      /a release's tarball has no ([^:.]*(?:\.md)?`)\./.exec(textOf("README.md")) ?? [];
    const told = [...named.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    expect(told.length).toBeGreaterThan(2);
    expect(told.filter(isPacked)).toEqual([]);
  });

  it("have each decision that code, tests, and they themselves cite by its number, once", () => {
    const numbers = decisions.flatMap((page) =>
      [...textOf(page).matchAll(/^### (\d{3}) /gm)].map(([, number = ""]) => number),
    );
    expect(numbers.length).toBeGreaterThan(40);
    expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([]);
    const texts = [
      ...readSources(["src", "sandbox", "demo", "scripts", "test"]).values(),
      ...[...documents, ...decisions, "CHANGELOG.md"].map(textOf),
    ];
    const cited = texts
      .flatMap((text) => [...text.matchAll(/\bdecisions? (\d{3}(?:, \d{3})*)/gi)])
      .flatMap(([, list = ""]) => list.split(", "));
    expect(cited.length).toBeGreaterThan(20);
    expect(cited.filter((number) => !numbers.includes(number))).toEqual([]);
  });

  it("name every variable in install.md, and no other anywhere", () => {
    const read = variablesRead();
    const files = [...read].filter((name) => name.endsWith("_FILE") && read.has(name.slice(0, -5)));
    const ours = [...read].filter((name) => /^[A-Z]/.test(name) && !files.includes(name));
    const table = firstCells(sectionOf(textOf("docs/install.md"), "Variables"));
    // It is named beside HTTPS_PROXY, which it stands in for
    const ofSources = "SOURCE_SECRET_<NAME>";
    expect([...table, "HTTP_PROXY"].toSorted()).toEqual([...ours, ofSources].toSorted());
    // Read by `propose` in a pipeline, not by Gatehouse
    const callers = ["GATEHOUSE_URL", "GATEHOUSE_TOKEN", "GATEHOUSE_TOKEN_FILE"];
    // HOST_DATA is a field of evidence
    const foreign = ["HOST_DATA", "NODE_EXTRA_CA_CERTS", "REDIS_PASSWORD", ...callers];
    const known = new Set([...ours, ...files, ...foreign]);
    const families = new Set(ours.map((name) => name.split("_")[0] ?? ""));
    const others = [...documents, ".env.example", "compose.yaml"].flatMap((document) =>
      [...textOf(document).matchAll(/\b([A-Z]{2,})_[A-Z0-9_]+\b/g)]
        .filter(
          ([name, family = ""]) =>
            families.has(family) && !known.has(name) && !name.startsWith("SOURCE_SECRET_"),
        )
        .map(([name]) => `${document}: ${name}`),
    );
    expect([...new Set(others)]).toEqual([]);
  });

  it("name every exit code", () => {
    const codes = [...usageOfPrograms(programs).matchAll(/^ {2}(\d+) {2}/gm)].map(
      ([, code]) => code,
    );
    expect(codes).toEqual(["0", "1", "2", "3", "64", "78"]);
    const table = [...textOf("docs/operate.md").matchAll(/^\| (\d+) +\|/gm)].map(([, one]) => one);
    expect(table).toEqual(codes);
  });

  it("name no metric that isn't there, and no event of the log", () => {
    const names = new Set(createTelemetry().catalog.map(({ name }) => name));
    const used = documents
      .filter((document) => document !== "CHANGELOG.md")
      .flatMap((document) => [...textOf(document).matchAll(/\b(gatehouse_[a-z_]+[a-z])\b/g)])
      .map(([name]) => name);
    expect(used.filter((name) => !names.has(name) && !names.has(`${name}_total`))).toEqual([]);
    const sources = [...readSources(["src"]).values()].join("\n");
    const events = firstCells(sectionOf(textOf("docs/operate.md"), "The log"));
    expect(events.length).toBeGreaterThan(10);
    expect(events.filter((event) => !sources.includes(`"${event}"`))).toEqual([]);
  });

  it("name every reason for which a process isn't ready", async () => {
    const telemetry = createTelemetry();
    telemetry.setUnready([]);
    const { text } = await telemetry.render();
    const reasons = [...text.matchAll(/^gatehouse_ready\{.*reason="([^"]+)"/gm)].map(
      ([, reason = ""]) => reason,
    );
    expect(reasons.length).toBeGreaterThan(5);
    const [row = ""] = /^\| `gatehouse_ready` .*$/m.exec(textOf("docs/operate.md")) ?? [];
    expect(reasons.filter((reason) => !row.includes(`\`${reason}\``))).toEqual([]);
  });

  it("say how many calls the campaign makes go wrong", () => {
    const share = Math.round(faultyShare() * 100);
    expect(textOf("docs/promise.md")).toContain(`and ${share}% of the\nchanging calls go wrong`);
  });

  it("quote what Gatehouse really says when something is wrong", () => {
    const plain = (text: string) => text.replaceAll(/[`*\\]/g, "");
    const said = plain(
      [...readSources(["src", "test"])]
        .filter(([name]) => name !== "test/structure/docs.test.ts")
        .map(([, text]) => text)
        .join("\n"),
    );
    const cells = [
      ...sectionOf(textOf("docs/operate.md"), "When something is wrong").matchAll(
        /^\| ((?!what |-)[^|]+) \|/gm,
      ),
    ].map(([, cell = ""]) => cell);
    expect(cells.length).toBeGreaterThan(30);
    const quoted = cells.flatMap((cell) =>
      [...cell.matchAll(/(?<!\w)_([^_]+)_(?!\w)/g)].flatMap(([, quote = ""]) => quote.split("…")),
    );
    const pieces = quoted
      .map((piece) =>
        plain(piece)
          .replace(/^[\s,.)('s]+(?=\s)|[\s,.(]+$/g, "")
          .trim(),
      )
      .filter((piece) => piece.length > 7 && !piece.includes('"'));
    expect(pieces.length).toBeGreaterThan(25);
    expect(pieces.filter((piece) => !said.includes(piece))).toEqual([]);
  });
});

describe("docs/policy.md", () => {
  const text = textOf("docs/policy.md");

  it("has examples that hold", () => {
    const blocks = [...text.matchAll(/```yaml\n([^]*?)```/g)].map(([, block = ""]) => block);
    expect(blocks.length).toBeGreaterThan(6);
    // Rules hold only with people who can approve
    expect(parsePolicy(blocks.join(""), "policy.md", policyTerms)).toHaveProperty("policy");
    const others = documents
      .filter((document) => document !== "docs/policy.md")
      .flatMap((document) =>
        [...textOf(document).matchAll(/```yaml\n([^]*?)```/g)].map(([, block = ""]) =>
          // What each has to measure stands there as <its name>
          parsePolicy(block.replaceAll(/<[^<>]+>/g, "ab".repeat(48)), document, policyTerms),
        ),
      );
    expect(others.length).toBeGreaterThan(0);
    expect(others.filter((read) => "problems" in read)).toEqual([]);
  });

  it("names every key, and no other", () => {
    /** The keys that are known there, as the complaint about an unknown one lists them. */
    const keysIn = (yaml: string): string[] => {
      const read = parsePolicy(yaml.replace("?", "qqqqqqqqqqqqqqqq: 1"), "policy.md", policyTerms);
      const complaints = "problems" in read ? read.problems.join("\n") : "";
      return (/qqqq isn't known; known are (.*)$/m.exec(complaints)?.[1] ?? "").split(", ");
    };
    const at: Record<string, string> = {
      access: "access: { ? }",
      approvals: "approvals: [{ ? }]",
      attestation: "attestation: { ? }",
      teams: "teams: { payments: { ? } }",
      limits: "limits: { ? }",
      timing: "timing: { ? }",
    };
    const top = keysIn("?");
    const headings = [...text.matchAll(/^## (.*)$/gm)].flatMap(([, one = ""]) => one.split(", "));
    expect(headings.filter((one) => one !== "When it changes").toSorted()).toEqual(top.toSorted());
    for (const [name, yaml] of Object.entries(at))
      expect(firstCells(sectionOf(text, name)).toSorted(), name).toEqual(keysIn(yaml).toSorted());
    const inside = {
      "approvals: [{ votes: [{ ? }] }]": text,
      "digests: [{ ? }]": text,
      "sources: { prometheus: { ? } }": text,
      "services: { deploy: { ? } }": text,
      "services: { deploy: { propose: [{ ? }] } }": text,
      "services: { deploy: { limits: { ? } } }": text,
      "attestation: { refresh: { ? } }": text,
    };
    const appraisal = { "attestation: { appraisal: [{ ? }] }": textOf("docs/attestation.md") };
    for (const [yaml, document] of Object.entries({ ...inside, ...appraisal }))
      expect(keysIn(yaml).filter((key) => !new RegExp(`\\b${key}\\b`).test(document))).toEqual([]);
  });

  it("says the defaults that hold", () => {
    const { limits, timing } = emptyPolicy();
    const told = (name: string) =>
      [...sectionOf(text, name).matchAll(/^\| `(\w+)` +\| [^|]+\| ([^|]+?) +\|/gm)].map(
        ([, key = "", usual = ""]) => [key, usual.replaceAll("`", "")] as const,
      );
    expect(Object.fromEntries(told("limits").map(([key, usual]) => [key, Number(usual)]))).toEqual(
      limits,
    );
    const lengths = told("timing").map(([key, usual]) => {
      const all = usual.split(", ").map((one) => parseDuration(one));
      return [`${key}Ms`, all.length > 1 ? all : all[0]];
    });
    expect({ ...usualPace, ...Object.fromEntries(lengths) }).toEqual(timing);
    const service = `services: { deploy: { tokens: ["sha256:${"0".repeat(64)}"] } }`;
    const read = parsePolicy(service, "policy.md", policyTerms);
    const [, expires = ""] = /^\| `expires` .*a proposal.*default `(\w+)`/m.exec(text) ?? [];
    expect("policy" in read && read.policy.services["deploy"]?.expires).toBe(
      parseDuration(expires),
    );
  });
});
