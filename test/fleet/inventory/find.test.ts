import { describe, expect, it } from "vitest";
import { contentsOf } from "../../../src/fleet/inventory/contents.ts";
import { KnownFleet } from "../../../src/fleet/inventory/known-fleet.ts";
import { compareNames } from "../../../src/text/compare-names.ts";
import { projectNamed, vmNamed } from "./small-service.ts";

function known(projects: Record<string, readonly string[]>) {
  const all = new KnownFleet();
  for (const [name, vms] of Object.entries(projects)) {
    const project = projectNamed(name);
    const contents = contentsOf(
      project,
      vms.map((vm) => vmNamed(project, vm)),
    );
    all.set({ contents, version: 1 });
  }
  return all;
}

const fleet = known({
  shop: ["web-1", "web-2", "db", "Cache"],
  blog: ["web-1", "db-blog", "a name with spaces", "café"],
  "shop-eu": ["worker"],
});

/** `found v-…`, `ambiguous v-… v-…` or `nothing`. */
function find(words: string, all = fleet): string {
  const answer = all.findVm(words);
  if (!answer) return "nothing";
  if ("record" in answer) return `found ${answer.record.id}`;
  return "ambiguous" in answer ? `ambiguous ${answer.ambiguous.map(({ id }) => id).join(" ")}` : "";
}

describe("finding a VM by its words", () => {
  it.each([
    ["v-shop-db", "found v-shop-db"],
    ["db", "found v-shop-db"],
    ["web-1", "ambiguous v-blog-web-1 v-shop-web-1"],
    ["blog/web-1", "found v-blog-web-1"],
    ["p-blog/web-1", "found v-blog-web-1"],
    ["BLOG/WEB-1", "found v-blog-web-1"],
    ["cache", "found v-shop-Cache"],
    ["a name with spaces", "found v-blog-a name with spaces"],
    ["cafe\u0301", "found v-blog-café"],
    ["web‐2", "found v-shop-web-2"],
    ["ｗｅｂ－2", "found v-shop-web-2"],
    ["v–shop–db", "found v-shop-db"],
    ["blog／web−1", "found v-blog-web-1"],
    ["ｐ‑blog／web－1", "found v-blog-web-1"],
    ["web", "nothing"],
    ["web-*", "nothing"],
    ["shop/worker", "nothing"],
    ["__proto__", "nothing"],
    ["/", "nothing"],
    ["", "nothing"],
  ])("%j: %s", (words, expected) => {
    expect(find(words)).toBe(expected);
  });

  it("prefers the exact signs, and finds a name that has them by a plain hyphen", () => {
    const all = known({ a: ["web-1", "web‑1"], b: ["db‑1"] });
    expect([find("web‑1", all), find("web-1", all)]).toEqual([
      "found v-a-web‑1",
      "found v-a-web-1",
    ]);
    expect(find("db-1", all)).toBe("found v-b-db‑1");
    expect(find("web–1", all)).toBe("ambiguous v-a-web-1 v-a-web‑1");
  });

  it("prefers the exact case, and asks when only the case differs", () => {
    const all = known({ a: ["Web", "web", "DB"], b: ["db"] });
    expect([find("Web", all), find("web", all)]).toEqual(["found v-a-Web", "found v-a-web"]);
    expect([find("WEB", all), find("Db", all)]).toEqual([
      "ambiguous v-a-web v-a-Web",
      "ambiguous v-a-DB v-b-db",
    ]);
  });

  it("lets no name pose as another VM's id or as project/name", () => {
    const all = known({ prod: ["db"], mine: ["v-prod-db", "prod/db"] });
    expect(find("v-prod-db", all)).toBe("found v-prod-db");
    expect(find("prod/db", all)).toBe("ambiguous v-mine-prod/db v-prod-db");
  });

  it("follows renames, moves and removals", () => {
    const all = known({ shop: ["web-1"], blog: ["db"] });
    const [shop, blog] = [projectNamed("shop"), projectNamed("blog", { name: "journal" })];
    const renamed = { ...vmNamed(shop, "web-1"), name: "web-one" };
    all.set({ contents: contentsOf(shop, [renamed]), version: 2 });
    expect([find("web-1", all), find("web-one", all)]).toEqual(["nothing", "found v-shop-web-1"]);
    const moved = { ...renamed, projectId: blog.id };
    all.set({ contents: contentsOf(blog, [moved]), version: 2 });
    all.set({ contents: contentsOf(shop, []), version: 3 });
    expect(find("journal/web-one", all)).toBe("found v-shop-web-1");
    expect([find("db", all), find("blog/web-one", all)]).toEqual(["nothing", "nothing"]);
    all.remove(blog.id);
    expect([find("web-one", all), all.count()]).toEqual(["nothing", { vms: 0, projects: 1 }]);
  });
});

const match = async (glob: string) => (await fleet.matchVms(glob)).map(({ id }) => id);

describe("a glob over VMs", () => {
  it("matches names, or project/name when it holds a slash", async () => {
    expect(await match("web-*")).toEqual(["v-blog-web-1", "v-shop-web-1", "v-shop-web-2"]);
    expect(await match("shop/*")).toEqual([
      "v-shop-Cache",
      "v-shop-db",
      "v-shop-web-1",
      "v-shop-web-2",
    ]);
    expect(await match("shop*/w*")).toEqual(["v-shop-web-1", "v-shop-web-2", "v-shop-eu-worker"]);
    expect(await match("nothing-*")).toEqual([]);
  });

  it("leaves case aside only when nothing matches with it", async () => {
    expect(await match("WEB-?")).toEqual(["v-blog-web-1", "v-shop-web-1", "v-shop-web-2"]);
    expect(await known({ a: ["Web-1", "web-2"] }).matchVms("web-*")).toHaveLength(1);
  });
});

const suggest = (typed: string, most = 10) => fleet.suggestVms(typed, most).map(({ id }) => id);
const suggestProjects = (typed: string) => fleet.suggestProjects(typed, 5).map(({ name }) => name);

describe("suggestions", () => {
  it.each([
    ["we", ["v-shop-web-1", "v-blog-web-1", "v-shop-web-2"]],
    ["WEB-2", ["v-shop-web-2"]],
    ["spaces", ["v-blog-a name with spaces"]],
    ["shop/w", ["v-shop-web-1", "v-shop-web-2", "v-shop-eu-worker"]],
    ["v-shop-db", ["v-shop-db"]],
    ["wbe-2", ["v-shop-web-2"]],
    ["wrker", ["v-shop-eu-worker"]],
    ["wokrre", ["v-shop-eu-worker"]],
    ["cahce", ["v-shop-Cache"]],
    ["zzz", []],
    ["xy", []],
  ])("for %j", (typed, expected) => {
    expect(suggest(typed)).toEqual(expected);
  });

  it("count numbers as numbers, as globs do, so that a rollout goes by them", async () => {
    const names = ["edge-10", "edge-2", "edge-1", "edge-0"];
    const all = known({ "p-10": names, "p-9": ["edge-3"] });
    const inOrder = ["edge-3", "edge-0", "edge-1", "edge-2", "edge-10"];
    expect((await all.matchVms("edge-*")).map(({ name }) => name)).toEqual(inOrder);
    expect(all.vms().map(({ name }) => name)).toEqual(inOrder);
    expect(all.projects().map(({ name }) => name)).toEqual(["p-9", "p-10"]);
    expect(all.suggestVms("edge", 9).map(({ name }) => name)).toEqual(
      inOrder.toSorted(compareNames),
    );
  });

  it("put beginnings of names before beginnings of words before the rest", () => {
    const all = known({ a: ["adb", "my-db", "db-9"] });
    expect(all.suggestVms("db", 10).map(({ name }) => name)).toEqual(["db-9", "my-db", "adb"]);
  });

  it("offer VMs of a project whose name was typed", () => {
    expect(suggest("shop-e")).toEqual(["v-shop-eu-worker"]);
  });

  it("are as many as asked for", () => {
    expect(suggest("e", 2)).toHaveLength(2);
  });

  it("find a new name before and after it is sorted in, and no name that is gone", () => {
    const all = known({ a: Array.from({ length: 500 }, (_, n) => `vm-${n}`) });
    const [a, b] = [projectNamed("a"), projectNamed("b")];
    const late = contentsOf(b, [vmNamed(b, "late-one"), vmNamed(b, "vm-7x")]);
    all.set({ contents: late, version: 1 });
    const names = (typed: string) => all.suggestVms(typed, 5).map(({ name }) => name);
    expect(names("late")).toEqual(["late-one"]);
    expect(names("vm-7")).toEqual(["vm-7", "vm-7x", "vm-70", "vm-71", "vm-72"]);
    all.set({ contents: contentsOf(a, []), version: 2 });
    expect(names("vm-7")).toEqual(["vm-7x"]);
    expect([names("vm-7"), names("late"), names("vm-8")]).toEqual([["vm-7x"], ["late-one"], []]);
  });

  it("work for projects alike", () => {
    expect([suggestProjects("shop"), suggestProjects("blgo")]).toEqual([
      ["shop", "shop-eu"],
      ["blog"],
    ]);
  });
});
