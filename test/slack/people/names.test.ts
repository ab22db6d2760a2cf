import { expect, it } from "vitest";
import { silentLog } from "../../../src/log/log.ts";
import { createPeopleNames } from "../../../src/slack/people/names.ts";
import type { Web } from "../../../src/slack/web.ts";
import { member } from "../../core/asking.ts";
import { until } from "../../support/until.ts";

it("names are read once for people that policy lists, for others when they are asked for, and for groups", async () => {
  const asked: string[] = [];
  const web: Web = {
    call: async () => ({
      ok: true,
      data: { usergroups: [{ id: "S01ONCALL", handle: "oncall" }] },
    }),
  };
  const names = createPeopleNames({
    web,
    log: silentLog(),
    usual: () => ["U0ADA", "S01ONCALL", "*"],
    async person(id) {
      asked.push(id);
      if (id === "U0GONE") throw new Error("user_not_found");
      return member(id);
    },
  });
  await until(() => names.nameOf("U0ADA")).toBe("ada");
  await until(() => names.nameOf("S01ONCALL")).toBe("@oncall");
  expect(names.nameOf("U0AMIR")).toBeUndefined();
  await names.learnNames(["U0AMIR", "U0ADA", "U0GONE", "no-id"]);
  expect(names.nameOf("U0AMIR")).toBe("amir");
  expect(names.nameOf("U0GONE")).toBeUndefined();
  expect(asked).toEqual(["U0ADA", "U0AMIR", "U0GONE"]);
});
