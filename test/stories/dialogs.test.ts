import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { snapshotIdOf } from "../core/asking.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import type { SeenView } from "../../sandbox/slack/seen.ts";
import { wordsIn } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({
    policy: `${testPolicy}approvals: [{ operations: ["project.delete"], required: 1, expires: 1m }]\nlimits: { draftsPerPerson: 100, destructivePerHour: 100, requestsPerMinute: 1000 }\n`,
  });
});
afterAll(() => world.close());
beforeEach(async () => {
  while (world.olivia.sees().modals.length > 0) await world.olivia.closes({ all: true });
  world.compute.forget();
});

/** Olivia types it; resolves with the dialog once it has been filled in. */
async function opens(words: string, channel = "ops"): Promise<SeenView> {
  await world.olivia.types(channel, words);
  return top(({ submit }) => submit !== "");
}

async function top(wanted: (view: SeenView) => boolean): Promise<SeenView> {
  const seen = await world.olivia.until(({ modals }) => modals.some(wanted));
  const view = seen.modals.findLast(wanted);
  if (!view) throw new Error("no such dialog");
  return view;
}

/** The newest request of this command on this target, once it has ended and Slack was told. */
async function ended(command: string, name: string): Promise<StoredRequest> {
  let found: StoredRequest | undefined;
  const look = async () => {
    const all = await world.store.getMany(await world.store.recentIds({}, 50));
    found = all.find(({ record }) => record.target.name === name && record.command === command);
    return found?.final === true || found?.state === "unknown";
  };
  await until(look).toBe(true);
  if (!found) throw new Error("it is gone");
  return found;
}

const text = (view: SeenView) =>
  wordsIn(view.blocks)
    .join("\n")
    .replaceAll(/[*`\u2060]/g, "");
const inputs = (view: SeenView) =>
  view.blocks.filter(({ type }) => type === "input").map(({ block_id }) => block_id);

async function chooses(type: string, shown: string): Promise<SeenView> {
  await world.olivia.chooses("Type", type);
  return top((view) => inputs(view).includes(shown));
}

/** Numbers that look like others, or like none. */
const badNumbers = [
  "1e9",
  "-1",
  "0x10",
  "1,5",
  "٣",
  "NaN",
  "0",
  "1.5",
  " ",
  "99999999",
  "Infinity",
  "½",
  "+4",
];

describe("the dialog of what destroys", () => {
  it("names all that a project's deletion loses: each VM with its state, and the snapshots known of them", async () => {
    await world.olivia.types("random", "/vm snapshot gpu-1 before-purge");
    expect((await ended("vm snapshot", "gpu-1")).state).toBe("done");
    await world.settled();
    const view = await opens("/project delete ml");
    expect(view).toMatchObject({
      title: "Delete a project",
      submit: "Request approval",
      close: "Cancel",
    });
    for (const words of ["can't be undone", "gpu-1 (STOPPED), train-7 (ERROR)", "before-purge"]) {
      expect(text(view)).toContain(words);
    }
    expect(inputs(view)).toEqual(["confirm", "reason"]);
  });

  it("wants the name as it is written and a reason, each said on its field, and asks for nothing until then", async () => {
    await opens("/project delete ml");
    const tries: [confirm: string, reason: string, errors: string[]][] = [
      ["mI", "over and done", ["confirm"]],
      ["ML", "over and done", ["confirm"]],
      ["ml2", "over and done", ["confirm"]],
      ["prj-ml", "over and done", ["confirm"]],
      ["ml", "   ", ["reason"]],
      ["*", "    ", ["confirm", "reason"]],
    ];
    for (const [confirm, Reason, wrong] of tries) {
      const said = await world.olivia.submits({ "Type ml to confirm": confirm, Reason });
      expect(Object.keys(said.errors ?? {}).toSorted()).toEqual(wrong);
    }
    expect(await world.store.recentIds({ targetId: "prj-ml" }, 5)).toEqual([]);
    await world.olivia.submits({ "Type ml to confirm": " ml ", Reason: "over and done" });
    const card = await hears(
      world.amir,
      "ops",
      /Delete ml[^]*over and done[^]*Waiting for approval/,
    );
    await world.amir.presses("Deny", { in: card.ts });
    expect((await ended("project delete", "ml")).state).toBe("denied");
    expect(world.compute.writes()).toEqual([]);
  });

  it("says of a restore what is lost and what the way back is, and lets the snapshot be chosen by typing", async () => {
    await world.olivia.types("random", "/vm snapshot db-1 nightly");
    const taken = await ended("vm snapshot", "db-1");
    // The snapshot is remembered before its result is told
    await world.settled();
    const view = await opens("/vm restore db-1");
    expect(text(view)).toMatch(/All data of db-1 is replaced/);
    expect(text(view)).toMatch(/• nightly: taken at .* by olivia/);
    expect(text(view)).toContain("A safety snapshot is taken first, so it can be undone.");
    expect(JSON.stringify(view.blocks)).toContain("Skip the safety snapshot (no Undo)");
    const { options } = await world.olivia.suggests("Snapshot", "nigh");
    expect(options.map(({ value }) => value)).toEqual([snapshotIdOf(taken), "nigh"]);
    expect(inputs(view)).toEqual(["arg:snapshot", "arg:noSafety", "confirm", "reason"]);
  });

  it("refuses a snapshot that can't be an id, on its field", async () => {
    for (const wrong of ["a b c", "../../x", "snap?x=1", "snäp"]) {
      await opens("/vm restore db-1");
      const said = await world.olivia.submits({
        Snapshot: wrong,
        "Type db-1 to confirm": "db-1",
        Reason: "corrupt index",
      });
      expect(said.errors).toEqual({
        "arg:snapshot": expect.stringContaining("must be a snapshot's ID"),
      });
      await world.olivia.closes({ all: true });
    }
    const all = await world.store.getMany(await world.store.recentIds({}, 50));
    expect(all.filter(({ record }) => record.command === "vm restore")).toEqual([]);
  });

  it("can't be opened on what is protected, and says which rule it is", async () => {
    await world.olivia.types("ops", "/vm restore vault-1 snap-1");
    await hears(world.olivia, "ops", /vault-1 is protected/);
    expect(world.olivia.sees().modals).toEqual([]);
  });
});

describe("the form that makes a project", () => {
  it("asks for what the chosen type needs, and for nothing of another type", async () => {
    const view = await opens("/project create");
    expect(inputs(view)).toEqual(["arg:name", "arg:type", "arg:region"]);
    expect(inputs(await chooses("TEE_VM", "arg:cpu"))).toEqual(
      ["name", "type", "region", "cpu", "memory", "disk"].map((key) => `arg:${key}`),
    );
    expect(inputs(await chooses("GIT_DEPLOY", "arg:gitUrl"))).toEqual(
      ["name", "type", "region", "gitUrl", "gitBranch", "buildCommand", "startCommand"].map(
        (key) => `arg:${key}`,
      ),
    );
  });

  it.each([
    [
      "TEE_VM",
      "arg:cpu",
      { Name: "fresh-vm", Region: "eu-west-1", CPU: "2", Memory: "8", Disk: "50" },
      {
        name: "fresh-vm",
        type: "TEE_VM",
        region: "eu-west-1",
        specs: { cpu: 2, memory: 8, disk: 50 },
      },
    ],
    [
      "GIT_DEPLOY",
      "arg:gitUrl",
      {
        Name: "fresh-site",
        Region: "eu-west-1",
        Repository: "https://git.example/site.git",
        Branch: "main",
      },
      {
        name: "fresh-site",
        type: "GIT_DEPLOY",
        region: "eu-west-1",
        git_config: { url: "https://git.example/site.git", branch: "main" },
      },
    ],
    [
      "CONTAINER",
      "arg:region",
      { Name: "fresh-box", Region: "eu-west-1" },
      { name: "fresh-box", type: "CONTAINER", region: "eu-west-1" },
    ],
  ])("makes one of type %s with exactly what was given", async (type, shown, values, body) => {
    await opens("/project create");
    await chooses(type, shown);
    expect((await world.olivia.submits(values)).errors).toBeUndefined();
    expect((await ended("project create", values.Name)).state).toBe("done");
    expect(world.compute.writes()).toMatchObject([{ method: "POST", path: "/v1/projects", body }]);
  });

  it("fills in what flags gave, and refuses what the type can't have", async () => {
    const view = await opens(
      "/project create --name pre-filled --type TEE_VM --region eu-west-1 --cpu 4",
    );
    expect(inputs(view)).toContain("arg:disk");
    expect(JSON.stringify(view.state)).toMatch(/pre-filled[^]*eu-west-1[^]*"4"/);
    const said = await world.olivia.submits({ Memory: "8" });
    expect(said.errors).toMatchObject({ "arg:disk": "Please complete this required field." });
    await world.olivia.closes({ all: true });
    await world.olivia.types(
      "ops",
      "/project create --name x --type TEE_VM --region eu --git-url https://git.example/x",
    );
    await hears(world.olivia, "ops", /git-url must be omitted: only GIT_DEPLOY has it/);
  });

  it("refuses every number that isn't one, on its own field", async () => {
    await opens("/project create");
    await chooses("TEE_VM", "arg:cpu");
    for (const bad of badNumbers) {
      const said = await world.olivia.submits({
        Name: "n",
        Region: "r",
        CPU: bad,
        Memory: "8",
        Disk: "50",
      });
      expect([bad, Object.keys(said.errors ?? {})]).toEqual([bad, ["arg:cpu"]]);
    }
    const all = await world.olivia.submits({
      Name: "n".repeat(300),
      CPU: "1e9",
      Memory: "-1",
      Disk: "٣",
    });
    expect(Object.keys(all.errors ?? {}).toSorted()).toEqual(
      ["cpu", "disk", "memory", "name"].map((key) => `arg:${key}`),
    );
    for (const said of Object.values(all.errors ?? {}))
      expect(said).toMatch(/^[A-Z][^-]* must be /);
    expect(world.compute.writes()).toEqual([]);
  });

  it("refuses addresses of repositories that are none, or that hold a token or a password, and repeats none", async () => {
    await opens("/project create");
    await chooses("GIT_DEPLOY", "arg:gitUrl");
    for (const bad of [
      "file:///etc/passwd",
      "http://git.example/x",
      "javascript:alert(1)",
      "git.example/x",
      "https://a b",
      "https://olivia:fake-token@git.example/x",
      "https://fake-token@git.example/x",
      "https://git.example/x?private_token=fake-token",
      "https://git.example/x#fake-token",
      "ssh://git:fake-token@git.example/x",
    ]) {
      const said = await world.olivia.submits({ Name: "n", Region: "r", Repository: bad });
      expect([bad, Object.keys(said.errors ?? {})]).toEqual([bad, ["arg:gitUrl"]]);
      expect(said.errors?.["arg:gitUrl"]).not.toContain("fake-token");
    }
    await world.olivia.closes({ all: true });
    const flags = "--name n --type GIT_DEPLOY --region r";
    await world.olivia.types(
      "ops",
      `/project create ${flags} --git-url https://fake-token@git.example/x`,
    );
    const refused = await hears(world.olivia, "ops", /without a token or password/);
    expect(wordsOf(refused)).not.toContain("fake-token");
    expect(world.lines.join("\n")).not.toContain("fake-token");
  });

  it("says so in the thread when the name is taken meanwhile, and makes nothing", async () => {
    await opens("/project create --name payments --type CONTAINER --region eu-west-1", "status");
    await world.olivia.submits({});
    expect((await ended("project create", "payments")).state).toBe("cancelled");
    await hears(world.olivia, "status", /A project called payments already exists/);
    expect(world.compute.writes()).toEqual([]);
  });
});

describe("the form that changes a project", () => {
  it("warns that specs may restart it, and sends what was given and nothing else", async () => {
    const view = await opens("/project update staging --cpu 4");
    expect(text(view)).toMatch(/may restart staging/);
    await world.olivia.submits({});
    await world.compute.called("PATCH /v1/projects/:id");
    expect(world.compute.writes()).toMatchObject([
      { method: "PATCH", path: "/v1/projects/prj-staging", body: { specs: { cpu: 4 } } },
    ]);
  });

  it("refuses an empty change and bad values on their fields", async () => {
    await opens("/project update staging");
    expect(Object.keys((await world.olivia.submits({})).errors ?? {})).toEqual(["arg:name"]);
    for (const bad of badNumbers.filter((one) => one.trim() !== "")) {
      const said = await world.olivia.submits({ CPU: "4", Memory: bad });
      expect([bad, Object.keys(said.errors ?? {})]).toEqual([bad, ["arg:memory"]]);
    }
    expect(
      Object.keys(
        (await world.olivia.submits({ "New name": "x".repeat(300), Memory: "4" })).errors ?? {},
      ),
    ).toEqual(["arg:name"]);
    expect(world.compute.writes()).toEqual([]);
  });
});

describe("the dialog of a resize", () => {
  it("shows before → after, says that it restarts, and sends the numbers that stand in it", async () => {
    const view = await opens("/vm resize web-2 --cpu 8 --memory 32", "vendor");
    expect(text(view)).toMatch(/CPU 4 → 8, memory 16 → 32/);
    expect(text(view)).toMatch(/restarts the VM/);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.submits({});
    expect((await ended("vm resize", "web-2")).state).toBe("done");
    expect(world.compute.writes()).toMatchObject([
      {
        method: "PATCH",
        path: "/v1/vms/vm-payments-web-2",
        body: { specs: { cpu: 8, memory: 32 } },
      },
    ]);
    await hears(world.olivia, "vendor", /CPU 4 → 8, memory 16 → 32/);
  });

  it("shows what stands where nothing was given yet", async () => {
    const view = await opens("/vm resize db-1");
    expect(text(view)).toMatch(/CPU 16, memory 64/);
    expect(text(view).replace("What would happen?", "")).not.toContain("?");
  });

  it("refuses every number that isn't one, typed in words or on its field", async () => {
    for (const bad of ["1e9", "0x10", "1,5", "٣"]) {
      await world.olivia.types("ops", `/vm resize db-1 --cpu ${bad} --memory 8`);
      await hears(world.olivia, "ops", /cpu must be a whole number from 1 to 1,000,000/);
    }
    await opens("/vm resize db-1");
    for (const bad of badNumbers.filter((one) => one.trim() !== "")) {
      const said = await world.olivia.submits({ CPU: bad, Memory: "8" });
      expect([bad, Object.keys(said.errors ?? {})]).toEqual([bad, ["arg:cpu"]]);
    }
    expect(world.compute.writes()).toEqual([]);
  });
});

describe("a dialog that was open for a while", () => {
  it("asks for nothing when its VM is gone by now", async () => {
    await opens("/vm resize gpu-1 --cpu 2 --memory 8");
    world.compute.edit.removeVm({ vm: "gpu-1" });
    await world.olivia.submits({});
    await hears(world.olivia, "ops", /gpu-1 is gone|There is no VM called|no longer has it/);
    expect(world.compute.writes()).toEqual([]);
  });

  it("is checked again: somebody who may not any more is told so on the form", async () => {
    await opens("/vm resize db-1 --cpu 2 --memory 8");
    await world.slack.edit.setGroupMembers("oncall", ["vera"]);
    const said = await world.olivia.submits({});
    expect(Object.values(said.errors ?? {}).join()).toMatch(/Only @oncall can resize db-1/);
    await world.slack.edit.setGroupMembers("oncall", ["olivia"]);
    expect(world.compute.writes()).toEqual([]);
  });

  it("says in the dialog itself when what it needs can't be read", async () => {
    const weather = world.compute.weather({ match: "reads", status: 503 });
    await world.olivia.types("ops", "/vm resize db-1 --cpu 2 --memory 8");
    const view = await top(({ blocks }) =>
      /can't be reached|asks us|refused/.test(JSON.stringify(blocks)),
    );
    expect(view.submit).toBe("");
    world.compute.clear(weather);
  });
});

it("a project that was created is shown at a press, by its name", async () => {
  await using own = await startWorld();
  await own.olivia.types("ops", "/project create --name lab --type CONTAINER --region eu-west-1");
  await own.olivia.until(({ modals }) => modals.some(({ submit }) => submit === "Create"));
  await own.olivia.submits({});
  const card = await hears(own.olivia, "ops", /✅ Created lab[^]*\[Show\]/);
  await own.olivia.presses("Show", { in: card.ts });
  await hears(own.olivia, "ops", /lab is ACTIVE/);
});
