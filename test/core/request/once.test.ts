import { expect, it } from "vitest";
import { testJournal } from "../../support/with-redis.ts";

it("a name is used up once, and by nobody while changes are frozen", async () => {
  const { store } = await testJournal();
  await store.freeze({ id: "U0ADA", by: "ada", reason: "odd things" });
  expect(await store.useOnce("console:a", 60_000)).toMatchObject({
    kind: "frozen",
    freeze: { by: "ada" },
  });
  await store.thaw({ id: "U0ADA", name: "ada" });
  expect(await store.useOnce("console:a", 60_000)).toEqual({ kind: "first" });
  expect(await store.useOnce("console:a", 60_000)).toEqual({ kind: "again" });
});
