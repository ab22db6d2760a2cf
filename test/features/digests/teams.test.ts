import { sectionOf } from "../../../src/config/policy-section.ts";
import { digestsSection } from "../../../src/features/digests/digests-section.ts";
import { describe, expect, it } from "vitest";
import { policyVersion } from "../../../src/config/policy-file.ts";
import { scopeShownTo } from "../../../src/core/permit/access.ts";
import type { DigestPart, HandoverPart } from "../../../src/features/digest-part.ts";
import { md } from "../../../src/messages/markdown.ts";
import { wordsOf } from "../../stories/words.ts";
import { ourTeamId, person, policyOf } from "../../core/permit/sample.ts";
import { shownText } from "../../commands/shown-text.ts";
import { startScene } from "./digest-processes.ts";
import { knownVm } from "../../../demo/cards/requests.ts";
import { twoTeams } from "./team-policy.ts";

const vms = [
  knownVm("pay-web", "ERROR", "payments"),
  knownVm("db-pay", "ERROR", "payments"),
  knownVm("sea-web", "ERROR", "search"),
  knownVm("shop-web", "ERROR", "shop"),
];
const targetOf = (vm: (typeof vms)[number]) => ({ kind: "vm" as const, ...vm });
const openRequests = async () =>
  vms.map((vm) => ({
    id: `r-${vm.name}`,
    command: "vm restart",
    target: targetOf(vm),
    requester: `who-asked-for-${vm.name}`,
    state: "unknown" as const,
    stateWords: "unknown",
    createdAt: 1,
    changedAt: Date.parse("2026-11-20T08:30Z"),
    approval: undefined,
  }));
/** Tells of each VM that the digest speaks of. */
const letters: DigestPart = {
  name: "letters",
  async read({ only }) {
    const spoken = await only(Promise.resolve(vms), targetOf);
    const lines = spoken.map(({ id, name }) => {
      return { key: id, text: md`A letter for ${name}.`, button: undefined };
    });
    return { all: [{ kind: "letter", words: ["letter", "letters"], place: "review", lines }] };
  },
};
/** Tells of each VM that whoever takes the shift sees. */
const parcels: HandoverPart = {
  name: "Parcels",
  async read({ seesVm }) {
    const seen = await Promise.all(vms.map(async ({ id }) => seesVm(id)));
    const lines = vms.filter((_, index) => seen[index]).map(({ name }) => md`One for ${name}.`);
    return { title: "Parcels", none: "none", lines };
  },
};
const at = (iso: string) => Date.parse(iso);

/** The names of VMs in a text. */
const namesIn = (text: string) => vms.map(({ name }) => name).filter((name) => text.includes(name));

async function startTeams() {
  return startScene({
    now: at("2026-11-20T08:00Z"),
    vms,
    openRequests,
    parts: [letters],
    handoverParts: [parcels],
    policy: twoTeams,
    rules: [...sectionOf(twoTeams, digestsSection)],
  });
}

describe("digests with teams", () => {
  it("are about the team's VMs in its channel, limited to its targets, and elsewhere about VMs of no team", async () => {
    await using scene = await startTeams();
    const processes = [await scene.start(), await scene.start()];
    await Promise.all(processes.map((one) => one.postDue()));
    scene.set.now = at("2026-11-20T09:00Z");
    for (let tries = 0; tries < 2; tries++)
      await Promise.all(processes.map((one) => one.postDue()));
    await scene.said();
    const ops = scene.posted("ops").map((message) => namesIn(wordsOf(message)));
    expect(ops.toSorted((a, b) => a.length - b.length)).toEqual([
      ["db-pay"],
      ["pay-web", "db-pay"],
    ]);
    expect(scene.posted("status").map((message) => namesIn(wordsOf(message)))).toEqual([
      ["shop-web"],
    ]);
    expect(scene.posted("vendor")).toEqual([]);
  });

  it("show the same on request in each channel, and to one person what the channel and the person may see", async () => {
    await using scene = await startTeams();
    const { digests } = await scene.start();
    const now = async (channel: string) => namesIn(shownText(await digests.build(channel)));
    expect(await now("C07VENDOR")).toEqual(["sea-web"]);
    expect(await now("C09ANY")).toEqual(["shop-web"]);
    expect(shownText(await digests.build("C01OPS"))).toMatch(
      /A letter for pay-web\.[^]*A letter for db-pay\./,
    );
    const handed = async (who: string, channel: string) => {
      const scope = scopeShownTo(person(who), channel, twoTeams, ourTeamId);
      const words = shownText(await digests.handover(channel, scope));
      expect([...words.matchAll(/One for (\S+)\./g)].map(([, vm]) => vm)).toEqual(namesIn(words));
      return namesIn(words);
    };
    expect(await handed("U0PAY", "C01OPS")).toEqual(["pay-web", "db-pay"]);
    expect(await handed("U0SEA", "C01OPS")).toEqual([]);
    expect(await handed("U9ADMIN", "C01OPS")).toEqual(["pay-web", "db-pay"]);
    expect(await handed("U0PAY", "D0PAY")).toEqual(["pay-web", "db-pay", "shop-web"]);
  });

  it("leave out a request whose target's name belongs to another team now", async () => {
    await using scene = await startTeams();
    const { digests } = await scene.start();
    scene.set.vms = vms.map((vm) =>
      vm.projectName === "payments" ? { ...vm, projectName: "search-2" } : vm,
    );
    const words = shownText(await digests.build("C01OPS"));
    expect(namesIn(words)).toEqual([]);
    expect(namesIn(shownText(await digests.build("C07VENDOR")))).toEqual([
      "pay-web",
      "db-pay",
      "sea-web",
    ]);
  });
});

describe("the time of digests", () => {
  it("decides nothing: requests that wait for approval stay", () => {
    const text = (time: string) =>
      `teams: { a: { projects: ["a"], channel: C01OPS, digests: [{ at: "${time}" }] } }`;
    expect(policyVersion(policyOf(text("09:00")))).toBe(policyVersion(policyOf(text("10:00"))));
  });
});
