import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import { argumentsOf, targetArgument, dottedName } from "../../src/registry/define.ts";
import { handlersInCode } from "./handlers-in-code.ts";
import {
  type Answered,
  foreignLetters,
  madeUp,
  startTwoTeams,
  type TwoTeams,
} from "./two-teams.ts";

/**
 * Nothing of another team shows, and nothing of it changes: whatever Olivia types, presses, submits, or looks for, with the
 * names and IDs of the other team, is answered as for what doesn't exist, and takes the same calls to the service. The
 * commands, actions, and forms are those that the code knows: a new one is tried too.
 */
describe("a person of one team, with names and IDs of another", () => {
  let teams: TwoTeams;
  let before: string;
  const handlers = handlersInCode();
  const actions = handlers.filter((one) => !one.startsWith("form "));
  const forms = handlers.filter((one) => one.startsWith("form ")).map((one) => one.slice(5));

  beforeAll(async () => {
    teams = await startTwoTeams();
    before = await teams.standing();
  });
  afterAll(() => teams[Symbol.asyncDispose]());

  type Naming = (secret: string) => string;

  /** Acts with these words of theirs, then with words that nothing is called, and compares the answers. */
  async function expectAlike(
    what: string,
    secrets: readonly string[],
    act: (named: Naming) => Promise<string | void>,
  ): Promise<void> {
    const foreign = without(secrets, await teams.answerTo(() => act((secret) => secret)));
    const unknown = without(secrets.map(madeUp), await teams.answerTo(() => act(madeUp)));
    expect(foreign.text, what).not.toMatch(new RegExp(foreignLetters, "i"));
    expect(foreign.text, what).toBe(unknown.text);
    expect(foreign.calls, what).toEqual(unknown.calls);
  }

  /** What a command could be told of theirs: in the place of its target, and in the next one. */
  function wordsFor(command: (typeof commands)[number]) {
    const { vm, vmId, project, projectId, words, draft, snapshot } = teams.theirs;
    const { glob = "", "project/VM": inProject = "" } = words;
    const keys = argumentsOf(command).map(({ key }) => key);
    const firsts = {
      vm: [vm, vmId, inProject, glob],
      project: [project, projectId, glob],
      none: [vm, project],
    }[targetArgument(command)?.target ?? "none"];
    return {
      firsts: keys.includes("request") || firsts.length === 2 ? [...firsts, draft] : firsts,
      second: keys.includes("snapshot") ? snapshot : vm,
    };
  }

  it.each(commands.map((command) => [command.name, command] as const))(
    "gets nothing of /%s",
    async (_name, command) => {
      const [, , ...tokens] = command.example.split(" ");
      const places = tokens.flatMap((token, at) => (token.startsWith("--") ? [] : [at]));
      const [first = 0, second, ...more] = places;
      const olivia = teams.world.slack.person("olivia");
      const typed = (at: number, word: string) =>
        [command.name, ...tokens.slice(0, at), word, ...tokens.slice(at + 1)].join(" ");
      const words = wordsFor(command);
      const last = more.at(-1);
      const tries = [
        ...words.firsts.map((secret) => [first, secret] as const),
        ...(second === undefined ? [] : [[second, words.second] as const]),
        ...(last === undefined ? [] : [[last, teams.theirs.vm] as const]),
      ];
      for (const [at, secret] of tries)
        await expectAlike(typed(at, secret), [secret], async (named) => {
          await olivia.types("ops", `/${typed(at, named(secret))}`);
        });
    },
  );

  it("gets nothing in a direct message, nor by a mention", async () => {
    const { vmId, projectId } = teams.theirs;
    const olivia = teams.world.slack.person("olivia");
    const mention = `<@${teams.world.slack.app.botUserId}>`;
    for (const [words, secret] of [
      ["vm show", vmId],
      ["vm metrics", vmId],
      ["vm restart", vmId],
      ["vm restore", vmId],
      ["gatehouse why", vmId],
      ["project show", projectId],
      ["project delete", projectId],
    ] as const) {
      await expectAlike(`${words} in a message`, [secret], async (named) => {
        await olivia.types("D0OLIVIA", `${words} ${named(secret)}`);
      });
      await expectAlike(`${words} in a mention`, [secret], async (named) => {
        await olivia.types("ops", `${mention} ${words} ${named(secret)}`);
      });
    }
  });

  it.each(commands.map((command) => [command.name, command] as const))(
    "gets nothing of a button or a form of /%s",
    async (_name, command) => {
      const { vmId, projectId } = teams.theirs;
      const target = targetArgument(command)?.target;
      const secret = target === "project" ? projectId : vmId;
      const dotted = dottedName(command);
      const inputs = (word: string) =>
        Object.fromEntries(
          argumentsOf(command).map(({ key, isList }) => [key, isList ? [word] : word]),
        );
      await expectAlike(`run:${dotted}`, [secret], (named) =>
        teams.press(`run:${dotted}`, inputs(named(secret))),
      );
      if (command.kind === "read")
        await expectAlike(`share of ${dotted}`, [secret], (named) =>
          teams.press("share", { command: dotted, input: inputs(named(secret)) }),
        );
      const callbacks = [
        ...(command.kind === "change" ? ["dialog"] : []),
        ...(target === undefined ? [] : ["pick-target"]),
      ];
      for (const callback of callbacks)
        await expectAlike(`form ${callback} of ${dotted}`, [secret], (named) =>
          teams.submit(
            callback,
            {
              command: command.name,
              targetId: named(secret),
              channelId: "C01OPS",
              values: callback === "dialog" ? inputs(named(secret)) : {},
            },
            filledIn(named(secret)),
          ),
        );
    },
  );

  it("gets nothing of any other form, whatever it names", async () => {
    const { vmId, draft, done, rollout } = teams.theirs;
    for (const callback of forms)
      for (const request of [draft, done])
        await expectAlike(`form ${callback} on ${request}`, [vmId, request, rollout], (named) => {
          const origin = {
            kind: "request",
            request: named(request),
            press: "undo",
            undoes: named(request),
          };
          const metadata = {
            request: named(request),
            roll: named(rollout),
            origin,
            happened: true,
          };
          const dialog = { command: "vm restore", targetId: named(vmId), channelId: "C01OPS" };
          return teams.submit(callback, { ...dialog, ...metadata }, filledIn(named(vmId)));
        });
  });

  it("gets nothing of any other button, whatever it names", async () => {
    const { vmId, projectId, snapshot, draft, done, rollout } = teams.theirs;
    for (const action of actions)
      for (const request of /^(request|vote|review|ask)/.test(action) ? [draft, done] : [draft]) {
        const secrets = [vmId, projectId, snapshot, request, rollout];
        await expectAlike(`${action} ${request}`, secrets, (named) =>
          teams.press(action, {
            request: named(request),
            roll: named(rollout),
            vm: named(vmId),
            vms: [named(vmId)],
            project: named(projectId),
            snapshot: named(snapshot),
            line: named(request === draft ? vmId : request),
            next: named(request),
            once: "x",
            for: "U0OLIVIA",
            until: Date.now() + 1e7,
            command: "vm.show",
            input: { vm: named(vmId) },
            digest: "x",
            since: 0,
          }),
        );
      }
  });

  it("finds nothing of it in any list to choose from", async () => {
    const { vm, vmId, projectId, project, snapshot } = teams.theirs;
    const finds = (action: string, secret: string, typed: (word: string) => string) =>
      expectAlike(`${action} ${secret}`, [secret], (named) =>
        teams.suggest(action, typed(named(secret)), {
          targetId: named(secret),
          command: "vm restore",
          channelId: "C01OPS",
        }),
      );
    for (const action of ["pick:vm", "pick:project", "arg:snapshot"]) {
      for (const secret of [vm, vmId, project, projectId, snapshot])
        await finds(action, secret, (word) => word);
      await finds(action, vm, (word) => word.slice(0, 3));
      await finds(action, vmId, () => "");
    }
  });

  it("sees nothing of it on the Home tab, and none of it named in a message", async () => {
    const olivia = teams.world.slack.person("olivia");
    const home = await teams.answerTo(async () => {
      await olivia.opensHome();
      await teams.world.slack.until(() => teams.world.slack.calls("views.publish").length > 0);
    });
    expect(home.text).toContain("views.publish");
    expect(home.text).not.toMatch(/xqu/i);
    const { ts = "" } = await olivia.types("ops", "what of xqudb and db-1 and vm-xqudb?");
    const isSaid = () => /named in that message/.test(JSON.stringify(teams.world.slack.calls()));
    const named = await teams.answerTo(async () => {
      await olivia.picksMessageShortcut("show-vms", ts);
      await teams.world.slack.until(isSaid);
    });
    expect(named.text).toContain("One VM is named in that message");
    expect(named.text).not.toMatch(/xqu/i);
  });

  it("has changed nothing of it, and none of this was a bug", async () => {
    expect(await teams.standing()).toBe(before);
    expect(teams.tally.result().crashes).toEqual([]);
  });
});

/** What every form could hold. */
const filledIn = (word: string) => ({
  confirm: word,
  reason: "because of this",
  vm: word,
  project: word,
  "arg:snapshot": word,
  "arg:name": word,
});

/** Without the words themselves, and what is another each time: times, new IDs, and addresses. */
function without(words: readonly string[], { text, calls }: Answered): Answered {
  const parts = [...words, ...words.map((word) => word.slice(0, 3))].map(RegExp.escape);
  const plain = (one: string) =>
    one
      .replaceAll(new RegExp(parts.join("|"), "gi"), "☐")
      .replaceAll(
        /"(trigger_id|view_id|hash|ts|thread_ts|message_ts|response_url|user_id|client_msg_id)":"[^"]*"/g,
        "",
      )
      .replaceAll(/<!date\^[^>]*>|\b\d+(\.\d+)? ?(ms|s|min|h|d)\b( \d+ (s|min|h))?/g, "⏱")
      // Told once it is older than five seconds
      .replaceAll(" Gatehouse read the list ⏱ ago.", "")
      // Jobs come and go
      .replaceAll(/\d+ jobs? waiting/g, "N jobs waiting")
      .replaceAll(/\br-[a-z0-9]{10}\b|\broll-[a-z0-9]{8}\b/g, "#")
      .replaceAll(/https?:\/\/[^\s"\\]+/g, "⌂");
  return { text: plain(text), calls: calls.map(plain) };
}
