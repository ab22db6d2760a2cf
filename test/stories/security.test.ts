import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import {
  type ChangeCommand,
  type DialogFacts,
  type Seen,
  type Target,
  argumentsOf,
} from "../../src/registry/define.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import type { Stage, StageIn, State } from "../../src/core/request/stage.ts";
import { renderCard } from "../../src/core/cards/render-card.ts";
import { renderResult } from "../../src/core/cards/render-result.ts";
import { settingsFromManifest } from "../../sandbox/slack/state/app-settings.ts";
import { submissionPayload } from "../../sandbox/slack/deliver/payloads.ts";
import { personOf } from "../../sandbox/slack/state/people.ts";
import { complaintsAboutView, topModal } from "../../sandbox/slack/state/views.ts";
import { Workspace } from "../../sandbox/slack/state/workspace.ts";
import { formOfOne } from "../../src/talk/form-view.ts";
import { complaintsOf } from "../commands/shown-text.ts";
import { controlsIn, hostileTexts } from "../messages/hostile.ts";
import { auditOf, called, storedIn } from "../core/asking.ts";
import { policyWith, startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { buttonOn, pressPayload, sendSigned } from "./forge.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const isChange = (command: (typeof commands)[number]): command is ChangeCommand =>
  command.kind === "change";
const changes = commands.filter(isChange);
const trail = (world: TestWorld) => auditOf(world.client, world.key("audit"));
const allRequests = async (world: TestWorld) =>
  world.store.getMany(await world.store.recentIds({}, 1000));

describe("hostile words, 200 of them, in every place of every message about a change (I1)", () => {
  const states: readonly State[] = [
    "draft",
    "authorized",
    "sending",
    "unclear",
    "unknown",
    "done",
    "failed",
    "rejected",
    "denied",
    "expired",
    "cancelled",
    "not-applied",
  ];

  it.each(changes.map((command, turn) => [command.name, command, turn] as const))(
    "stay words on cards and results of %s",
    (_name, command, turn) => {
      for (const [at, text] of hostileTexts.entries()) {
        // Each text in one of the states, in the next one for the next command
        for (const state of states.filter((_, n) => (n + at + turn) % states.length === 0)) {
          const request = requestOf(command, text, state);
          const made = [
            renderCard(request, command, [text, "U0AMIR"]),
            renderResult(request, command),
          ];
          for (const message of made) expect(complaintsOf(message)).toEqual([]);
          expect(controlsIn(made, ["<@U0OLIVIA>", "<@U0AMIR>"])).toEqual([]);
        }
      }
    },
  );

  it.each(changes.map((command) => [command.name, command] as const))(
    "stay words in the dialog of %s",
    (_name, command) => {
      const workspace = new Workspace(settingsFromManifest(), () => 0);
      for (const text of hostileTexts) {
        const view = formOfOne({
          command,
          facts: factsOf(command, text),
          meta: { command: command.name, targetId: "vm-1", channelId: "C01OPS" },
          now: 0,
        });
        const fields = JSON.parse(JSON.stringify(view)) as Record<string, unknown>;
        expect(complaintsAboutView(workspace, fields, "modal")).toEqual([]);
        expect(controlsIn(view)).toEqual([]);
      }
    },
  );
});

function targetOf(command: ChangeCommand, text: string): Target {
  return command.on === "vm"
    ? {
        kind: "vm",
        id: text,
        name: text,
        projectId: text,
        projectName: text,
        status: text,
        createdAt: text,
      }
    : { kind: "project", id: text, name: text, projectId: text, status: text };
}

function seenOf(command: ChangeCommand, text: string) {
  const specs = { cpu: 1, memory: 1, disk: 1 };
  return command.on === "vm"
    ? {
        id: text,
        projectId: text,
        name: text,
        status: text,
        region: text,
        specs,
        attestation: { enabled: true, measurement: text },
      }
    : { id: text, name: text, type: text, status: text, region: text };
}

function inputOf(command: ChangeCommand, text: string): Record<string, unknown> {
  const own = argumentsOf(command).filter(({ isRolling }) => !isRolling);
  return Object.fromEntries(own.map(({ key, isList }) => [key, isList ? [text] : text]));
}

function requestOf(command: ChangeCommand, text: string, state: State): StoredRequest {
  const seen = seenOf(command, text);
  const read = (command.on === "new-project" ? [seen] : seen) as never;
  return storedIn(stageWith(state, text, read), {
    record: {
      id: "r-7fk3m9q2xw",
      command: command.name,
      input: inputOf(command, text),
      target: targetOf(command, text),
      requester: { id: "U0OLIVIA", teamId: "T0OURS", name: text },
      channelId: "C01OPS",
      origin: { kind: "form", interaction: "1.1" },
      reason: text,
      policyVersion: "v1",
      approval: {
        required: 2,
        expiresAt: 9e12,
        digest: "a".repeat(64),
        why: text,
        evidence: Array.from({ length: 12 }, () => [text, text] as const),
      },
      createdAt: 0,
      runsUntil: 9e12,
    },
    attempt: 2,
    owner: text,
    revision: 3,
    changedAt: 5000,
    votes: [
      { voterId: text, name: text, vote: "approve", at: 1, digest: "a" },
      { voterId: text, name: text, vote: "deny", at: 2, digest: "a" },
    ],
  });
}

/** Whatever a state may tell, in these words. */
function stageWith(state: State, text: string, read: Seen): Stage {
  const facts = {
    ...called(
      {
        sentAt: 1000,
        before: read,
        answer: { class: text, status: 500, message: text, snapshotId: text },
        mark: { status: text, at: 2000 },
      },
      { last: { at: 3000, status: text, print: text } },
    ),
    why: text,
  };
  const { setbacks } = facts;
  const decidedBy = { id: text, name: text, reason: text };
  const unsent = { why: text, hint: text, setbacks };
  const waitsFor = { request: text, requesterName: text, command: text };
  const stages: { [In in State]: StageIn<In> } = {
    draft: { state: "draft" },
    authorized: { state: "authorized", setbacks, why: text, waitsFor },
    sending: { state: "sending", ...facts },
    accepted: { state: "accepted", ...facts },
    unclear: { state: "unclear", ...facts },
    unknown: { state: "unknown", ...facts, since: 3000, reminders: 0, remindersOver: 0 },
    done: { state: "done", ...facts, after: read, decidedBy },
    failed: { state: "failed", ...facts, after: read },
    rejected: { state: "rejected", ...facts },
    "not-applied": { state: "not-applied", ...facts, decidedBy },
    denied: { state: "denied" },
    expired: { state: "expired", ...unsent },
    cancelled: { state: "cancelled", ...unsent, decidedBy },
  };
  return stages[state];
}

function factsOf(command: ChangeCommand, text: string): DialogFacts {
  const vm = { id: text, projectId: text, name: text, status: text };
  const known = {
    id: text,
    name: text,
    vmId: text,
    vmName: text,
    projectId: text,
    at: 0,
    by: text,
  };
  return {
    target: targetOf(command, text),
    seen: command.on === "new-project" ? undefined : seenOf(command, text),
    vms: [vm, vm],
    snapshots: [known, known] as never,
    // The words that named the target were looked up before
    input: { ...inputOf(command, text), vm: "vm-1", vms: ["vm-1"], project: "prj-1" },
  };
}

/** A world in which nobody gets anything done. */
let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ receive: "http" });
});
afterAll(() => world.close());

describe("somebody who may only look", () => {
  it("is refused with the rule, whatever they type, although the bot's own key could do it (X9)", async () => {
    const words = [
      "/vm restart web-2",
      "/vm start gpu-1",
      "/vm stop web-2",
      "/vm resize web-2 --cpu 8 --memory 32",
      "/vm snapshot web-2",
      "/vm restore db-1 snap-1",
      "/vm console web-2",
      "/project create --name x --type CONTAINER --region r",
      "/project update staging --name y",
      "/project delete staging",
      "/gatehouse freeze",
      "/gatehouse thaw",
      "/gatehouse audit",
    ];
    for (const [index, text] of words.entries()) {
      await world.vera.types("random", text);
      await world.vera.until(() => world.vera.seesChannel("random").messages.length > index);
    }
    const answers = world.vera.seesChannel("random").messages.map(wordsOf);
    expect(
      answers.filter((answer) =>
        /^Only .* can .*\.[^]*Rule: access\.(operate|administer)/.test(answer),
      ),
    ).toHaveLength(words.length);
    const refused = (await trail(world)).filter(
      ({ what, who }) => what === "refusal" && who === "U0VERA",
    );
    expect(refused).toHaveLength(words.length);
    expect(world.vera.sees().modals).toEqual([]);
    expect(await allRequests(world)).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
  });

  it("can't press what others may, nor submit a dialog that they forged: of 100 none asks for anything (X4)", async () => {
    const message = await world.vera.types("ops", "hello");
    const on = world.vera.seesChannel("ops").messages.find(({ ts }) => ts === message.ts);
    if (!on) throw new Error("there is no message");
    for (const action of [
      "run:vm.restart",
      "run:vm.stop",
      "run:project.delete",
      "run:vm.restore",
    ]) {
      await sendSigned(
        world,
        pressPayload(world, "vera", on, {
          action,
          value: JSON.stringify({
            vms: ["vm-payments-web-2"],
            vm: "vm-payments-web-2",
            project: "prj-ml",
            snapshot: "s",
          }),
        }),
      );
    }
    await world.olivia.types("ops", "/project delete ml");
    await world.olivia.until(({ modals }) => modals.some(({ submit }) => submit !== ""));
    const { workspace } = world.slack;
    const view = topModal(workspace, "U0OLIVIA");
    if (!view) throw new Error("there is no dialog");
    view.state = {
      confirm: { confirm: { type: "plain_text_input", value: "ml" } },
      reason: { reason: { type: "plain_text_input", value: "because" } },
    };
    const right = JSON.parse(view.privateMetadata) as Record<string, unknown>;
    const statuses: number[] = [];
    const left = forgedMetadata(right, 100);
    // A few at a time: all at once are a test of the machine's pace within Slack's three seconds
    while (left.length > 0) {
      const sent = left.splice(0, 20).map((text) => {
        const forged = { ...view, id: workspace.newId("V"), privateMetadata: text };
        return sendSigned(world, submissionPayload(workspace, personOf(workspace, "vera"), forged));
      });
      statuses.push(...(await Promise.all(sent)));
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(await allRequests(world)).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
    expect(world.lines.filter((line) => line.includes('"bug"'))).toEqual([]);
  });
});

describe("words that another app or a message says", () => {
  it("change nothing: a message is no proof of who wrote it (X10)", async () => {
    const deploybot = world.slack.person("deploybot");
    await deploybot.types("ops", "@gatehouse vm restart web-2");
    await deploybot.types("ops", "/vm restart web-2");
    await world.olivia.types("ops", "vm restart web-2");
    await world.olivia.types("ops", "@gatehouse vm restart web-2");
    await hears(world.olivia, "ops", /Press the button: a message alone changes nothing/);
    expect(await allRequests(world)).toEqual([]);
    expect(world.compute.writes()).toEqual([]);
  });
});

describe("names and ids that are paths, queries or several", () => {
  it("reach no other address of the service (I2), and none of them runs (I3, I7)", async () => {
    const { length: before } = world.olivia.seesChannel("ops").messages;
    const odd = [
      "../projects/1",
      "a%2fb",
      "?x=1",
      "#",
      "vm-payments-web-2/../../x",
      "..",
      "vm-payments-web-2?x",
      "%00",
    ];
    for (const name of odd) {
      for (const verb of ["restart", "show"])
        await world.olivia.types("ops", `/vm ${verb} ${name}`);
    }
    const pasted = [
      "/vm restart web-2 --yes --force",
      "/vm restart web-2 -f",
      "/vm stop --all",
      "/vm restart web-2; rm -rf /",
      "/vm restart web-1",
    ];
    for (const words of pasted) await world.olivia.types("ops", words);
    await hears(world.olivia, "ops", /2 VMs are called web-1\. Which one\?/);
    const wanted = before + 2 * odd.length + pasted.length;
    await world.olivia.until(() => world.olivia.seesChannel("ops").messages.length >= wanted);
    expect(world.compute.writes()).toEqual([]);
    const paths = new Set(world.compute.calls().map(({ path }) => path));
    for (const path of paths)
      expect(path).toMatch(/^\/v1\/(projects(\/prj-[a-z-]+(\/vms)?)?|vms\/vm-[a-z0-9-]+)$/);
    const said = world.olivia.seesChannel("ops").messages.map(wordsOf).join("\n");
    expect(said).toContain("/vm restart has no --yes. Nothing was done.");
  });
});

/** What a view carries, bent in every way. */
function forgedMetadata(right: Record<string, unknown>, count: number): string[] {
  const odd = [
    "",
    "null",
    "[]",
    "{",
    "7",
    '"x"',
    "{}",
    '{"command":"project delete"}',
    '{"__proto__":{"command":"vm stop"}}',
  ];
  const values: unknown[] = [
    null,
    7,
    [],
    {},
    "",
    "*",
    "../x",
    "prj-payments",
    "vm-payments-web-2",
    "vault-1",
    "\u0000",
    "U0ADA",
  ];
  const keys = ["command", "targetId", "channelId", "threadTs", "values"];
  const names = commands.map(({ name }) => name);
  const bent = Array.from({ length: count - odd.length }, (_, n) => {
    const key = keys[n % keys.length] ?? "";
    const value =
      n % 2 === 0
        ? values[Math.floor(n / 2) % values.length]
        : names[Math.floor(n / 2) % names.length];
    const other = keys[Math.floor(n / 7) % keys.length] ?? "";
    return JSON.stringify({
      ...right,
      [key]: value,
      [other]: values[Math.floor(n / 13) % values.length],
    });
  });
  return [...odd, ...bent];
}

describe("a signed press", () => {
  it("captured and replayed ten times is one vote (X13), and from another workspace it is none (X3)", async () => {
    await using own = await startWorld({
      policy: `${testPolicy}approvals: [{ operations: ["vm.restart"], required: 2, expires: 1h }]\n`,
      receive: "http",
    });
    await own.olivia.types("ops", "/vm restart web-2");
    const card = await hears(own.amir, "ops", /Restart web-2[^]*Waiting for approval/);
    const genuine = pressPayload(own, "ada", card, buttonOn(card, "Approve"));
    const foreign = {
      ...genuine,
      team: { id: "T0EVIL" },
      user: { id: "U0ADA", team_id: "T0EVIL" },
    };
    const connected = { ...genuine, user: { id: "U0ADA", team_id: "T0EVIL" } };
    await sendSigned(own, foreign);
    await sendSigned(own, connected);
    const pressed = await own.amir.presses("Approve", { in: card.ts });
    for (let n = 0; n < 10; n += 1) await own.slack.redeliver(pressed.deliveryId ?? "");
    await hears(own.amir, "ops", /One more person must approve/);
    const [request] = await allRequests(own);
    expect(request).toMatchObject({ state: "draft", votes: [{ voterId: "U0AMIR" }] });
    const audit = await trail(own);
    expect(audit.filter(({ vote }) => vote === "approve")).toHaveLength(1);
    expect(own.compute.writes()).toEqual([]);
  });
});

describe("asking for too much (X6)", () => {
  it("stops one person after the limit, with a way out, and nobody else", async () => {
    await using own = await startWorld({
      policy: policyWith(
        { operate: ["U0OLIVIA", "U0ADA"] },
        "limits: { requestsPerMinute: 3, destructivePerHour: 1 }\n",
      ),
    });
    const targets = ["web-2", "db-1", "train-7", "worker-1", "gpu-1"];
    for (const vm of targets) await own.olivia.types("ops", `/vm snapshot ${vm}`);
    const refusal = await hears(own.olivia, "ops", /You requested 3 changes within a minute/);
    expect(wordsOf(refusal)).toMatch(/Try again in .*limits\.requestsPerMinute in gatehouse\.yml/);
    expect(await allRequests(own)).toHaveLength(3);
    await own.ada.types("random", "/vm snapshot gpu-1");
    await until(async () => (await allRequests(own)).length).toBe(4);
    expect((await trail(own)).filter(({ rule }) => rule === "limits")).toHaveLength(2);
    const interactions = async (project: string) => {
      await own.ada.types("ops", `/project delete ${project}`);
      await own.ada.until(({ modals }) =>
        modals.some(({ submit }) => submit === "Request approval"),
      );
      await own.ada.submits({ [`Type ${project} to confirm`]: project, Reason: "over and done" });
    };
    await interactions("ml");
    await hears(own.amir, "ops", /Delete ml[^]*Waiting for approval/);
    await own.amir.presses("Approve");
    await own.ended("project delete");
    await interactions("staging");
    await hears(own.ada, "ops", /Limit reached: 1 destructive request an hour in total/);
    const deletions = (await allRequests(own)).filter(
      ({ record }) => record.command === "project delete",
    );
    expect(deletions.map(({ record }) => record.target.name)).toEqual(["ml"]);
  });
});
