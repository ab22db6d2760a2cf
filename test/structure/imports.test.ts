import { describe, expect, it } from "vitest";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { cycles, orderProblems, topLayers } from "./import-order.ts";
import { importsOf, readSources, root } from "./sources.ts";

const sources = readSources(["src", "sandbox", "demo", "scripts"]);

describe("imports", () => {
  it("only point to lower layers, never into sandbox or demo, and never to a program", () => {
    expect(orderProblems(sources)).toEqual([]);
  });

  it("go by the order that README shows", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const [, shown = ""] = /The order:\n\n((?: {4}.*\n)+)/.exec(readme) ?? [];
    const [inSrc = "", beside = ""] = shown.split("beside it:");
    expect(inSrc.split(/[\s│]+/).filter(Boolean)).toEqual(topLayers());
    expect(beside.trim()).toBe("sandbox demo scripts");
  });

  it("make no circle", () => {
    expect(cycles(sources)).toEqual([]);
  });
});

describe("the rule of imports", () => {
  it("names a planted import of a later layer", () => {
    const planted = new Map([
      [
        "src/core/permit/refusal.ts",
        'import { a } from "./words.ts";\nimport type { B } from "../../commands/vm/show.ts";',
      ],
      ["src/log/log.ts", 'import { c } from "../redis/keys.ts"'],
    ]);
    expect(orderProblems(planted)).toEqual([
      "src/core/permit/refusal.ts imports src/commands/vm/show.ts: commands comes after core/permit",
      "src/log/log.ts imports src/redis/keys.ts: redis comes after log",
    ]);
  });

  it("names a planted import of a feature by what must do without it", () => {
    const planted = new Map([
      ["src/features/alerts/index.ts", 'import { a } from "../digests/index.ts"'],
      ["src/operate/services.ts", 'import { a } from "../features/alerts/alerts.ts"'],
      ["src/operate/start.ts", 'import { features } from "../features/index.ts"'],
      ["src/cli/doctor.ts", 'import type { Feature } from "../features/define-feature.ts"'],
      ["src/talk/run.ts", 'import type { F } from "../features/define-feature.ts"'],
      ["src/features/index.ts", 'import { alerts } from "./alerts/index.ts"'],
      ["src/operate/start-features.ts", 'import type { F } from "../features/define-feature.ts"'],
    ]);
    expect(orderProblems(planted).map((problem) => problem.split(": ")[1])).toEqual([
      "no feature sees another",
      "only the list of features names one",
      "features/index.ts comes after operate",
      "what features say of gatehouse.yml is handed to programs",
      "features/define-feature.ts comes after talk",
    ]);
  });

  it("names a planted import of the sandbox, of a program, from outside and of an unknown folder", () => {
    const planted = new Map([
      ["src/operate/start.ts", 'const world = await import("../../demo/world.ts")'],
      ["src/operate/process.ts", 'import { a } from "../../sandbox/slack/index.ts"'],
      ["src/slack/receive/app.ts", 'export * from "../../main.ts"'],
      ["src/errors.ts", 'import "../test/support/x.ts"'],
      ["src/helpers/a.ts", 'import { b } from "../errors.ts"'],
      ["src/operate/doctor.ts", 'import { c } from "../../scripts/manifest.ts"'],
      ["scripts/manifest.ts", 'import { d } from "./derive.ts"\nimport "../demo/world.ts"'],
    ]);
    expect(orderProblems(planted).map((problem) => problem.split(": ")[1])).toEqual([
      "that is outside src",
      "that is outside src",
      "that is a program, no file imports it",
      "that is outside src",
      "a folder without a place in the import order",
      "that is outside src",
      "that is a program, no file imports it",
      "a script sees only src and scripts",
    ]);
  });

  it("names what the sandbox must not import: nothing of Gatehouse, the browser no server, nobody a program", () => {
    const planted = new Map([
      ["sandbox/page/browser/panes/a.ts", 'import { b } from "../../../slack/state/workspace.ts"'],
      ["sandbox/slack/state/a.ts", 'import type { C } from "../acts/act.ts"'],
      ["sandbox/compute/a.ts", 'import { d } from "../../test/support/x.ts"'],
      ["sandbox/evidence/a.ts", 'import type { E } from "../../src/verifier/roots.ts"'],
      ["sandbox/slack/a.ts", 'import { demoWorld } from "../../demo/demo-world.ts"'],
      ["sandbox/page/a.ts", 'import "../compute/main.ts"'],
      ["sandbox/new/a.ts", 'import { e } from "../random.ts"'],
    ]);
    expect(orderProblems(planted).map((problem) => problem.split(": ")[1])).toEqual([
      "slack/state comes after page/browser/panes",
      "slack/acts comes after slack/state",
      "the sandbox sees only itself",
      "the sandbox sees only itself",
      "the sandbox sees only itself",
      "that is a program, no file imports it",
      "a folder without a place in the import order",
    ]);
  });

  it("names a package that the sandbox would lack where it is installed alone", () => {
    const planted = new Map([
      [
        "sandbox/slack/a.ts",
        'import type { View } from "@slack/types";\nimport * as z from "zod";',
      ],
      [
        "sandbox/compute/a.ts",
        'import { request } from "undici";\nimport { once } from "node:events";',
      ],
      ["src/fleet/compute/a.ts", 'import { request } from "undici"'],
    ]);
    expect(orderProblems(planted)).toEqual([
      "sandbox/slack/a.ts imports @slack/types: sandbox/package.json doesn't name that",
      "sandbox/compute/a.ts imports undici: sandbox/package.json doesn't name that",
    ]);
  });

  it("lets the demo see src and the sandbox's entry points, and no test", () => {
    const planted = new Map([
      ["demo/world.ts", 'import { a } from "../sandbox/slack/state/workspace.ts"'],
      ["demo/agent.ts", 'import { b } from "./demo-world.ts"'],
      ["demo/guide.ts", 'import "../test/support/x.ts"'],
      [
        "demo/weather.ts",
        'import { d } from "../sandbox/slack/index.ts";\nimport "../src/log/log.ts"',
      ],
      ["demo/tour/main.ts", 'import { f } from "../../src/errors.ts";\nimport "../worker.ts"'],
    ]);
    expect(orderProblems(planted).map((problem) => problem.split(": ")[1])).toEqual([
      "the sandbox's package.json doesn't export that",
      "demo-world.ts comes after agent.ts",
      "the demo sees only src, the sandbox, and itself",
      "that is a program, no file imports it",
    ]);
  });

  it("names a planted circle", () => {
    const planted = new Map([
      ["src/a.ts", 'import { b } from "./b.ts"'],
      ["src/b.ts", 'import { c, type D } from "./c.ts"'],
      ["src/c.ts", 'import { a } from "./a.ts"'],
      ["src/d.ts", 'import type {\n  E,\n} from "./e.ts"'],
      ["src/e.ts", 'import { d } from "./d.ts"'],
    ]);
    expect(cycles(planted)).toEqual([
      "src/a.ts → src/b.ts → src/c.ts → src/a.ts",
      "src/d.ts → src/e.ts → src/d.ts",
    ]);
  });

  it("sees imports over several lines, re-exports and dynamic ones, and none in comments", () => {
    const text = [
      "import {\n  a,\n  type B,\n} from './one.ts';",
      'export { c } from "../two.ts";',
      'import "./three.ts";',
      'const four = () => import("./four.ts");',
      '// import { x } from "./five.ts"',
      '/* import { y } from "./six.ts" */',
      'import { z } from "zod";',
      'const text = "from"; const other = "./seven.ts";',
    ].join("\n");
    expect(importsOf("src/jobs/x.ts", text)).toEqual([
      "src/jobs/one.ts",
      "src/two.ts",
      "src/jobs/three.ts",
      "src/jobs/four.ts",
    ]);
  });
});
