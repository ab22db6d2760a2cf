import { afterAll, expect, it } from "vitest";
import type { Fact } from "../../../src/core/facts/fact.ts";
import { defineFeature } from "../../../src/features/define-feature.ts";
import { features } from "../../../src/features/index.ts";
import { md, name } from "../../../src/messages/markdown.ts";
import { calledName } from "../../../src/registry/define.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { testPolicy } from "../../support/start-world.ts";
import { fire, sources, startAlertWorld } from "./sending.ts";

const isReadable = { disks: true };
/** The names of the VMs of each question about disks. */
const asked: (readonly string[])[] = [];

/** Knows a kind of fact that alerts have not heard of. The disk of web-2 was full before it moved, too. */
const disks = defineFeature({
  name: "disks",
  start: () => ({
    facts: {
      name: "how full disks are",
      async read({ targets }) {
        asked.push(targets.map(({ name: vm }) => vm).toSorted());
        if (!isReadable.disks) throw new Error("nobody answers");
        return targets.flatMap((target): Fact[] => {
          const fact = { kind: "disk", about: target, severity: "warning", sign: "💽" } as const;
          const called = name(calledName(target));
          return [
            { ...fact, text: md`The disk of ${called} is 95% full.` },
            {
              ...fact,
              text: md`The disk of ${called} was full in ml.`,
              learnedOf: [{ ...target, projectId: "prj-ml", projectName: "ml" }],
            },
          ];
        });
      },
    },
  }),
});

const teams = `teams:
  lab: { projects: [ml], operate: [U0AMIR], channel: C02STATUS }
`;
const world = await startAlertWorld({
  features: [...features, disks],
  policy: `${testPolicy}${teams}${sources}`,
});
afterAll(() => world.close());

it("an alert's message tells a new kind of fact about its VMs, as far as its channel may know it", async () => {
  const { olivia } = world;
  await fire(world, [{ vm: "web-2" }], { groupKey: "one" });
  const message = wordsOf(await hears(olivia, "ops", /HighCpu on web-2/));
  expect(message).toMatch(/is RUNNING[^\n]*\n💽 The disk of web-2 is 95% full\.\n/);
  expect(message).not.toContain("full in ml");
  await fire(world, [{ vm: "web-2" }, { vm: "db-1" }], { groupKey: "several" });
  const several = wordsOf(await hears(olivia, "ops", /HighCpu on [^\n]*db-1/));
  for (const vm of ["web-2", "db-1"])
    expect(several).toContain(`💽 The disk of ${vm} is 95% full.`);
  expect(asked).toContainEqual(["db-1", "web-2"]);
});

it("an alert's message says once what can't be read of its VMs", async () => {
  isReadable.disks = false;
  await fire(world, [{ vm: "web-2" }, { vm: "db-1" }], { groupKey: "unread" });
  const unread = "❔ Not known, because it can't be read now: how full disks are.";
  const message = wordsOf(await hears(world.olivia, "ops", /can't be read now/));
  expect(message.split(unread)).toHaveLength(2);
});
