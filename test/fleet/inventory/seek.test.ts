import { afterEach, describe, expect, it } from "vitest";
import { stretchDeadlines } from "../../../src/deadline.ts";
import { createInventory } from "../../../src/fleet/inventory/create-inventory.ts";
import { silentLog } from "../../../src/log/log.ts";
import { testRedis } from "../../support/with-redis.ts";
import { projectNamed, smallService, type SmallService, vmNamed } from "./small-service.ts";

const shop = projectNamed("shop");
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Has read everything once; what is added to the service then was made elsewhere. */
async function readOnce(service: SmallService) {
  const at = await testRedis();
  const { redis, key } = at;
  const inventory = createInventory({
    redis,
    key,
    compute: service,
    log: silentLog(),
    refreshMs: 60_000,
    againMs: 1_000,
  });
  closing.push(
    () => inventory.close(),
    async () => at[Symbol.asyncDispose](),
  );
  await inventory.refresh();
  service.calls.length = 0;
  return inventory;
}

const createdElsewhere = (service: SmallService, name: string) =>
  service.held.get(shop.id)?.vms.push(vmNamed(shop, name));

describe("a VM or project that was just created elsewhere", () => {
  it("is found by its ID with one read of it", async () => {
    const service = smallService({ shop: ["web-1"] });
    const inventory = await readOnce(service);
    createdElsewhere(service, "web-2");
    expect(await inventory.findVm("v-shop-web-2")).toMatchObject({
      record: { name: "web-2", projectName: "shop" },
    });
    expect(service.calls).toEqual(["vm v-shop-web-2"]);
    expect(await inventory.findVm("web-2")).toHaveProperty("record");
  });

  it("is found by its ID in a project that is new itself", async () => {
    const service = smallService({ shop: ["web-1"] });
    const inventory = await readOnce(service);
    const site = projectNamed("site");
    service.held.set(site.id, { project: site, vms: [vmNamed(site, "web-9")] });
    expect(await inventory.findVm("v-site-web-9")).toMatchObject({
      record: { projectName: "site" },
    });
    expect(await inventory.findProject("site")).toHaveProperty("record");
  });

  it("is found by its name with one refresh, which all who wait share", async () => {
    const service = smallService({ shop: ["web-1"], blog: [] });
    const inventory = await readOnce(service);
    createdElsewhere(service, "web-2");
    const all = await Promise.all(
      ["web-2", "WEB-2", "web-2"].map((name) => inventory.findVm(name)),
    );
    for (const found of all) expect(found).toMatchObject({ record: { id: "v-shop-web-2" } });
    expect(service.calls.filter((call) => call === "list")).toHaveLength(1);
  });

  it("is matched by a glob", async () => {
    const service = smallService({ shop: ["web-1"] });
    const inventory = await readOnce(service);
    createdElsewhere(service, "web-2");
    const names = async (glob: string) => (await inventory.matchVms(glob)).map(({ name }) => name);
    expect(await names("web-*")).toEqual(["web-1", "web-2"]);
    createdElsewhere(service, "web-3");
    service.calls.length = 0;
    expect(await names("shop/web-*")).toEqual(["web-1", "web-2", "web-3"]);
    expect(service.calls).toEqual(["vms p-shop"]);
  });

  it("is not looked for where that is a guess", async () => {
    const service = smallService({ shop: ["web-1"] });
    const inventory = await readOnce(service);
    expect(await inventory.findVm("yesterday", { onlyKnown: true })).toHaveProperty("unknown");
    await inventory.suggestVms("yest");
    expect(service.calls).toEqual([]);
  });
});

describe("names that are nowhere", () => {
  it("cost the compute service little, however many are typed", async () => {
    const service = smallService(
      Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`p${n}`, ["web"]])),
    );
    const inventory = await readOnce(service);
    const typed = Array.from({ length: 10 }, (_, n) => inventory.findVm(`nowhere-${n}`));
    for (const found of await Promise.all(typed)) expect(found).toHaveProperty("unknown");
    expect(service.calls.length).toBeLessThanOrEqual(30);
  });

  it("don't make a large fleet read anew, but for the project that is named", async () => {
    const fleet = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`p${n}`, ["web"]]));
    const service = smallService({ ...fleet, shop: ["web-1"] });
    const inventory = await readOnce(service);
    expect(await inventory.findVm("nowhere")).toHaveProperty("unknown");
    expect(service.calls).toEqual(["vm nowhere"]);
    createdElsewhere(service, "web-2");
    expect(await inventory.findVm("shop/web-2")).toHaveProperty("record");
    expect(service.calls).toEqual(["vm nowhere", "vms p-shop"]);
  });

  it("are denied after a moment when the compute service doesn't answer", async () => {
    const service = smallService({ shop: ["web-1"] });
    const inventory = await readOnce(service);
    const held = Promise.withResolvers<void>();
    service.before = (call) => (call === "list" ? held.promise : undefined);
    stretchDeadlines(0.1);
    expect(await inventory.findVm("web-2")).toHaveProperty("unknown");
    stretchDeadlines(30);
    held.resolve();
  });
});
