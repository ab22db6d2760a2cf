import { describe, expect, it, vi } from "vitest";
import { stretchDeadlines } from "../../../src/deadline.ts";
import { UserError } from "../../../src/errors.ts";
import {
  createInventory,
  type InventoryOptions,
} from "../../../src/fleet/inventory/create-inventory.ts";
import { createLog, silentLog } from "../../../src/log/log.ts";
import { connectRedis } from "../../../src/redis/redis.ts";
import { privateRedis, testRedis } from "../../support/with-redis.ts";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { clientOf } from "../compute/answering.ts";
import {
  failing,
  projectNamed,
  smallService,
  vmNamed,
  type SmallService,
} from "./small-service.ts";
import { garbage } from "../../support/only-whole.ts";
import { until } from "../../support/until.ts";

const shop = projectNamed("shop");

/** Inventories of several processes over one Redis; each closes itself. */
async function processes(service: SmallService, over: Partial<InventoryOptions> = {}) {
  const at = await testRedis();
  const opened: ReturnType<typeof createInventory>[] = [];
  return {
    ...at,
    opens: (more: Partial<InventoryOptions> = {}) => {
      const inventory = createInventory({
        redis: at.redis,
        key: at.key,
        compute: service,
        log: silentLog(),
        refreshMs: 60_000,
        againMs: 1_000,
        ...over,
        ...more,
      });
      opened.push(inventory);
      return inventory;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((inventory) => inventory.close()));
      await at[Symbol.asyncDispose]();
    },
  };
}

const inStatus = async (status: string, inventory: ReturnType<typeof createInventory>) =>
  (await inventory.vms()).filter((vm) => vm.status === status);

const names = async (of: Promise<readonly { name: string }[]>) =>
  (await of).map(({ name }) => name);

/** Asks until it holds: another process looks at Redis at most every half second. */
const soon = <T>(interaction: () => Promise<T>) => until(interaction);

describe("the inventory", () => {
  it("lets Redis forget a project that can't be read, and knows it again after the next refresh", async () => {
    for (const text of garbage.filter((broken) => broken !== "")) {
      const service = smallService({ shop: ["web-1"] });
      await using at = await processes(service);
      const [first, other] = [at.opens(), at.opens()];
      await first.refresh();
      await soon(async () => (await names(other.projects())).includes("shop"));
      await at.redis.hset(at.key("inventory", "projects"), shop.id, text);
      const late = at.opens();
      expect(await names(late.projects()), text).toEqual([]);
      await late.refresh();
      for (const inventory of [late, first, other])
        await soon(async () => (await names(inventory.projects())).join() === "shop");
    }
  });

  it("isn't known where nobody can tell what wasn't read, until the next refresh", async () => {
    for (const text of garbage) {
      await using at = await processes(smallService({ shop: ["web-1"] }));
      await at.opens().refresh();
      await at.redis.hset(at.key("inventory", "head"), "unread", text);
      const late = at.opens();
      expect(await late.state(), text).toMatchObject({ stale: true, refreshedAt: undefined });
      await late.refresh();
      expect(await late.state(), text).toMatchObject({ stale: false });
      expect(await names(late.projects()), text).toEqual(["shop"]);
    }
  });

  it("is read by one process and known to all", async () => {
    const service = smallService({ shop: ["web-1", "db"], blog: ["web-1"], empty: [] });
    service.held.set("p-site", { project: projectNamed("site", { type: "GIT_DEPLOY" }), vms: [] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    one.start();
    other.start();
    await soon(() => other.state()).toMatchObject({ vms: 3, stale: false });
    expect(service.calls.filter((call) => call === "list")).toHaveLength(1);
    expect(service.calls).not.toContain("vms p-site");
    expect(await names(other.projects())).toEqual(["blog", "empty", "shop", "site"]);
    expect(await other.findVm("shop/web-1")).toEqual({
      record: { ...vmNamed(shop, "web-1"), projectName: "shop" },
    });
    expect(await other.findVm("dbb")).toMatchObject({ unknown: [{ name: "db" }] });
    expect(await other.findProject("BLOG")).toMatchObject({ record: { id: "p-blog" } });
    expect(await names(other.matchVms("*b-1"))).toEqual(["web-1", "web-1"]);
    expect(await names(other.vms({ projectId: "p-shop" }))).toEqual(["db", "web-1"]);
    expect(await other.state()).toMatchObject({ vms: 3, projects: 4, stale: false, unread: [] });
  });

  it("writes only what changed, and readers take over only that", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.projects();
    const versions = async () => {
      const [shops, blogs] = await fleet.redis.zmscore(
        fleet.key("inventory", "versions"),
        "p-shop",
        "p-blog",
      );
      return { shops: Number(shops), blogs: Number(blogs) };
    };
    const before = await versions();
    await one.refresh();
    expect(await versions()).toEqual(before);
    const held = service.held.get("p-shop");
    held?.vms.push(vmNamed(shop, "web-2"));
    await one.refresh();
    const after = await versions();
    expect(after.blogs).toBe(before.blogs);
    expect(after.shops).toBeGreaterThan(before.shops);
    await soon(() => names(other.matchVms("web-*"))).toEqual(["web-1", "web-2"]);
  });

  it("follows the service back when it says again what it had said before a change", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service);
    const inventory = fleet.opens();
    const status = async () => (await inventory.vms())[0]?.status;
    for (let times = 0; times < 3; times++) await inventory.refresh();
    await inventory.note({ vm: vmNamed(shop, "web-1", { status: "ERROR" }) });
    expect(await status()).toBe("ERROR");
    await inventory.refresh();
    expect(await status()).toBe("RUNNING");
    for (let times = 0; times < 2; times++) await inventory.refresh();
    expect(await status()).toBe("RUNNING");
  });

  it("gives a project its new name though its VMs are the same", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service);
    const inventory = fleet.opens();
    for (let times = 0; times < 3; times++) await inventory.refresh();
    service.held.set("p-shop", {
      project: { ...shop, name: "store" },
      vms: service.held.get("p-shop")?.vms ?? [],
    });
    await inventory.refresh();
    expect(await inventory.vms()).toMatchObject([{ name: "web-1", projectName: "store" }]);
    expect(await inventory.findVm("store/web-1")).toHaveProperty("record");
  });

  it("keeps the service's load bounded", async () => {
    const service = smallService(
      Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`p${n}`, ["vm"]])),
    );
    service.before = () => new Promise((resolve) => setTimeout(resolve, 2));
    await using fleet = await processes(service, { concurrency: 5 });
    await fleet.opens().refresh();
    expect(service.maxOpen).toBe(5);
  });

  it("is read first by one of all processes, and what one reads later all know", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service, { refreshMs: 150, againMs: 7 });
    const all = [fleet.opens(), fleet.opens(), fleet.opens()];
    for (const inventory of all) inventory.start();
    await soon(async () => service.calls.filter((call) => call === "list").length).toBe(1);
    service.held.get("p-shop")?.vms.push(vmNamed(shop, "new"));
    await all[0]?.refresh();
    for (const inventory of all)
      await soon(() => names(inventory.matchVms("new"))).toEqual(["new"]);
  });
});

describe("an inventory that isn't there yet", () => {
  it("is waited for, for two seconds at most, and then says so", async () => {
    await using fleet = await processes(smallService({ shop: ["web-1"] }));
    const inventory = fleet.opens();
    stretchDeadlines(0.1);
    const failure: unknown = await inventory.findVm("web-1").catch((error: unknown) => error);
    stretchDeadlines(30);
    expect(failure).toBeInstanceOf(UserError);
    expect(String(failure)).toContain("The VMs aren't known yet");
    expect(await inventory.state()).toMatchObject({ refreshedAt: undefined, stale: true, vms: 0 });
  });

  it("was read when Redis says, whatever the clock of the process that read it; each change has a higher version", async () => {
    await using fleet = await processes(smallService({ shop: ["web-1"] }));
    const [wrong, right] = [fleet.opens(), fleet.opens()];
    const before = Date.now();
    const clock = vi.spyOn(Date, "now").mockImplementation(() => before + 3 * 3_600_000);
    await wrong.refresh();
    clock.mockRestore();
    const state = await right.state();
    expect(state.refreshedAt).toBeGreaterThanOrEqual(before - 1);
    expect(state.refreshedAt).toBeLessThan(before + 3_600_000);
    await right.refresh();
    expect((await right.state()).version).toBe(state.version);
    await right.note({ vm: vmNamed(shop, "web-1", { status: "ERROR" }) });
    await right.refresh();
    expect((await right.state()).version).toBeGreaterThan(state.version);
  });

  it("answers as soon as the first refresh has ended", async () => {
    const service = smallService({ shop: ["web-1"] });
    const { promise, resolve } = Promise.withResolvers<void>();
    service.before = (call) => (call === "list" ? promise : undefined);
    await using fleet = await processes(service);
    const inventory = fleet.opens();
    inventory.start();
    const found = inventory.findVm("web-1");
    resolve();
    expect(await found).toMatchObject({ record: { id: "v-shop-web-1" } });
  });
});

describe("a bad day of the service", () => {
  it("empties nothing: a list that fails leaves all as it was, and stale", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    service.before = () => failing("unreachable");
    expect(await one.refresh()).toBe(false);
    expect(await one.findVm("web-1")).toMatchObject({ record: { name: "web-1" } });
    expect(await one.state()).toMatchObject({ stale: true, vms: 1 });
    await soon(() => other.state()).toMatchObject({ stale: true, vms: 1 });
  });

  it("is one line of the log for each reason, and one for its end", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service);
    const lines: string[] = [];
    const log = createLog({ level: "info", write: (line) => void lines.push(line) });
    const inventory = fleet.opens({ log });
    for (const kind of ["unreachable", "unreachable", "refused", "refused", undefined] as const) {
      service.before = () => kind && failing(kind);
      await inventory.refresh();
    }
    const said = lines.map((line) => JSON.parse(line) as { event: string; reason?: string });
    expect(said).toMatchObject([
      { event: "inventory.list-failed", reason: expect.stringContaining("unreachable") },
      { event: "inventory.list-failed", reason: expect.stringContaining("refused") },
      { event: "inventory.list-read-again" },
    ]);
    expect(said).toHaveLength(3);
  });

  it("names projects that can't be read and keeps their VMs", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    service.held.get("p-blog")?.vms.push(vmNamed(projectNamed("blog"), "db-2"));
    service.before = (call) => (call === "vms p-shop" ? failing("refused") : undefined);
    expect(await one.refresh()).toBe(true);
    expect(await one.state()).toMatchObject({ stale: false, unread: ["shop"], vms: 3 });
    expect(await other.state()).toMatchObject({ unread: ["shop"], vms: 3 });
  });

  it("removes nothing when everything is a 404, or a list leaves something out", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const inventory = fleet.opens();
    await inventory.refresh();
    service.hiddenInList.add("p-blog");
    await inventory.refresh();
    expect(await inventory.state()).toMatchObject({ vms: 2, projects: 2 });
    service.before = (call) => (call === "list" ? undefined : failing("not-found"));
    service.hiddenInList.clear();
    service.before = () => failing("not-found");
    expect(await inventory.refresh()).toBe(false);
    expect(await inventory.state()).toMatchObject({ vms: 2, projects: 2 });
  });

  it("keeps a project whose VMs are a 404 while the project itself is not", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const inventory = fleet.opens();
    await inventory.refresh();
    service.before = (call) => (call === "vms p-shop" ? failing("not-found") : undefined);
    await inventory.refresh();
    expect(await inventory.state()).toMatchObject({ vms: 2, unread: ["shop"] });
  });

  it("forgets what is really gone, in all processes", async () => {
    const service = smallService({ shop: ["web-1", "web-2"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    service.held.delete("p-blog");
    service.held.get("p-shop")?.vms.pop();
    await one.refresh();
    expect(await names(one.vms())).toEqual(["web-1"]);
    await soon(() => names(other.vms())).toEqual(["web-1"]);
    await soon(() => names(other.projects())).toEqual(["shop"]);
  });

  it("asks no more when nothing at all can be read", async () => {
    const service = smallService(
      Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`p${n}`, ["vm"]])),
    );
    service.before = (call) => (call === "list" ? undefined : failing("unreachable"));
    await using fleet = await processes(service);
    expect(await fleet.opens().refresh()).toBe(false);
    expect(service.calls.length).toBeLessThan(100);
  });
});

describe("a note of what was just read", () => {
  it("is known at once here, and soon everywhere", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    const { specs: _unsaid, ...stopped } = vmNamed(shop, "web-1", { status: "STOPPED" });
    const noted = one.note({ vm: stopped });
    expect(await one.findVm("web-1")).toMatchObject({
      record: { status: "STOPPED", specs: { cpu: 2 } },
    });
    await noted;
    await one.note({ vm: vmNamed(shop, "web-9") });
    await one.note({ project: projectNamed("fresh", { status: "CREATING" }) });
    await one.note({ goneProjectId: "p-blog" });
    await one.note({ vm: vmNamed(projectNamed("never-heard-of"), "x") });
    for (const inventory of [one, other]) {
      await soon(() => names(inventory.vms())).toEqual(["web-1", "web-9"]);
      await soon(() => names(inventory.projects())).toEqual(["fresh", "shop"]);
      expect(await inStatus("STOPPED", inventory)).toHaveLength(1);
    }
  });

  it("outlives a refresh that read the project before", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    const running = vmNamed(shop, "web-1");
    let reads = 0;
    service.before = async (call) => {
      if (call !== "vms p-shop" || reads++ > 0) return;
      await other.note({ vm: { ...running, name: "renamed" } });
      service.held.set("p-shop", {
        project: shop,
        vms: [{ ...running, name: "renamed", status: "STOPPED" }],
      });
    };
    await one.refresh();
    expect(await one.vms()).toMatchObject([{ name: "renamed", status: "STOPPED" }]);
  });

  it("wins over a refresh whose answer was made before and arrives after", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    const stopped = vmNamed(shop, "web-1", { status: "STOPPED" });
    const made = vmNamed(shop, "web-3");
    const told = new Set<string>();
    service.after = async (call) => {
      if (told.has(call)) return;
      told.add(call);
      if (call === "vms p-shop") {
        service.held.set("p-shop", { project: shop, vms: [stopped, made] });
        await other.note({ vm: stopped });
        await other.note({ vm: made });
      }
      if (call === "vms p-blog") {
        service.held.delete("p-blog");
        await other.note({ goneProjectId: "p-blog" });
      }
    };
    await one.refresh();
    for (const inventory of [one, other]) {
      await soon(() => names(inventory.vms())).toEqual(["web-1", "web-3"]);
      expect(await inStatus("STOPPED", inventory)).toHaveLength(1);
      expect(await names(inventory.projects())).toEqual(["shop"]);
    }
  });

  it("made while a refresh writes what it read is not lost, nor is what was read", async () => {
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    for (let round = 2; round < 6; round++) {
      const status = `STATUS-${round}`;
      service.held.get("p-shop")?.vms.push(vmNamed(shop, `web-${round}`));
      const web = service.held.get("p-shop")?.vms[0];
      if (web) web.status = status;
      const refreshed = one.refresh();
      await (round % 2 === 0 ? one : other).note({ vm: vmNamed(shop, "web-1", { status }) });
      await refreshed;
      for (const inventory of [one, other]) {
        await soon(() => inventory.vms()).toHaveLength(round);
        await soon(() => inStatus(status, inventory)).toHaveLength(1);
      }
    }
  });

  it("says for good that a project is gone, though another process has changed it meanwhile", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    await one.note({ vm: vmNamed(shop, "web-1", { status: "STOPPED" }) });
    await other.note({ goneProjectId: "p-shop" });
    for (const inventory of [one, other, fleet.opens()])
      await soon(() => names(inventory.projects())).toEqual(["blog"]);
  });

  it("is never lost among many of one process at once", async () => {
    const vms = Array.from({ length: 30 }, (_, n) => `vm-${n}`);
    await using fleet = await processes(smallService({ shop: vms }));
    const [one, late] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    const stopped = vms.map((vm) => vmNamed(shop, vm, { status: "STOPPED" }));
    await Promise.all(stopped.map((vm) => one.note({ vm })));
    for (const inventory of [one, late])
      expect(await inStatus("STOPPED", inventory)).toHaveLength(30);
  });

  it("is never lost among those of many processes at once", async () => {
    const vms = Array.from({ length: 12 }, (_, n) => `vm-${n}`);
    await using fleet = await processes(smallService({ shop: vms }));
    const all = Array.from({ length: 4 }, () => fleet.opens());
    await all[0]?.refresh();
    await Promise.all(all.map((inventory) => inventory.vms()));
    await Promise.all(
      vms.map(async (vm, n) => all[n % 4]?.note({ vm: vmNamed(shop, vm, { status: "STOPPED" }) })),
    );
    const late = fleet.opens();
    await late.projects();
    expect(await inStatus("STOPPED", late)).toHaveLength(12);
  });
});

describe("two refreshes at a time", () => {
  it("end with the newer answer, though the older one arrives last", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    const [isHeld, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reads = 0;
    service.after = async (call) => {
      if (call !== "vms p-shop" || reads++ > 0) return;
      isHeld.resolve();
      await goOn.promise;
    };
    const slow = one.refresh();
    await isHeld.promise;
    service.held.get("p-shop")?.vms.push(vmNamed(shop, "web-2"));
    service.held.delete("p-blog");
    expect(await other.refresh()).toBe(true);
    goOn.resolve();
    await slow;
    for (const inventory of [one, other, fleet.opens()]) {
      await soon(() => names(inventory.vms())).toEqual(["web-1", "web-2"]);
      await soon(() => names(inventory.projects())).toEqual(["shop"]);
    }
  });
});

describe("a bad day of Redis", () => {
  it("is answered from memory, marked stale, and mended by the next refresh", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    const service = smallService({ shop: ["web-1"] });
    await using fleet = await processes(service, { redis });
    const inventory = fleet.opens();
    await inventory.refresh();
    await server.kill();
    await soon(() => inventory.state()).toMatchObject({ stale: true, vms: 1 });
    expect(await inventory.findVm("web-1")).toMatchObject({ record: { name: "web-1" } });
    await inventory.note({ vm: vmNamed(shop, "web-1", { status: "STOPPED" }) });
    expect(await inventory.findVm("web-1")).toMatchObject({ record: { status: "STOPPED" } });
    await server.start();
    await soon(() => inventory.refresh().catch(() => false)).toBe(true);
    expect(await inventory.state()).toMatchObject({ stale: false, vms: 1 });
    redis.disconnect();
  });

  it("takes nothing from those who know when it was emptied, and all is written again", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    const keys = await fleet.redis.keys(`${fleet.key("inventory")}*`);
    await fleet.redis.del(...keys);
    await one.note({ vm: vmNamed(shop, "web-1", { status: "STOPPED" }) });
    expect(await names(one.vms())).toEqual(["db", "web-1"]);
    await soon(() => inStatus("STOPPED", other)).toHaveLength(1);
    expect(await names(other.vms())).toEqual(["db", "web-1"]);
    service.before = (call) => (call === "vms p-blog" ? failing() : undefined);
    await one.refresh();
    const late = fleet.opens();
    expect(await names(late.vms())).toEqual(["db", "web-1"]);
  });

  it("takes nothing from anybody when it was emptied during a refresh, before or after its end", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"], site: ["www"] });
    await using fleet = await processes(service, { concurrency: 1 });
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    let reads = 0;
    service.after = async (call) => {
      if (!call.startsWith("vms") || reads++ !== 1) return;
      await fleet.redis.del(...(await fleet.redis.keys(`${fleet.key("inventory")}*`)));
      for (const inventory of [one, other]) await inventory.state();
    };
    await one.refresh();
    const all = ["db", "web-1", "www"];
    await one.note({ vm: vmNamed(shop, "web-1", { status: "STOPPED" }) });
    await soon(() => inStatus("STOPPED", other)).toHaveLength(1);
    for (const inventory of [one, other]) expect(await names(inventory.vms())).toEqual(all);
    await other.refresh();
    for (const inventory of [one, other, fleet.opens()])
      await soon(() => names(inventory.vms())).toEqual(all);
  });

  it("takes nothing that was added since when Redis has what it had before", async () => {
    const service = smallService({ shop: ["web-1"], blog: ["db"] });
    await using fleet = await processes(service);
    const [one, other] = [fleet.opens(), fleet.opens()];
    await one.refresh();
    await other.vms();
    const keys = await fleet.redis.keys(`${fleet.key("inventory")}*`);
    const before = await Promise.all(
      keys.map(async (key) => ({ key, dump: await fleet.redis.dumpBuffer(key) })),
    );
    const site = projectNamed("site");
    service.held.set(site.id, { project: site, vms: [vmNamed(site, "www")] });
    await one.refresh();
    const all = ["db", "web-1", "www"];
    await soon(() => names(other.vms())).toEqual(all);
    for (const { key, dump } of before)
      await fleet.redis.restore(key, 0, dump ?? Buffer.of(), "REPLACE");
    await one.note({ vm: vmNamed(shop, "web-1", { status: "STOPPED" }) });
    await soon(() => inStatus("STOPPED", other)).toHaveLength(1);
    for (const inventory of [one, other]) expect(await names(inventory.vms())).toEqual(all);
    service.held.delete("p-blog");
    await one.refresh();
    for (const inventory of [one, other, fleet.opens()])
      await soon(() => names(inventory.vms())).toEqual(["web-1", "www"]);
  });
});

describe("an inventory whose service gives one record in a form that can't be read", () => {
  it("knows all the others from the start on, and says what it lacks", async () => {
    await using sandbox = await startSandboxCompute();
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    const [noStatus, noId] = [{ set: { status: null } }, { without: ["id"] }];
    const spoils = { ml: noStatus, vault: noId, staging: { set: { type: 7 } }, "gpu-1": noId };
    sandbox.weather({ match: "GET /v1/*", spoils });
    await using at = await testRedis();
    const lines: string[] = [];
    const log = createLog({ level: "warn", write: (line) => void lines.push(line) });
    const by = { ...at, compute, log, refreshMs: 60_000, againMs: 1_000 };
    const inventory = createInventory(by);
    await inventory.refresh();
    await inventory.refresh();
    const projects = await inventory.projects();
    expect(projects.map(({ name, status }) => `${name} ${status}`)).toEqual([
      "docs-site ACTIVE",
      "edge-cache ACTIVE",
      "ml UNREADABLE",
      "payments ACTIVE",
      "staging ACTIVE",
    ]);
    expect(await names(inventory.vms({ projectId: "prj-ml" }))).toEqual(["train-7"]);
    expect(await names(inventory.vms({ projectId: "prj-staging" }))).toEqual(["web-1", "worker-1"]);
    const { stale, gaps } = await inventory.state();
    expect(stale).toBe(false);
    expect(gaps).toEqual([
      "the list of projects: 1 record can't be read (vault: id is missing)",
      "ml: its status can't be read; 1 record can't be read (gpu-1: id is missing)",
      "staging: its type can't be read",
    ]);
    expect(lines.filter((line) => line.includes('"inventory.incomplete"'))).toHaveLength(1);
    // Another process knows it from Redis
    const other = createInventory(by);
    expect((await other.state()).gaps).toEqual(gaps);
    // Who sees a part is told nothing of the names of the others
    const scope = { key: "ml", sees: ({ name }: { name: string }) => name === "ml" };
    const part = (await inventory.seenIn(async () => scope).state()).gaps?.join();
    expect(part).toContain("gpu-1");
    expect(part).not.toMatch(/vault|staging/);
    sandbox.clear();
    await inventory.refresh();
    expect((await inventory.state()).gaps).toBeUndefined();
    await Promise.all([inventory.close(), other.close()]);
  });

  it("keeps a VM that the list may hide, under its last name, and forgets one that is gone", async () => {
    await using sandbox = await startSandboxCompute();
    await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
    await using at = await testRedis();
    const inventory = createInventory({
      ...at,
      compute,
      log: silentLog(),
      refreshMs: 60_000,
      againMs: 1_000,
    });
    await inventory.refresh();
    const seen = async () => {
      await inventory.refresh();
      const vms = await inventory.vms({ projectId: "prj-payments" });
      return vms.map(({ name, status }) => `${name} ${status}`);
    };
    const match = "GET /v1/projects/:id/vms";
    const spoils = { "web-1": { without: ["id"] }, "web-2": { set: { name: 5 } } };
    sandbox.weather({ match, spoils });
    expect(await seen()).toEqual(["db-1 RUNNING", "web-1 UNREADABLE", "web-2 RUNNING"]);
    sandbox.edit.removeVm({ vm: "db-1" });
    expect(await seen()).toEqual(["web-1 UNREADABLE", "web-2 RUNNING"]);
    sandbox.clear();
    sandbox.weather({ match, spoils: { "web-1": { without: ["id", "name"] } } });
    expect(await seen()).toEqual(["web-1 UNREADABLE", "web-2 RUNNING"]);
    sandbox.clear();
    expect(await seen()).toEqual(["web-1 RUNNING", "web-2 RUNNING"]);
    await inventory.close();
  });
});
