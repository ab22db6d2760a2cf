import type { Origin } from "../../src/core/request/origin.ts";
import { expect, it } from "vitest";
import { type Journal, createJournal } from "../../src/core/request/journal.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import type { GatewayContext } from "../../src/talk/gateway-context.ts";
import { seenBy } from "../../src/talk/visible-to.ts";
import { storeRequest, member, restartOf, stageOf, vmTarget } from "../core/asking.ts";
import { testRedis } from "../support/with-redis.ts";
import { sampled, usualSeed } from "./fuzzed.ts";
import { type TeamCase, ourTeamId, teamCase } from "./team-cases.ts";
import { isListed, mayLook } from "./team-rights.ts";

/** What projects are called now; of the last one no name is known. */
const projects = [
  { id: "prj-1", before: "pay", now: "pay" },
  { id: "prj-2", before: "web", now: "shop" },
  { id: "prj-3", before: "wob", now: "wob" },
  { id: "prj-4", before: "web-eu", now: "else" },
  { id: "prj-9", before: "Pay-EU", now: undefined },
  { id: "prj-8", before: undefined, now: undefined },
];
const requesters = ["U0A", "U0C", "U0Z"];
const asked = projects.flatMap((project) => requesters.map((who) => ({ project, who })));

interface Made {
  request: StoredRequest;
  origin: Origin;
  project: (typeof projects)[number];
}

/** Of each project one by each person; some wait for approval, one of whose rules names who votes. */
async function makeAll(store: Journal): Promise<Made[]> {
  const made: Made[] = [];
  for (const [n, { project, who }] of asked.entries()) {
    const { projectName: _none, ...vm } = vmTarget(`vm-${n}`, { id: `vm-${n}` });
    const named = project.before === undefined ? {} : { projectName: project.before };
    const origin: Origin = { kind: "typed", interaction: `ask-view-${n}` };
    const { approval, ...plain } = restartOf(
      { ...vm, projectId: project.id, ...named },
      { person: member(who), origin },
    );
    const votes = n % 6 === 1 ? { votes: [{ from: ["U0B", "S0X"], required: 1 }] } : {};
    const submission =
      n % 2 === 0 || !approval ? plain : { ...plain, approval: { ...approval, ...votes } };
    const request = await storeRequest(store, submission);
    made.push({ request, origin, project });
    if (n % 5 === 0) await store.move(request, { to: stageOf("cancelled"), why: "no" });
  }
  return made;
}

/** Read a second time, without the code under test. */
function maySee(one: TeamCase, { request: { record }, project }: Made): boolean {
  const { person, places } = one;
  const isSeen = (name: string) => mayLook(one, { id: project.id, name });
  // Who sees each place there is, sees what has no name too
  const seesAll = isAllSeen(one);
  const { approval } = record;
  const votes = approval && (approval.votes ?? [{ from: places["access"]?.approve ?? [] }]);
  if (seesAll || record.requester.id === person.id) return true;
  if (votes?.some(({ from }) => isListed(from, person, false))) return true;
  const names = [project.before, project.now].filter((name) => name !== undefined);
  return names.length > 0 && names.every(isSeen);
}

/** A project of each place: one that nobody claims, and one that each team does. */
function isAllSeen(one: TeamCase): boolean {
  const claimed = Object.entries(one.places)
    .filter(([place]) => place !== "access")
    .map(([, place]) => ({
      id: "",
      name: (place.projects[0] ?? "").replaceAll("*", "").replaceAll("?", "e"),
    }));
  return [{ id: "", name: "nobody's" }, ...claimed].every((project) => mayLook(one, project));
}

it("20 policies with teams, and people: every list, look, and count of the journal holds the requests that they may see, and no other", async () => {
  await using redis = await testRedis();
  const store = createJournal(redis.redis, redis.key);
  const made = await makeAll(store);
  const inventory = {
    seenIn: () => inventory,
    findProject: async (id: string) => {
      const found = projects.find((one) => one.id === id && one.now !== undefined);
      return found ? { record: { id, name: found.now } } : { unknown: [] };
    },
  };
  const counts = { seen: 0, hidden: 0 };
  for (const one of sampled(teamCase, { cases: 20, seed: usualSeed })) {
    if (Object.keys(one.policy.teams).length === 0) continue;
    const { policy, person } = one;
    // What the view of the journal takes of it
    const gateway = { policy, ourTeamId, store, inventory, person: async () => person };
    const view = seenBy(
      { userId: person.id, teamId: person.teamId },
      gateway as unknown as GatewayContext,
    ).store;
    const unscoped = Object.entries(store).filter(([called, way]) => Object(view)[called] === way);
    expect(sorted(unscoped.map(([called]) => called))).toEqual(tellsNothing);
    const expected = made.filter((each) => maySee(one, each));
    counts.seen += expected.length;
    counts.hidden += made.length - expected.length;
    const shown = await everythingIn(view, made);
    expect(shown, JSON.stringify({ ...one, policy: undefined, command: undefined })).toEqual(
      await everythingOf(expected, store),
    );
  }
  expect(Math.min(counts.seen, counts.hidden)).toBeGreaterThan(50);
});

const idOf = ({ record }: StoredRequest) => record.id;
const sorted = (ids: readonly string[]) => ids.toSorted();

/** What tells of no request, or only of one that was read before: a new method of the journal is sorted in here, or scoped. */
const tellsNothing = [
  "apiCalls",
  "claimsOf",
  "countAgainstLimits",
  "create",
  // A person's own request, of what they may run.
  "findEqual",
  "freeze",
  "freezeNews",
  "freezeState",
  "giveReason",
  "holds",
  "isPolicyInForce",
  "lates",
  "latest",
  "leaveDraftPlace",
  "limitRefusal",
  "move",
  "named",
  "note",
  "noteApiCall",
  "noteOnce",
  "now",
  "outbox",
  "saveFacts",
  "sharedCards",
  "steps",
  "takeApiPlace",
  "takeDraftPlace",
  "takeHourlyPlace",
  "thaw",
  "throttle",
  "throttledMs",
  "trim",
  "useOnce",
  "vote",
  "votesNotInTrail",
];

/** What one is told of by each way to ask. */
async function everythingIn(view: Journal, made: readonly Made[]) {
  const all = made.map(({ request }) => idOf(request));
  const each = async (ask: (one: Made) => Promise<unknown>) => {
    const told = await Promise.all(made.map(ask));
    return sorted(all.filter((_, n) => told[n] !== undefined));
  };
  return {
    get: await each(({ request }) => view.get(idOf(request))),
    getMany: sorted((await view.getMany(all)).map(idOf)),
    recent: sorted(await view.recentIds({}, 100)),
    recentOpen: sorted(await view.recentIds({ open: true }, 100)),
    open: sorted(await view.openIds()),
    openCount: await view.openCount(),
    between: sorted(await view.idsAskedBetween(0, Date.now() + 60_000, 100)),
    madeBy: await each(({ origin }) => view.madeBy(origin)),
    history: await each(async ({ request }) => (await view.history(idOf(request)))[0]),
  };
}

/** What it should be, of these requests. */
async function everythingOf(expected: readonly Made[], store: Journal) {
  const ids = sorted(expected.map(({ request }) => idOf(request)));
  const openIds = await store.openIds();
  const open = ids.filter((id) => openIds.includes(id));
  const steps = await Promise.all(ids.map((id) => store.history(id)));
  return {
    get: ids,
    getMany: ids,
    recent: ids,
    recentOpen: open,
    open,
    openCount: open.length,
    between: ids,
    madeBy: ids,
    history: ids.filter((_, n) => (steps[n] ?? []).length > 0),
  };
}
